//! Strain and stress at points of one cell.
//!
//! Invariant: one cell at a time; averages nothing.

use crate::assembly::temperature_changes;
use crate::element::geometry::{cofactors, determinant, dot, jacobian};
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::material::Isotropic;
use crate::model::Model;

/// A displacement field on a model, with what is needed to take its stresses.
pub struct Solution<'a> {
    /// The model.
    pub model: &'a Model,
    /// Displacement of all local nodes, ghosts included, 3 a node, m.
    pub displacement: &'a [f64],
    laws: Vec<Isotropic>,
    temperature_changes: Option<Vec<f64>>,
}

/// State at one quadrature point.
#[derive(Clone, Copy, Debug)]
pub struct PointState {
    /// Total strain, thermal part included.
    pub strain: [f64; 6],
    /// Stress, Pa.
    pub stress: [f64; 6],
    /// Weight times det J, m3.
    pub volume: f64,
    /// Cofactors of the Jacobian.
    pub cofactors: [[f64; 3]; 3],
}

impl<'a> Solution<'a> {
    /// The field `displacement` (all local nodes, 3 a node, m) on `model`.
    pub fn new(model: &'a Model, displacement: &'a [f64]) -> Self {
        assert_eq!(
            displacement.len(),
            3 * model.mesh.nodes.n_local(),
            "3 components of each local node"
        );
        Solution {
            model,
            displacement,
            laws: model.materials.iter().map(Isotropic::new).collect(),
            temperature_changes: temperature_changes(model),
        }
    }

    /// The law of a cell.
    fn law(&self, cell: usize) -> &Isotropic {
        &self.laws[usize::from(self.model.cell_material[cell])]
    }

    /// Change of temperature of a cell, K.
    fn temperature_change(&self, cell: usize) -> f64 {
        self.temperature_changes
            .as_ref()
            .map_or(0.0, |changes| changes[cell])
    }

    /// Displacements of the nodes of a cell, in node order; zero past their number.
    pub fn gather(&self, cell: usize) -> [[f64; 3]; MAX_NODES] {
        let all = self.displacement.as_chunks::<3>().0;
        let mut u = [[0.0; 3]; MAX_NODES];
        for (slot, &node) in u.iter_mut().zip(self.model.mesh.cells.nodes_of(cell)) {
            *slot = all[node as usize];
        }
        u
    }

    /// Calls `f(q, state)` at each point of the rule for `purpose` of a cell.
    pub fn at_points(&self, cell: usize, purpose: Purpose, mut f: impl FnMut(usize, PointState)) {
        let mesh = &self.model.mesh;
        let table = Tabulation::of(mesh.cells.types[cell], purpose);
        let (law, change) = (self.law(cell), self.temperature_change(cell));
        let mut coords = [[0.0; 3]; MAX_NODES];
        mesh.gather_coords(cell, &mut coords);
        let u = self.gather(cell);
        let n_nodes = table.n_nodes();
        for (q, point) in table.points.iter().enumerate() {
            let jac = jacobian(&coords[..n_nodes], table.grad(q));
            let by_natural = jacobian(&u[..n_nodes], table.grad(q));
            let cofactors = cofactors(&jac);
            let det = determinant(&jac, &cofactors);
            // du_i / dx_k = sum_j du_i / dxi_j dxi_j / dx_k.
            let h = by_natural.map(|du| cofactors.map(|row| dot(du, row) / det));
            let strain = [
                h[0][0],
                h[1][1],
                h[2][2],
                h[0][1] + h[1][0],
                h[1][2] + h[2][1],
                h[2][0] + h[0][2],
            ];
            let stress = law.stress(&strain, change);
            f(
                q,
                PointState {
                    strain,
                    stress,
                    volume: point.weight * det,
                    cofactors,
                },
            );
        }
    }

    /// Elastic energy of a cell, J: half of stress times strain without its thermal part.
    pub fn strain_energy(&self, cell: usize) -> f64 {
        let thermal = self.law(cell).expansion * self.temperature_change(cell);
        let mut energy = 0.0;
        self.at_points(cell, Purpose::Stiffness, |_, at| {
            let work: f64 = at.stress.iter().zip(&at.strain).map(|(s, e)| s * e).sum();
            let thermal_work = thermal * (at.stress[0] + at.stress[1] + at.stress[2]);
            energy += 0.5 * at.volume * (work - thermal_work);
        });
        energy
    }
}
