//! Stress and strain at nodes: extrapolated from the recovery points of each cell, then averaged over the cells of one
//! material that share the node.
//!
//! A node on the border of two materials has one value for each: nothing is smeared over an interface. The average is
//! the plain mean over cells, which is what CalculiX and Abaqus show. Values of the owned nodes need no communication
//! (ghost cells complete them); those of ghost nodes come from their owners.
//!
//! Source of the extrapolation: Hinton and Campbell, Local and global smoothing of discontinuous finite element
//! functions, IJNME 8 (1974).
//!
//! Invariant: a linear field on the recovery points is reproduced exactly at the nodes.

use super::stress::Solution;
use crate::assembly::Slabs;
use crate::assembly::slabs::cells_touching;
use crate::element::shape::{natural_nodes, shape_at};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use fem_mesh::adjacency::node_cells;
use fem_mesh::halo::Halo;
use fem_mesh::{CellType, Comm};
use nalgebra::DMatrix;
use std::sync::LazyLock;

/// What to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Stress, Pa.
    Stress,
    /// Total strain with engineering shear, thermal part included.
    Strain,
}

/// A tensor at each local node (ghosts included) for each material that meets there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodalField {
    /// First entry of each local node; one longer than there are nodes.
    pub start: Vec<u32>,
    /// Material of each entry, ascending within a node.
    pub materials: Vec<u16>,
    /// Voigt components of each entry.
    pub values: Vec<[f64; 6]>,
}

impl NodalField {
    /// Entries of a local node, (material, value), ascending by material; none where no cell touches the node.
    pub fn at_node(&self, node: usize) -> impl Iterator<Item = (u16, &[f64; 6])> {
        let entries = self.start[node] as usize..self.start[node + 1] as usize;
        self.materials[entries.clone()]
            .iter()
            .copied()
            .zip(&self.values[entries])
    }

    /// Value of a local node in one material, if that material is there.
    pub fn get(&self, node: usize, material: u16) -> Option<&[f64; 6]> {
        self.at_node(node)
            .find(|&(m, _)| m == material)
            .map(|(_, value)| value)
    }

    /// Place of (node, material), which must exist.
    fn place(&self, node: usize, material: u16) -> usize {
        let entries = self.start[node] as usize..self.start[node + 1] as usize;
        entries.start
            + self.materials[entries]
                .iter()
                .position(|&m| m == material)
                .unwrap_or(0)
    }
}

/// Collective. The averaged nodal values of `quantity`; `halo` is that of the nodes, `slabs` divides the owned nodes
/// among threads and does not change the result.
pub fn nodal_field(
    comm: &Comm,
    halo: &Halo,
    solution: &Solution,
    slabs: &Slabs,
    quantity: Quantity,
) -> NodalField {
    let mut field = owned_entries(solution);
    average(solution, slabs, quantity, &mut field);
    append_ghosts(comm, halo, solution.model.mesh.nodes.n_ghosts(), &mut field);
    field
}

/// The entries of the owned nodes, with values of zero.
fn owned_entries(solution: &Solution) -> NodalField {
    let model = solution.model;
    let graph = node_cells(&model.mesh.cells, model.mesh.nodes.n_local());
    let mut field = NodalField {
        start: vec![0],
        ..Default::default()
    };
    let mut here: Vec<u16> = Vec::new();
    for node in 0..model.mesh.nodes.n_owned() {
        here.clear();
        for &cell in graph.row(node) {
            let material = model.cell_material[cell as usize];
            if let Err(at) = here.binary_search(&material) {
                here.insert(at, material);
            }
        }
        field.materials.extend_from_slice(&here);
        field.start.push(field.materials.len() as u32);
    }
    field.values = vec![[0.0; 6]; field.materials.len()];
    field
}

