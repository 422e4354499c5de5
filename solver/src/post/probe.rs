//! Points inside the mesh: which cell holds them, and the value of a nodal quantity there.
//!
//! Invariant: knows coordinates and cells; what is interpolated is the caller's business.

use crate::element::MAX_NODES;
use crate::element::geometry::{
    cofactors, determinant, distance_outside, dot, interpolate as at_shape, jacobian,
    natural_coordinates,
};
use crate::element::shape::{natural_nodes, shape_at};
use crate::model::Model;
use bytemuck::{Pod, Zeroable};
use fem_mesh::select::{self, Region};
use fem_mesh::{CellType, Comm, Error, LocalMesh, Result};
use std::cmp::Ordering;

/// Distance from the mesh, as a share of its size, up to which a point counts as on its surface.
const SURFACE_TOLERANCE: f64 = 1e-6;
/// Natural coordinates by which a point may be outside a cell that holds it: rounding of points on borders.
const BORDER_TOLERANCE: f64 = 1e-8;
/// Share of its extent by which the box around the nodes of a curved cell is widened to hold the cell.
const BULGE: f64 = 0.25;

/// Where a point is; the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Location {
    /// Rank that owns the cell.
    pub rank: usize,
    /// The cell's local index on that rank.
    pub cell: usize,
    /// The cell's number in the input.
    pub cell_id: u64,
    /// Natural coordinates of the point in the cell.
    pub xi: [f64; 3],
}

/// A cell that may hold a point.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Candidate {
    /// From the point to the cell, m; 0 inside.
    distance: f64,
    cell_id: u64,
    cell: u64,
    xi: [f64; 3],
}

impl Candidate {
    const NONE: Candidate = Candidate {
        distance: f64::INFINITY,
        cell_id: u64::MAX,
        cell: 0,
        xi: [0.0; 3],
    };

    /// Nearer cells first, of equally near ones the lower number.
    fn order(&self, other: &Candidate) -> Ordering {
        self.distance
            .total_cmp(&other.distance)
            .then(self.cell_id.cmp(&other.cell_id))
    }

    fn improve(&mut self, other: Candidate) {
        if other.order(self).is_lt() {
            *self = other;
        }
    }
}

/// Collective. The cell of each of `points` (m; the same on every rank). A point on a border goes to the cell with the
/// lowest number, one outside by no more than 1e-6 of the size of the mesh to the nearest cell.
///
/// # Errors
/// A point outside the mesh, with its distance, on every rank.
pub fn locate(comm: &Comm, mesh: &LocalMesh, points: &[[f64; 3]]) -> Result<Vec<Location>> {
    let bounds = select::bounds(comm, mesh);
    let extent = [0, 1, 2].map(|i| bounds.max[i] - bounds.min[i]);
    let tolerance = SURFACE_TOLERANCE * length(extent);
    let here = candidates(mesh, points, tolerance);
    let all = comm.all_gather(&here);
    let mut locations = Vec::with_capacity(points.len());
    for (index, &point) in points.iter().enumerate() {
        let by_rank = all.iter().map(|candidates| candidates[index]).enumerate();
        let best = by_rank
            .min_by(|(_, a), (_, b)| a.order(b))
            .filter(|(_, found)| found.distance <= tolerance);
        let Some((rank, found)) = best else {
            return Err(outside(comm, mesh, point));
        };
        locations.push(Location {
            rank,
            cell: found.cell as usize,
            cell_id: found.cell_id,
            xi: found.xi,
        });
    }
    Ok(locations)
}

