//! Values at a point: finds the cell that contains it and interpolates there.
//!
//! Invariant: each point has one owner among the ranks, the lowest that finds it.

use super::nodal::NodalField;
use crate::element::MAX_NODES;
use crate::element::geometry::{distance_outside, interpolate, natural_coordinates};
use crate::element::shape::shape_at;
use crate::model::Model;
use fem_mesh::{Comm, Error, LocalMesh, Result};

/// How far outside a cell, in natural units, a point still counts as in it: nodes given with a few digits lie so.
const TOLERANCE: f64 = 1e-3;

/// Where a point is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The rank that owns the cell.
    pub rank: usize,
    /// The cell as a local index of that rank.
    pub cell: usize,
    /// Natural coordinates in the cell.
    pub xi: [f64; 3],
}

/// Collective. Finds the cell that contains `point` (m); every rank gets the same answer. On a border between cells
/// it is the one that contains the point best, the lowest rank and cell among equals.
///
/// # Errors
/// A point outside all cells; the message tells the nearest node.
pub fn locate(comm: &Comm, mesh: &LocalMesh, point: [f64; 3]) -> Result<Located> {
    let found = find_here(mesh, point);
    // Distances at rounding level are equal: the point is inside for each.
    let distance = found.map_or(f64::INFINITY, |(distance, ..)| distance.max(1e-9));
    let all = comm.all_gather(&[distance]);
    let best = (0..all.len())
        .min_by(|&a, &b| all[a][0].total_cmp(&all[b][0]))
        .unwrap_or(0);
    if all[best][0].is_infinite() {
        return Err(outside(comm, mesh, point));
    }
    let mine = found.map_or([0.0; 4], |(_, cell, [r, s, t])| [cell as f64, r, s, t]);
    let of_best = comm.broadcast(best, mine.to_vec());
    Ok(Located {
        rank: best,
        cell: of_best[0] as usize,
        xi: [of_best[1], of_best[2], of_best[3]],
    })
}

/// The owned cell that contains a point best: distance outside, cell, natural coordinates.
fn find_here(mesh: &LocalMesh, point: [f64; 3]) -> Option<(f64, usize, [f64; 3])> {
    let mut best: Option<(f64, usize, [f64; 3])> = None;
    let mut coords = [[0.0; 3]; MAX_NODES];
    for cell in 0..mesh.n_owned_cells {
        mesh.gather_coords(cell, &mut coords);
        let cell_type = mesh.cells.types[cell];
        let coords = &coords[..cell_type.n_nodes()];
        if !near(coords, point) {
            continue;
        }
        let Some(xi) = natural_coordinates(cell_type, coords, point) else {
            continue;
        };
        let distance = distance_outside(cell_type, xi);
        if distance < TOLERANCE && best.is_none_or(|(d, ..)| distance.max(1e-9) < d.max(1e-9)) {
            best = Some((distance, cell, xi));
        }
    }
    best
}

/// Whether a point is in the box around a cell's nodes, widened for curved faces by a quarter of its size.
fn near(coords: &[[f64; 3]], point: [f64; 3]) -> bool {
    let mut low = [f64::INFINITY; 3];
    let mut high = [f64::NEG_INFINITY; 3];
    for x in coords {
        for i in 0..3 {
            low[i] = low[i].min(x[i]);
            high[i] = high[i].max(x[i]);
        }
    }
    let size = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
    (0..3).all(|i| point[i] >= low[i] - 0.25 * size && point[i] <= high[i] + 0.25 * size)
}

/// Collective. The error for a point in no cell.
fn outside(comm: &Comm, mesh: &LocalMesh, point: [f64; 3]) -> Error {
    let distance2 = |x: &[f64; 3]| (0..3).map(|i| (x[i] - point[i]).powi(2)).sum::<f64>();
    let nearest = (0..mesh.coords.len())
        .min_by(|&a, &b| distance2(&mesh.coords[a]).total_cmp(&distance2(&mesh.coords[b])));
    let here = nearest.map_or([f64::INFINITY, 0.0, 0.0, 0.0, 0.0], |node| {
        let [x, y, z] = mesh.coords[node];
        [
            distance2(&mesh.coords[node]),
            mesh.node_ids[node] as f64,
            x,
            y,
            z,
        ]
    });
    let mut all = comm.all_gather(&here);
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let what = format!("the point {point:?} is in no element");
    match all.first() {
        Some(n) if n[0].is_finite() => {
            Error::input(what)
                .expected("a point of the model")
                .advice(format!(
                    "the nearest node is {} at [{}, {}, {}]",
                    n[1], n[2], n[3], n[4]
                ))
        }
        _ => Error::input(what).expected("a point of the model"),
    }
}