/// Sums over the cells of each entry, divided by their number.
fn average(solution: &Solution, slabs: &Slabs, quantity: Quantity, field: &mut NodalField) {
    let model = solution.model;
    let cells = &model.mesh.cells;
    let mut values = std::mem::take(&mut field.values);
    let start = |row: usize| field.start[row] as usize;
    let jobs: Vec<_> = slabs.rows().zip(slabs.split(&mut values, start)).collect();
    rayon::scope(|scope| {
        for (rows, part) in jobs {
            let field = &*field;
            scope.spawn(move |_| {
                let first = start(rows.start);
                let mut counts = vec![0u32; part.len()];
                for cell in cells_touching(cells, rows.clone()) {
                    let nodal = at_cell_nodes(solution, cell, quantity);
                    for (&node, value) in cells.nodes_of(cell).iter().zip(nodal) {
                        if rows.contains(&(node as usize)) {
                            let place =
                                field.place(node as usize, model.cell_material[cell]) - first;
                            counts[place] += 1;
                            for k in 0..6 {
                                part[place][k] += value[k];
                            }
                        }
                    }
                }
                for (value, count) in part.iter_mut().zip(counts) {
                    *value = value.map(|v| v / f64::from(count));
                }
            });
        }
    });
    field.values = values;
}

/// Values at the nodes of one cell, extrapolated from its recovery points.
fn at_cell_nodes(solution: &Solution, cell: usize, quantity: Quantity) -> [[f64; 6]; MAX_NODES] {
    let cell_type = solution.model.mesh.cells.types[cell];
    let extrapolation = extrapolation(cell_type);
    let mut nodal = [[0.0; 6]; MAX_NODES];
    let n_points = Tabulation::of(cell_type, Purpose::Recovery).n_points();
    solution.at_points(cell, Purpose::Recovery, |q, at| {
        let value = match quantity {
            Quantity::Stress => at.stress,
            Quantity::Strain => at.strain,
        };
        for (slot, row) in nodal.iter_mut().zip(extrapolation.chunks_exact(n_points)) {
            for k in 0..6 {
                slot[k] += row[q] * value[k];
            }
        }
    });
    nodal
}

/// Matrix from values at the recovery points to values at the nodes, row by row: the functions of the linear cell of
/// the same shape, fitted to the points.
fn extrapolation(cell_type: CellType) -> &'static [f64] {
    static ALL: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
        (0..)
            .map_while(CellType::from_index)
            .map(make_extrapolation)
            .collect()
    });
    &ALL[cell_type as usize]
}

fn make_extrapolation(cell_type: CellType) -> Vec<f64> {
    let linear = match cell_type {
        CellType::Tet10 => CellType::Tet4,
        CellType::Hex20 => CellType::Hex8,
        CellType::Wedge6 | CellType::Hex8 => cell_type,
        // One point: constant.
        CellType::Tet4 => return vec![1.0; 4],
        CellType::Tri3 | CellType::Tri6 | CellType::Quad4 | CellType::Quad8 => return Vec::new(),
    };
    let n = linear.n_nodes();
    let points = &Tabulation::of(cell_type, Purpose::Recovery).points;
    let at_points = DMatrix::from_fn(points.len(), n, |q, a| {
        shape_at(linear, points[q].xi).shape[a]
    });
    let nodes = natural_nodes(cell_type);
    let at_nodes = DMatrix::from_fn(nodes.len(), n, |b, a| shape_at(linear, nodes[b]).shape[a]);
    let inverse = at_points
        .try_inverse()
        .expect("the recovery points of a rule determine a linear field");
    (at_nodes * inverse).transpose().as_slice().to_vec()
}