/// Collective. The value of a nodal quantity at `at`, the same on every rank. `value(node, material)` gives it at a
/// local node; `material` is that of the cell.
pub fn interpolate<const W: usize>(
    comm: &Comm,
    model: &Model,
    at: &Location,
    value: impl Fn(usize, u16) -> [f64; W],
) -> [f64; W] {
    let mut result = [0.0; W];
    if comm.rank() == at.rank {
        let material = model.cell_material[at.cell];
        let nodes = model.mesh.cells.nodes_of(at.cell);
        let values: Vec<[f64; W]> = nodes
            .iter()
            .map(|&node| value(node as usize, material))
            .collect();
        result = at_shape(
            &values,
            &shape_at(model.mesh.cells.types[at.cell], at.xi).shape,
        );
    }
    let shared = comm.broadcast(at.rank, result.to_vec());
    result.copy_from_slice(&shared);
    result
}

/// The best owned cell for each point among those whose boxes, widened by `margin`, hold it.
fn candidates(mesh: &LocalMesh, points: &[[f64; 3]], margin: f64) -> Vec<Candidate> {
    // By x, so that a cell meets only the points in its range.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]));
    let mut best = vec![Candidate::NONE; points.len()];
    for cell in 0..mesh.n_owned_cells {
        let region = cell_box(mesh, cell).widened(margin);
        let first = order.partition_point(|&p| points[p][0] < region.min[0]);
        let in_range = order[first..]
            .iter()
            .take_while(|&&p| points[p][0] <= region.max[0]);
        for &p in in_range.filter(|&&p| region.contains(&points[p])) {
            best[p].improve(examine(mesh, cell, points[p]));
        }
    }
    best
}

/// A box that holds an owned cell.
fn cell_box(mesh: &LocalMesh, cell: usize) -> Region {
    let mut region = Region {
        min: [f64::INFINITY; 3],
        max: [f64::NEG_INFINITY; 3],
    };
    for &node in mesh.cells.nodes_of(cell) {
        let x = mesh.coords[node as usize];
        for i in 0..3 {
            region.min[i] = region.min[i].min(x[i]);
            region.max[i] = region.max[i].max(x[i]);
        }
    }
    if mesh.cells.types[cell].order() == 1 {
        return region;
    }
    let extent = [0, 1, 2].map(|i| region.max[i] - region.min[i]);
    region.widened(BULGE * length(extent))
}

/// Place of `point` relative to an owned cell.
fn examine(mesh: &LocalMesh, cell: usize, point: [f64; 3]) -> Candidate {
    let cell_type = mesh.cells.types[cell];
    let mut coords = [[0.0; 3]; MAX_NODES];
    mesh.gather_coords(cell, &mut coords);
    let coords = &coords[..cell_type.n_nodes()];
    let inside = natural_coordinates(cell_type, coords, point)
        .filter(|&xi| distance_outside(cell_type, xi) <= BORDER_TOLERANCE);
    let (xi, distance) = match inside {
        Some(xi) => (xi, 0.0),
        None => closest(cell_type, coords, point),
    };
    Candidate {
        distance,
        cell_id: mesh.cell_ids[cell],
        cell: cell as u64,
        xi,
    }
}

/// A point of the cell near `point`, by Newton's method kept inside the cell, and its distance, which is at least that
/// of the cell.
fn closest(cell_type: CellType, coords: &[[f64; 3]], point: [f64; 3]) -> ([f64; 3], f64) {
    let mut xi = into_cell(cell_type, mean(natural_nodes(cell_type)));
    let mut best = (xi, f64::INFINITY);
    for _ in 0..20 {
        let at = shape_at(cell_type, xi);
        let here = at_shape(coords, &at.shape);
        let gap = [0, 1, 2].map(|i| point[i] - here[i]);
        let distance = length(gap);
        if distance < best.1 {
            best = (xi, distance);
        }
        let jac = jacobian(coords, &at.grad);
        let cofactors = cofactors(&jac);
        let det = determinant(&jac, &cofactors);
        let step = [0, 1, 2].map(|j| (0..3).map(|i| cofactors[i][j] * gap[i]).sum::<f64>() / det);
        if !step.iter().all(|s| s.is_finite()) {
            break;
        }
        xi = into_cell(cell_type, [0, 1, 2].map(|i| xi[i] + step[i]));
    }
    best
}

