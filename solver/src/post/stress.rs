//! Strains of a cell at its quadrature points, from which they are extrapolated to its nodes.
//!
//! Strains are most accurate at the recovery points (Barlow 1976); the polynomial through their values there is taken at
//! the nodes (see [`crate::element::formulation::extrapolation`]).
//!
//! Invariant: one cell at a time; knows no neighbors and no averages.

use crate::assembly::Slabs;
use crate::conditions::{CellConditions, Conditions, PointLaw};
use crate::element::formulation::{is_plain, recovery_rule, rule};
use crate::element::general::{Element, MAX_POINTS};
use crate::element::geometry::{cofactors, determinant, dot, jacobian};
use crate::element::{Formulation, GeneralElement, MAX_NODES, Tabulation};
use crate::material::Isotropic;
use crate::model::Model;
use fem_mesh::{CellType, LocalMesh};

/// Largest number of recovery points of a cell type.
pub const MAX_RECOVERY_POINTS: usize = 8;

/// A model with the displacement of its local nodes: all that strains and stresses depend on.
pub struct Deformation<'a> {
    /// The model.
    pub model: &'a Model,
    displacement: &'a [[f64; 3]],
    conditions: Conditions<'a>,
}

/// The law of a cell.
pub enum CellLaw<'a> {
    /// A constant isotropic law and one change of temperature, K, say it all.
    Uniform(Isotropic, f64),
    /// The law, or what strains the cell, changes from point to point.
    ByPoint(Box<CellConditions<'a>>),
}

impl CellLaw<'_> {
    /// Stress, Pa, at point `q` of a rule for the cell, at which the total strain is `strain`.
    pub fn stress(&self, table: &Tabulation, q: usize, strain: &[f64; 6]) -> [f64; 6] {
        match self {
            CellLaw::Uniform(law, change) => law.stress(strain, *change),
            CellLaw::ByPoint(law) => law.at(table.points[q].xi, table.shape(q)).stress(strain),
        }
    }
}

impl<'a> Deformation<'a> {
    /// The displacement `u`, m, has 3 components for each local node, owned nodes first, then ghosts.
    ///
    /// # Panics
    /// If `u` has another length.
    pub fn new(model: &'a Model, u: &'a [f64]) -> Self {
        let (displacement, rest) = u.as_chunks();
        assert!(
            displacement.len() == model.mesh.nodes.n_local() && rest.is_empty(),
            "3 components a local node"
        );
        Deformation {
            model,
            displacement,
            conditions: Conditions::new(model),
        }
    }

