//! Internal forces, from which reactions follow, and the strain energy.
//!
//! Invariant: the quadrature of the stiffness, so that without thermal strain the internal force is K u to rounding.

use super::stress::Solution;
use crate::assembly::Slabs;
use crate::assembly::slabs::cells_touching;
use crate::element::geometry::dot;
use crate::element::{MAX_NODES, Purpose, Tabulation};
use fem_mesh::Comm;
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

/// Internal force of this rank's owned nodes, the integral of B^T stress, 3 a node, N. At prescribed degrees of
/// freedom the reaction is this less the external force; everywhere else the two balance. `slabs` divides the owned
/// nodes among threads; the result does not depend on it.
pub fn internal_force(solution: &Solution, slabs: &Slabs) -> Vec<f64> {
    let mesh = &solution.model.mesh;
    let mut force = vec![[0.0; 3]; mesh.nodes.n_owned()];
    slabs.for_each(&mut force, |rows, part| {
        for cell in cells_touching(&mesh.cells, rows.clone()) {
            let nodal = cell_force(solution, cell);
            for (&node, value) in mesh.cells.nodes_of(cell).iter().zip(nodal) {
                if rows.contains(&(node as usize)) {
                    let sum = &mut part[node as usize - rows.start];
                    for i in 0..3 {
                        sum[i] += value[i];
                    }
                }
            }
        }
    });
    force.into_flattened()
}

fn cell_force(solution: &Solution, cell: usize) -> [[f64; 3]; MAX_NODES] {
    let table = Tabulation::of(solution.model.mesh.cells.types[cell], Purpose::Stiffness);
    let mut nodal = [[0.0; 3]; MAX_NODES];
    solution.at_points(cell, Purpose::Stiffness, |q, at| {
        let [xx, yy, zz, xy, yz, zx] = at.stress;
        let weight = table.points[q].weight;
        // w det J stress dN/dx, with the cofactors for det J times the inverse of J.
        let rows = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]];
        let by_natural = rows.map(|row| {
            [0, 1, 2].map(|j| weight * (0..3).map(|k| row[k] * at.cofactors[k][j]).sum::<f64>())
        });
        for (slot, dn) in nodal.iter_mut().zip(table.grad(q)) {
            for i in 0..3 {
                slot[i] += dot(by_natural[i], *dn);
            }
        }
    });
    nodal
}

/// Collective. Elastic energy of the whole model, J. Summed over runs of cells of fixed length, so that the number of
/// threads changes nothing.
pub fn strain_energy(comm: &Comm, solution: &Solution) -> f64 {
    const RUN: usize = 1024;
    let cells: Vec<usize> = (0..solution.model.mesh.n_owned_cells).collect();
    let runs: Vec<f64> = cells
        .par_chunks(RUN)
        .map(|run| run.iter().map(|&cell| solution.strain_energy(cell)).sum())
        .collect();
    comm.sum(runs.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::{internal_force, strain_energy};
    use crate::assembly::test_models::{dense, distorted_box, mixed_mesh, model, split};
    use crate::assembly::{
        Pattern, Slabs, add_thermal_force, assemble_stiffness, temperature_changes,
    };
    use crate::element::test_cells::noise;
    use crate::model::Load;
    use crate::post::Solution;
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Comm};
    use nalgebra::DVector;

    #[test]
    fn internal_force_and_energy_agree_with_the_stiffness_matrix() {
        let meshes = CellType::SOLIDS.map(|t| distorted_box(t, [2, 2, 2], true));
        for mesh in meshes.iter().chain([&mixed_mesh()]) {
            let alone = Comm::alone();
            let whole = model(split(&alone, mesh));
            let (pattern, mut rows) = Pattern::new(&whole.mesh).unwrap();
            assemble_stiffness(&alone, &whole, &pattern, &mut rows).unwrap();
            let u = DVector::from_fn(3 * mesh.n_nodes(), |dof, _| 0.01 * noise(dof as u64));
            let force = dense(&whole.mesh, &rows) * &u;
            let energy = 0.5 * u.dot(&force);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let part = model(split(comm, mesh));
                    let nodes = &part.mesh.nodes;
                    let local: Vec<f64> = (0..3 * nodes.n_local())
                        .map(|dof| u[3 * nodes.global(dof / 3) as usize + dof % 3])
                        .collect();
                    let solution = Solution::new(&part, &local);
                    let computed = internal_force(&solution, &Slabs::even(nodes.n_owned(), 2));
                    assert_eq!(
                        computed,
                        internal_force(&solution, &Slabs::even(nodes.n_owned(), 5))
                    );
                    let expected = force.rows(3 * nodes.offset() as usize, 3 * nodes.n_owned());
                    let error = (DVector::from_vec(computed) - expected).norm();
                    assert!(error < 1e-13 * force.norm(), "{error:e}");
                    assert!((strain_energy(comm, &solution) - energy).abs() < 1e-12 * energy);
                });
            }
        }
    }

    #[test]
    fn free_expansion_balances_the_thermal_load() {
        let comm = Comm::alone();
        let mut model = model(split(
            &comm,
            &distorted_box(CellType::Hex20, [2, 2, 2], true),
        ));
        let cells = (0..model.mesh.n_cells() as u32).collect();
        model.loads = vec![Load::TemperatureChange {
            cells,
            change: 40.0,
        }];
        let slabs = Slabs::even(model.mesh.nodes.n_owned(), 2);
        let mut thermal = vec![0.0; 3 * model.mesh.nodes.n_owned()];
        add_thermal_force(
            &model,
            &slabs,
            &temperature_changes(&model).unwrap(),
            &mut thermal,
        );
        let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
        assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
        let u = DVector::from_iterator(
            thermal.len(),
            model.mesh.coords.iter().flatten().map(|x| 0.04 * x),
        );
        let force = dense(&model.mesh, &rows) * u;
        assert!((&force - DVector::from_vec(thermal)).norm() < 1e-12 * force.norm());
    }

    /// The patch test: under a linear field no inner node feels a force.
    #[test]
    fn a_linear_field_is_in_balance_inside() {
        for cell_type in CellType::SOLIDS {
            // Four points do not integrate a curved tet10 exactly; straight ones they do.
            let curved = cell_type != CellType::Tet10;
            let comm = Comm::alone();
            let model = model(split(&comm, &distorted_box(cell_type, [3, 2, 2], curved)));
            let coords = &model.mesh.coords;
            let u: Vec<f64> = coords
                .iter()
                .flat_map(|[x, y, z]| [0.1 * x + 0.2 * y, -0.1 * z, 0.3 * x])
                .collect();
            let force = internal_force(&Solution::new(&model, &u), &Slabs::even(coords.len(), 2));
            let largest = force.iter().fold(0.0f64, |m, f| m.max(f.abs()));
            let mut n_inner = 0;
            for (f, x) in force.as_chunks::<3>().0.iter().zip(coords) {
                if (0..3).all(|i| x[i] > 1e-9 && x[i] < [1.5, 1.0, 2.0][i] - 1e-9) {
                    n_inner += 1;
                    assert!(
                        f.iter().all(|f| f.abs() < 1e-13 * largest),
                        "{cell_type}: {f:?}"
                    );
                }
            }
            assert!(n_inner > 0);
        }
    }
}