/// Natural coordinates moved into the natural cell if they are outside.
fn into_cell(cell_type: CellType, xi: [f64; 3]) -> [f64; 3] {
    let on_simplex = |n: usize| {
        let mut inside = xi;
        let part = &mut inside[..n];
        part.iter_mut().for_each(|x| *x = x.max(0.0));
        let sum: f64 = part.iter().sum();
        if sum > 1.0 {
            part.iter_mut().for_each(|x| *x /= sum);
        }
        inside
    };
    match cell_type {
        CellType::Tet4 | CellType::Tet10 => on_simplex(3),
        CellType::Wedge6 | CellType::Wedge15 => {
            let [r, s, t] = on_simplex(2);
            [r, s, t.clamp(-1.0, 1.0)]
        }
        CellType::Pyramid5 | CellType::Pyramid13 => {
            let t = xi[2].clamp(0.0, 1.0);
            [
                xi[0].clamp(t - 1.0, 1.0 - t),
                xi[1].clamp(t - 1.0, 1.0 - t),
                t,
            ]
        }
        _ => xi.map(|x| x.clamp(-1.0, 1.0)),
    }
}

/// Collective. The error for a point that no cell holds.
fn outside(comm: &Comm, mesh: &LocalMesh, point: [f64; 3]) -> Error {
    // No cell is farther than the nearest node; only cells whose boxes are nearer need a closer look.
    let nodes = mesh.coords[..mesh.nodes.n_owned()].iter();
    let to_node = |x: &[f64; 3]| length([0, 1, 2].map(|i| x[i] - point[i]));
    let limit = nodes.map(to_node).fold(f64::INFINITY, f64::min);
    let limit = comm.min(limit);
    let mut best = Candidate {
        distance: limit,
        ..Candidate::NONE
    };
    for cell in 0..mesh.n_owned_cells {
        let region = cell_box(mesh, cell);
        let gap = [0, 1, 2].map(|i| {
            (region.min[i] - point[i])
                .max(point[i] - region.max[i])
                .max(0.0)
        });
        if length(gap) <= best.distance {
            best.improve(examine(mesh, cell, point));
        }
    }
    let distance = comm.min(best.distance);
    let [x, y, z] = point;
    Error::input(format!("the point ({x}, {y}, {z}) is outside the mesh, about {distance:.3e} from the nearest element"))
        .expected("a point inside an element, or within 1e-6 of the size of the model")
        .advice("check its coordinates, and `scale` of the mesh")
}

fn length(v: [f64; 3]) -> f64 {
    dot(v, v).sqrt()
}