/// Fetches the entries of the ghost nodes from their owners: as many slots a node as the most any node has, one
/// number of each slot after another to keep the buffers small.
fn append_ghosts(comm: &Comm, halo: &Halo, n_ghosts: usize, field: &mut NodalField) {
    let n_owned = field.start.len() - 1;
    let most = field
        .start
        .windows(2)
        .map(|w| w[1] - w[0])
        .max()
        .unwrap_or(0);
    let n_slots = comm.max(f64::from(most)) as usize;
    let mut owned = vec![0.0; n_slots * n_owned];
    let mut fetch = |number: &dyn Fn(u16, &[f64; 6]) -> f64| {
        for node in 0..n_owned {
            // An unused slot holds a material of -1.
            let entries = field
                .at_node(node)
                .map(|(material, value)| number(material, value));
            let slots = &mut owned[node * n_slots..(node + 1) * n_slots];
            for (slot, number) in slots.iter_mut().zip(entries.chain(std::iter::repeat(-1.0))) {
                *slot = number;
            }
        }
        let mut ghosts = vec![0.0; n_slots * n_ghosts];
        halo.forward(comm, &owned, &mut ghosts, n_slots);
        ghosts
    };
    let materials = fetch(&|material, _| f64::from(material));
    let components = [0, 1, 2, 3, 4, 5].map(|k| fetch(&|_, value| value[k]));
    for ghost in 0..n_ghosts {
        for slot in (ghost * n_slots..(ghost + 1) * n_slots).filter(|&slot| materials[slot] >= 0.0)
        {
            field.materials.push(materials[slot] as u16);
            field
                .values
                .push([0, 1, 2, 3, 4, 5].map(|k| components[k][slot]));
        }
        field.start.push(field.materials.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantity, make_extrapolation, nodal_field};
    use crate::assembly::Slabs;
    use crate::assembly::test_models::{distorted_box, mixed_mesh, model, split};
    use crate::element::shape::natural_nodes;
    use crate::element::{Purpose, Tabulation};
    use crate::model::{Load, Model};
    use crate::post::Solution;
    use fem_mesh::comm::run_threads;
    use fem_mesh::halo::Halo;
    use fem_mesh::{CellType, Comm, Mesh};

    /// Gradient du_i / dx_j of the linear field of the tests.
    const GRADIENT: [[f64; 3]; 3] = [
        [0.01, -0.003, 0.002],
        [0.005, -0.02, 0.004],
        [0.007, 0.001, 0.015],
    ];

    fn linear_field(model: &Model) -> Vec<f64> {
        let coords = model.mesh.coords.iter();
        coords
            .flat_map(|x| GRADIENT.map(|row| 0.3 + row[0] * x[0] + row[1] * x[1] + row[2] * x[2]))
            .collect()
    }

    fn on_1_to_4_ranks(mesh: &Mesh, body: impl Fn(&Comm, Model) + Sync) {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| body(comm, model(split(comm, mesh))));
        }
    }

    #[test]
    fn extrapolation_reproduces_linear_fields() {
        for cell_type in CellType::SOLIDS {
            let points = &Tabulation::of(cell_type, Purpose::Recovery).points;
            let matrix = make_extrapolation(cell_type);
            let field = |xi: [f64; 3]| {
                let slope = if cell_type == CellType::Tet4 {
                    0.0
                } else {
                    1.0
                };
                2.0 + slope * (0.5 * xi[0] - xi[1] + 3.0 * xi[2])
            };
            for (node, row) in natural_nodes(cell_type)
                .iter()
                .zip(matrix.chunks_exact(points.len()))
            {
                let value: f64 = row.iter().zip(points).map(|(w, p)| w * field(p.xi)).sum();
                assert!((value - field(*node)).abs() < 1e-13, "{cell_type}: {value}");
            }
        }
    }

    #[test]
    fn a_linear_field_has_exact_strain_and_stress_on_distorted_cells() {
        let g = GRADIENT;
        let strain = [
            g[0][0],
            g[1][1],
            g[2][2],
            g[0][1] + g[1][0],
            g[1][2] + g[2][1],
            g[2][0] + g[0][2],
        ];
        let (young, poisson) = (200.0, 0.3);
        let mu = young / 2.6;
        let lambda = young * poisson / (1.3 * 0.4);
        let volumetric = lambda * (strain[0] + strain[1] + strain[2]);
        let stress = [0, 1, 2, 3, 4, 5].map(|k| {
            if k < 3 {
                volumetric + 2.0 * mu * strain[k]
            } else {
                mu * strain[k]
            }
        });
        for cell_type in CellType::SOLIDS {
            on_1_to_4_ranks(&distorted_box(cell_type, [3, 2, 2], true), |comm, model| {
                let u = linear_field(&model);
                let solution = Solution::new(&model, &u);
                let halo = Halo::new(comm, &model.mesh.nodes);
                let slabs = Slabs::even(model.mesh.nodes.n_owned(), 3);
                for (quantity, expected) in [(Quantity::Strain, strain), (Quantity::Stress, stress)]
                {
                    let field = nodal_field(comm, &halo, &solution, &slabs, quantity);
                    for node in 0..model.mesh.nodes.n_local() {
                        let value = field.get(node, 0).unwrap();
                        for k in 0..6 {
                            assert!(
                                (value[k] - expected[k]).abs() < 1e-11,
                                "{cell_type} {quantity:?} {value:?}"
                            );
                        }
                    }
                }
            });
        }
    }

    #[test]
    fn free_expansion_causes_no_stress() {
        on_1_to_4_ranks(
            &distorted_box(CellType::Hex20, [3, 2, 2], true),
            |comm, mut model| {
                let cells = (0..model.mesh.n_cells() as u32).collect();
                model.loads = vec![Load::TemperatureChange {
                    cells,
                    change: 40.0,
                }];
                let u: Vec<f64> = model
                    .mesh
                    .coords
                    .iter()
                    .flatten()
                    .map(|x| 1e-3 * 40.0 * x)
                    .collect();
                let solution = Solution::new(&model, &u);
                let halo = Halo::new(comm, &model.mesh.nodes);
                let slabs = Slabs::even(model.mesh.nodes.n_owned(), 1);
                let field = nodal_field(comm, &halo, &solution, &slabs, Quantity::Stress);
                assert!(field.values.iter().flatten().all(|s| s.abs() < 1e-11));
                assert!(crate::post::strain_energy(comm, &solution).abs() < 1e-20);
            },
        );
    }

    #[test]
    fn materials_stay_apart_at_their_interface_also_on_ghost_nodes() {
        let mesh = mixed_mesh();
        on_1_to_4_ranks(&mesh, |comm, mut model| {
            let soft = crate::model::Material {
                young: 100.0,
                ..model.materials[0].clone()
            };
            model.materials.push(soft);
            for cell in 0..model.mesh.n_cells() {
                let nodes = model.mesh.cells.nodes_of(cell);
                let top: f64 = nodes
                    .iter()
                    .map(|&n| model.mesh.coords[n as usize][2])
                    .sum();
                model.cell_material[cell] = u16::from(top > nodes.len() as f64);
            }
            let u = linear_field(&model);
            let solution = Solution::new(&model, &u);
            let halo = Halo::new(comm, &model.mesh.nodes);
            let with_slabs = |n| {
                let slabs = Slabs::even(model.mesh.nodes.n_owned(), n);
                nodal_field(comm, &halo, &solution, &slabs, Quantity::Stress)
            };
            let field = with_slabs(1);
            assert_eq!(with_slabs(3), field);
            let mut n_shared = 0;
            for cell in 0..model.mesh.n_owned_cells {
                for &node in model.mesh.cells.nodes_of(cell) {
                    let here: Vec<_> = field.at_node(node as usize).collect();
                    assert!(
                        field
                            .get(node as usize, model.cell_material[cell])
                            .is_some()
                    );
                    if let [(0, stiff), (1, soft)] = here[..] {
                        n_shared += 1;
                        assert!((stiff[3] - 2.0 * soft[3]).abs() < 1e-11);
                    }
                }
            }
            assert!(comm.sum(f64::from(n_shared)) > 0.0);
        });
    }
}
