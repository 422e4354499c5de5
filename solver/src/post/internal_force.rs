//! Internal forces and strain energy of a displacement.
//!
//! Invariant: the quadrature of the stiffness, so that without thermal strain the internal force is K u.

use super::stress::{Deformation, node_slabs};
use crate::assembly::slabs::cells_touching;
use crate::element::geometry::dot;
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::model::Model;
use fem_mesh::Comm;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Cells whose energies are summed as one piece; part of the definition of the sum.
const CHUNK: usize = 1024;

/// Integral of B^T stress over all cells at the owned nodes, 3 a node, N. `u` is the displacement, m, 3 a local node.
/// Less the external force it is the reaction where the displacement is prescribed and the residual elsewhere.
///
/// Every cell that touches an owned node is held here: nothing is communicated.
pub fn internal_force(model: &Model, u: &[f64]) -> Vec<f64> {
    let deformation = Deformation::new(model, u);
    let cells = &model.mesh.cells;
    let mut force = vec![[0.0; 3]; model.mesh.nodes.n_owned()];
    node_slabs(&model.mesh).for_each(&mut force, |nodes, force| {
        for cell in cells_touching(cells, nodes.clone()) {
            let of_cell = cell_force(&deformation, cell);
            for (&node, f) in cells.nodes_of(cell).iter().zip(of_cell) {
                if nodes.contains(&(node as usize)) {
                    let sum = &mut force[node as usize - nodes.start];
                    *sum = [0, 1, 2].map(|i| sum[i] + f[i]);
                }
            }
        }
    });
    force.into_flattened()
}

/// Internal forces of one cell at its nodes.
fn cell_force(deformation: &Deformation, cell: usize) -> [[f64; 3]; MAX_NODES] {
    let table = Tabulation::of(deformation.model.mesh.cells.types[cell], Purpose::Stiffness);
    let (law, temperature) = (deformation.law(cell), deformation.temperature_change(cell));
    let motion = deformation.gather(cell);
    let mut force = [[0.0; 3]; MAX_NODES];
    for (q, point) in table.points.iter().enumerate() {
        let natural = table.grad(q);
        let state = motion.at(natural);
        let [xx, yy, zz, xy, yz, zx] = law.stress(&state.strain, temperature).map(|s| point.weight * s);
        let stress = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]];
        // Stress times det J dN/dx, with the part that is common to all nodes taken first.
        let columns = [0, 1, 2].map(|k| state.cofactors.map(|row| row[k]));
        let flux = stress.map(|row| columns.map(|column| dot(row, column)));
        for (f, dn) in force.iter_mut().zip(natural) {
            for i in 0..3 {
                f[i] += dot(flux[i], *dn);
            }
        }
    }
    force
}

/// Collective. Elastic energy, J: half the integral of stress times elastic strain (total less thermal). `u` is the
/// displacement, m, 3 a local node.
pub fn strain_energy(comm: &Comm, model: &Model, u: &[f64]) -> f64 {
    let deformation = Deformation::new(model, u);
    let n = model.mesh.n_owned_cells;
    let chunks: Vec<f64> = (0..n.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| (chunk * CHUNK..n.min((chunk + 1) * CHUNK)).map(|cell| cell_energy(&deformation, cell)).sum())
        .collect();
    comm.sum(chunks.iter().sum())
}

/// Elastic energy of one cell.
fn cell_energy(deformation: &Deformation, cell: usize) -> f64 {
    let table = Tabulation::of(deformation.model.mesh.cells.types[cell], Purpose::Stiffness);
    let (law, temperature) = (deformation.law(cell), deformation.temperature_change(cell));
    let motion = deformation.gather(cell);
    let mut energy = 0.0;
    for (q, point) in table.points.iter().enumerate() {
        let state = motion.at(table.grad(q));
        let stress = law.stress(&state.strain, temperature);
        let thermal = law.expansion * temperature;
        let mut work = 0.0;
        for i in 0..6 {
            work += stress[i] * if i < 3 { state.strain[i] - thermal } else { state.strain[i] };
        }
        energy += 0.5 * point.weight * state.det_jac * work;
    }
    energy
}