fn mean(points: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|i| points.iter().map(|x| x[i]).sum::<f64>() / points.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::{Location, interpolate, locate};
    use crate::assembly::test_models::{distorted_box, mixed_mesh, model, split};
    use crate::model::Model;
    use crate::post::test_fields::{assert_close, meshes};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Comm, Mesh};

    /// Corners, points on edges and faces, in the middle and elsewhere of the box of 1.5 x 1 x 2.
    const POINTS: [[f64; 3]; 9] = [
        [0.0, 0.0, 0.0],
        [1.5, 1.0, 2.0],
        [1.5, 0.0, 2.0],
        [0.0, 0.37, 0.0],
        [0.4, 0.6, 2.0],
        [1.5, 0.5, 0.9],
        [0.75, 0.5, 1.0],
        [0.123, 0.456, 0.789],
        [1.31, 0.77, 1.93],
    ];

    fn coordinates(comm: &Comm, model: &Model, at: &Location) -> [f64; 3] {
        interpolate(comm, model, at, |node, _| model.mesh.coords[node])
    }

    #[test]
    fn points_are_found_in_every_type_by_any_number_of_ranks() {
        for mesh in [meshes(false), meshes(true)].concat() {
            let alone = Comm::alone();
            let whole = split(&alone, &mesh);
            let expected = locate(&alone, &whole, &POINTS).unwrap();
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let found = locate(comm, &model.mesh, &POINTS).unwrap();
                    for ((at, point), expected) in found.iter().zip(POINTS).zip(&expected) {
                        assert_eq!((at.cell_id, at.xi), (expected.cell_id, expected.xi));
                        assert_close(&coordinates(comm, &model, at), &point, 1e-11);
                        if comm.rank() == at.rank {
                            assert_eq!(model.mesh.cell_ids[at.cell], at.cell_id);
                        }
                    }
                });
            }
        }
    }

    /// Lowest number of the cells at each node.
    fn lowest_at_nodes(mesh: &Mesh) -> Vec<u64> {
        let mut lowest = vec![u64::MAX; mesh.n_nodes()];
        for cell in 0..mesh.n_cells() {
            for &node in mesh.cells.nodes_of(cell) {
                lowest[node as usize] = lowest[node as usize].min(mesh.cell_ids[cell]);
            }
        }
        lowest
    }

    #[test]
    fn a_node_belongs_to_its_cell_with_the_lowest_number() {
        let mut mesh = mixed_mesh();
        // Numbers that fall and rise in no order of the cells.
        mesh.cell_ids = (0..mesh.n_cells() as u64)
            .map(|c| (c * 37 + 11) % 1009)
            .collect();
        let lowest = lowest_at_nodes(&mesh);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let found = locate(comm, &split(comm, &mesh), &mesh.coords).unwrap();
                assert!(
                    found
                        .iter()
                        .zip(&lowest)
                        .all(|(at, lowest)| at.cell_id == *lowest)
                );
            });
        }
    }

    #[test]
    fn the_value_is_that_of_the_cells_own_material_on_every_rank() {
        let mesh = distorted_box(CellType::Hex8, [3, 2, 2], false);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut model = model(split(comm, &mesh));
                model.cell_material = model.mesh.cell_ids.iter().map(|id| *id as u16).collect();
                for at in locate(comm, &model.mesh, &POINTS).unwrap() {
                    let [x, material] = interpolate(comm, &model, &at, |node, material| {
                        [model.mesh.coords[node][0], f64::from(material)]
                    });
                    assert!((material - at.cell_id as f64).abs() < 1e-10);
                    assert!((0.0..=1.5 + 1e-12).contains(&x));
                }
            });
        }
    }

    #[test]
    fn points_just_outside_are_taken_to_the_surface() {
        for mesh in meshes(false) {
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let points = [
                        [0.4, 0.6, 2.0 + 1e-6],
                        [-1e-6, 0.3, 0.7],
                        [1.5 + 1e-6, 1.0 + 1e-6, -1e-6],
                    ];
                    let on_surface = [[0.4, 0.6, 2.0], [0.0, 0.3, 0.7], [1.5, 1.0, 0.0]];
                    let found = locate(comm, &model.mesh, &points).unwrap();
                    for (at, x) in found.iter().zip(on_surface) {
                        assert_close(&coordinates(comm, &model, at), &x, 1e-5);
                    }
                });
            }
        }
    }

    #[test]
    fn points_outside_are_refused_with_their_distance() {
        let mesh = mixed_mesh();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let local = split(comm, &mesh);
                let points = [[0.5; 3], [0.4, 1.25, 0.6]];
                let error = locate(comm, &local, &points).unwrap_err();
                assert_eq!(error.exit_code(), 2);
                let text = error.to_string();
                assert!(
                    text.contains("(0.4, 1.25, 0.6)") && text.contains("2.5"),
                    "{text}"
                );
                assert!(locate(comm, &local, &[[f64::NAN; 3]]).is_err());
                assert_eq!(locate(comm, &local, &[]).unwrap(), []);
            });
        }
    }
}