    /// What the materials do.
    pub fn conditions(&self) -> &Conditions<'a> {
        &self.conditions
    }

    /// Law of a cell.
    pub fn law(&self, cell: usize) -> CellLaw<'a> {
        match self.conditions.uniform(cell) {
            Some((law, change)) => CellLaw::Uniform(law, change),
            None => CellLaw::ByPoint(Box::new(self.conditions.of_cell(cell))),
        }
    }

    /// Type and formulation of a cell.
    pub fn element_of(&self, cell: usize) -> (CellType, Formulation) {
        let types = &self.model.mesh.cells.types;
        (types[cell], self.model.cell_formulation[cell])
    }

    /// A cell whose strains are not just those of its shape functions, with strains and laws at its points; `None` for the
    /// others ([`is_plain`]).
    pub fn general(&self, cell: usize) -> Option<GeneralCell> {
        let (cell_type, formulation) = self.element_of(cell);
        if is_plain(formulation) {
            return None;
        }
        let motion = self.gather(cell);
        let table = Tabulation::of(cell_type, rule(formulation));
        let of_cell = self.conditions.of_cell(cell);
        let laws: Vec<PointLaw> = of_cell.at_points(table).collect();
        let mut element = GeneralElement::default();
        element.set(&Element {
            cell_type,
            formulation,
            coords: &motion.x[..cell_type.n_nodes()],
            d: &laws.iter().map(|law| law.d).collect::<Vec<_>>(),
        });
        let mut strains = [[0.0; 6]; MAX_POINTS];
        let held: Vec<[f64; 6]> = laws.iter().map(PointLaw::held_stress).collect();
        element.strains_into(&motion.u, &held, &mut strains);
        Some(GeneralCell {
            element,
            strains,
            laws,
            u: motion.u,
        })
    }

    /// Coordinates and displacements of a cell's nodes.
    pub fn gather(&self, cell: usize) -> CellMotion {
        let mesh = &self.model.mesh;
        let nodes = mesh.cells.nodes_of(cell);
        let mut motion = CellMotion {
            x: [[0.0; 3]; MAX_NODES],
            u: [[0.0; 3]; MAX_NODES],
        };
        for (a, &node) in nodes.iter().enumerate() {
            motion.x[a] = mesh.coords[node as usize];
            motion.u[a] = self.displacement[node as usize];
        }
        motion
    }

    /// Strains at the quadrature points of a cell's stiffness, in the order of
    /// [`rule`](crate::element::formulation::rule), appended to `into`.
    pub fn integration_strains(&self, cell: usize, into: &mut Vec<[f64; 6]>) {
        if let Some(general) = self.general(cell) {
            into.extend_from_slice(&general.strains[..general.element.n_points()]);
            return;
        }
        let (cell_type, formulation) = self.element_of(cell);
        let table = Tabulation::of(cell_type, rule(formulation));
        let motion = self.gather(cell);
        into.extend((0..table.n_points()).map(|q| motion.at(table.grad(q)).strain));
    }

    /// Stresses, Pa, at the points of [`Deformation::integration_strains`], appended to `into`.
    pub fn integration_stresses(&self, cell: usize, into: &mut Vec<[f64; 6]>) {
        if let Some(general) = self.general(cell) {
            into.extend(general.stresses());
            return;
        }
        let (cell_type, formulation) = self.element_of(cell);
        let table = Tabulation::of(cell_type, rule(formulation));
        let (motion, law) = (self.gather(cell), self.law(cell));
        let stress = |q: usize| law.stress(table, q, &motion.at(table.grad(q)).strain);
        into.extend((0..table.n_points()).map(stress));
    }

    /// Stresses, Pa, at the recovery points of a cell, as [`Deformation::recovery_strains`].
    pub fn recovery_stresses(&self, cell: usize) -> ([[f64; 6]; MAX_RECOVERY_POINTS], usize) {
        if let Some(general) = self.general(cell) {
            let mut stresses = [[0.0; 6]; MAX_RECOVERY_POINTS];
            for (into, stress) in stresses.iter_mut().zip(general.stresses()) {
                *into = stress;
            }
            return (stresses, general.element.n_points());
        }
        let (cell_type, formulation) = self.element_of(cell);
        let table = Tabulation::of(cell_type, recovery_rule(formulation));
        let (mut tensors, n_points) = self.recovery_strains(cell);
        let law = self.law(cell);
        for (q, tensor) in tensors[..n_points].iter_mut().enumerate() {
            *tensor = law.stress(table, q, tensor);
        }
        (tensors, n_points)
    }

    /// Strains at the recovery points of a cell, in the order of their rule ([`recovery_rule`]), and their number.
    pub fn recovery_strains(&self, cell: usize) -> ([[f64; 6]; MAX_RECOVERY_POINTS], usize) {
        let (cell_type, formulation) = self.element_of(cell);
        let table = Tabulation::of(cell_type, recovery_rule(formulation));
        if let Some(general) = self.general(cell) {
            // These integrate at the recovery points.
            let mut strains = [[0.0; 6]; MAX_RECOVERY_POINTS];
            let n = general.element.n_points();
            strains[..n].copy_from_slice(&general.strains[..n]);
            return (strains, n);
        }
        let motion = self.gather(cell);
        let mut strains = [[0.0; 6]; MAX_RECOVERY_POINTS];
        for (q, strain) in strains[..table.n_points()].iter_mut().enumerate() {
            *strain = motion.at(table.grad(q)).strain;
        }
        (strains, table.n_points())
    }
}

/// Owned nodes divided among the threads of the current rayon pool by the number of cells they touch.
pub(super) fn node_slabs(mesh: &LocalMesh) -> Slabs {
    let n_owned = mesh.nodes.n_owned();
    let mut work = vec![0u32; n_owned + 1];
    for &node in mesh
        .cells
        .nodes
        .iter()
        .filter(|&&node| (node as usize) < n_owned)
    {
        work[node as usize + 1] += 1;
    }
    for node in 0..n_owned {
        work[node + 1] += work[node];
    }
    Slabs::balanced(&work, rayon::current_num_threads())
}

/// A cell of a formulation with strains of its own.
pub struct GeneralCell {
    /// Its strain-displacement matrices.
    pub element: GeneralElement,
    /// Strains at its points.
    pub strains: [[f64; 6]; MAX_POINTS],
    /// Laws at its points.
    pub laws: Vec<PointLaw>,
    /// Displacements of its nodes, m.
    pub u: [[f64; 3]; MAX_NODES],
}

impl GeneralCell {
    /// Stresses at its points, Pa.
    pub fn stresses(&self) -> impl Iterator<Item = [f64; 6]> {
        (self.laws.iter().zip(&self.strains)).map(|(law, strain)| law.stress(strain))
    }
}

/// Coordinates and displacements of the nodes of one cell, m.
pub struct CellMotion {
    x: [[f64; 3]; MAX_NODES],
    u: [[f64; 3]; MAX_NODES],
}

/// Deformation and geometry at a point of a cell.
pub struct PointState {
    /// Strain.
    pub strain: [f64; 6],
    /// Cofactors of the Jacobian: det J dN/dx is their product with dN/dxi.
    pub cofactors: [[f64; 3]; 3],
    /// Determinant of the Jacobian, m3 per unit of natural volume.
    pub det_jac: f64,
}