impl Located {
    /// Collective. Displacement there, m; `displacement` holds all local nodes, 3 a node.
    pub fn displacement(&self, comm: &Comm, mesh: &LocalMesh, displacement: &[f64]) -> [f64; 3] {
        let nodal = displacement.as_chunks::<3>().0;
        self.interpolate(comm, mesh, |_, node| nodal[node])
    }

    /// Collective. A recovered nodal field there, in the material of the cell.
    pub fn tensor(&self, comm: &Comm, model: &Model, field: &NodalField) -> [f64; 6] {
        self.interpolate(comm, &model.mesh, |cell, node| {
            field
                .get(node, model.cell_material[cell])
                .copied()
                .unwrap_or_default()
        })
    }

    /// Collective. Interpolates `value(cell, local node)` on the rank of the cell and tells the others.
    fn interpolate<const W: usize>(
        &self,
        comm: &Comm,
        mesh: &LocalMesh,
        value: impl Fn(usize, usize) -> [f64; W],
    ) -> [f64; W] {
        let mut result = [0.0; W];
        if comm.rank() == self.rank {
            let nodes = mesh.cells.nodes_of(self.cell);
            let nodal: Vec<[f64; W]> = nodes
                .iter()
                .map(|&node| value(self.cell, node as usize))
                .collect();
            result = interpolate(
                &nodal,
                &shape_at(mesh.cells.types[self.cell], self.xi).shape,
            );
        }
        let all = comm.broadcast(self.rank, result.to_vec());
        result.copy_from_slice(&all);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::locate;
    use crate::assembly::Slabs;
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::post::{Quantity, Solution, nodal_field};
    use fem_mesh::CellType;
    use fem_mesh::comm::run_threads;
    use fem_mesh::halo::Halo;

    #[test]
    fn a_linear_field_is_read_back_at_any_point_on_any_number_of_ranks() {
        for cell_type in CellType::SOLIDS {
            let mesh = distorted_box(cell_type, [3, 2, 2], true);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let coords = &model.mesh.coords;
                    let u: Vec<f64> = coords
                        .iter()
                        .flat_map(|[x, y, z]| [x + 2.0 * y, 3.0 * z, x - y])
                        .collect();
                    let solution = Solution::new(&model, &u);
                    let halo = Halo::new(comm, &model.mesh.nodes);
                    let slabs = Slabs::even(model.mesh.nodes.n_owned(), 2);
                    let strain = nodal_field(comm, &halo, &solution, &slabs, Quantity::Strain);
                    let corner = [1.5, 1.0, 2.0];
                    let slightly_outside = [1.5 + 1e-5, 0.4, 1.3];
                    for point in [
                        [0.4, 0.3, 0.7],
                        [1.1, 0.9, 1.8],
                        [0.75, 0.5, 1.0],
                        corner,
                        slightly_outside,
                    ] {
                        let at = locate(comm, &model.mesh, point).unwrap();
                        let [x, y, z] = point;
                        let u = at.displacement(comm, &model.mesh, &u);
                        for (value, expected) in u.iter().zip([x + 2.0 * y, 3.0 * z, x - y]) {
                            assert!(
                                (value - expected).abs() < 1e-10,
                                "{cell_type} at {point:?}: {u:?}"
                            );
                        }
                        let strain = at.tensor(comm, &model, &strain);
                        for (value, expected) in strain.iter().zip([1.0, 0.0, 0.0, 2.0, 2.0, 1.0]) {
                            assert!(
                                (value - expected).abs() < 1e-9,
                                "{cell_type} at {point:?}: {strain:?}"
                            );
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn a_point_outside_is_an_error_that_names_the_nearest_node() {
        let mesh = distorted_box(CellType::Hex8, [3, 2, 2], false);
        let node = mesh
            .coords
            .iter()
            .position(|x| *x == [1.5, 1.0, 2.0])
            .unwrap();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let error = locate(comm, &split(comm, &mesh), [2.0, 2.0, 3.0]).unwrap_err();
                assert_eq!(error.exit_code(), 2);
                let nearest = format!("the nearest node is {} at [1.5, 1, 2]", mesh.node_ids[node]);
                assert!(error.to_string().contains(&nearest), "{error}");
            });
        }
    }
}