impl CellMotion {
    /// At the point where the natural gradients of the shape functions are `grad`.
    #[inline]
    pub fn at(&self, grad: &[[f64; 3]]) -> PointState {
        let jac = jacobian(&self.x, grad);
        let cofactors = cofactors(&jac);
        let det_jac = determinant(&jac, &cofactors);
        let scale = 1.0 / det_jac;
        // du/dx = du/dxi dxi/dx
        let natural = jacobian(&self.u, grad);
        let du = |i: usize, j: usize| dot(natural[i], cofactors[j]) * scale;
        let strain = [
            du(0, 0),
            du(1, 1),
            du(2, 2),
            du(0, 1) + du(1, 0),
            du(1, 2) + du(2, 1),
            du(2, 0) + du(0, 2),
        ];
        PointState {
            strain,
            cofactors,
            det_jac,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Deformation;
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::element::formulation::{extrapolation, rule};
    use crate::element::{Formulation, Purpose, Tabulation, geometry};
    use crate::post::test_fields::{assert_close, linear, linear_strain, meshes, sample, strain};
    use fem_mesh::{CellType, Comm, Mesh};

    #[test]
    fn constant_strain_is_exact_in_curved_cells() {
        for mesh in meshes(true) {
            let model = model(split(&Comm::alone(), &mesh));
            let u = sample(&model.mesh, linear);
            let deformation = Deformation::new(&model, &u);
            for cell in 0..model.mesh.n_cells() {
                let (strains, n_points) = deformation.recovery_strains(cell);
                strains[..n_points]
                    .iter()
                    .for_each(|found| assert_close(found, &linear_strain(), 1e-12));
            }
        }
    }

    #[test]
    fn constant_strain_is_exact_at_the_points_of_every_formulation() {
        for (_, formulation) in Formulation::NAMES {
            for &cell_type in formulation.cell_types() {
                let mesh = distorted_box(cell_type, [2, 2, 2], false);
                let mut model = model(split(&Comm::alone(), &mesh));
                model.cell_formulation.fill(formulation);
                let u = sample(&model.mesh, linear);
                let deformation = Deformation::new(&model, &u);
                for cell in 0..model.mesh.n_cells() {
                    let (recovered, n) = deformation.recovery_strains(cell);
                    let mut strains = recovered[..n].to_vec();
                    deformation.integration_strains(cell, &mut strains);
                    let points = Tabulation::of(cell_type, rule(formulation));
                    assert_eq!(strains.len(), n + points.n_points());
                    for found in &strains {
                        assert_close(found, &linear_strain(), 1e-12);
                    }
                }
            }
        }
    }

    /// Displacement with linear strains, and its strain.
    fn quadratic([x, y, z]: [f64; 3]) -> ([f64; 3], [f64; 6]) {
        let u = [
            0.1 * x * x - 0.2 * y * z,
            0.3 * x * y + 0.1 * z * z,
            0.2 * y * y - 0.1 * x * z,
        ];
        let gradient = [
            [0.2 * x, -0.2 * z, -0.2 * y],
            [0.3 * y, 0.3 * x, 0.2 * z],
            [-0.1 * z, 0.4 * y, -0.1 * x],
        ];
        (u, strain(gradient))
    }

    /// Parallelepipeds and what they are cut into, in which second-order cells reproduce all quadratic fields.
    fn sheared_box(cell_type: CellType) -> Mesh {
        let mut mesh = distorted_box(cell_type, [1, 1, 1], false);
        for [x, y, z] in &mut mesh.coords {
            (*x, *y) = (*x + 0.3 * *y - 0.2 * *z, *y + 0.4 * *z);
        }
        mesh
    }

    #[test]
    fn second_order_cells_have_exact_linear_strains() {
        let second_order = CellType::SOLIDS.into_iter().filter(|t| t.order() == 2);
        let sheared = second_order.map(sheared_box);
        for mesh in sheared.chain([distorted_box(CellType::Tet10, [2, 2, 2], false)]) {
            let model = model(split(&Comm::alone(), &mesh));
            let u = sample(&model.mesh, |x| quadratic(x).0);
            let deformation = Deformation::new(&model, &u);
            for cell in 0..model.mesh.n_cells() {
                let cell_type = model.mesh.cells.types[cell];
                let mut coords = vec![[0.0; 3]; cell_type.n_nodes()];
                model.mesh.gather_coords(cell, &mut coords);
                let table = Tabulation::of(cell_type, Purpose::Recovery);
                let (strains, n_points) = deformation.recovery_strains(cell);
                for (q, found) in strains[..n_points].iter().enumerate() {
                    let x = geometry::interpolate(&coords, table.shape(q));
                    assert_close(found, &quadratic(x).1, 1e-12);
                }
                let weights = extrapolation(cell_type, Formulation::Full);
                for (weights, &x) in weights.chunks_exact(n_points).zip(&coords) {
                    let found = geometry::interpolate(&strains[..n_points], weights);
                    assert_close(&found, &quadratic(x).1, 1e-12);
                }
            }
        }
    }
}
