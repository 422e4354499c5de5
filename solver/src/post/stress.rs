//! Strains of a cell at its quadrature points, and their extrapolation to its nodes.
//!
//! Strains are most accurate at the recovery points (Barlow 1976); the polynomial through their values there (constant
//! for tet4, linear for tet10, linear times linear for wedge6, trilinear for hexahedra) is taken at the nodes.
//!
//! Invariant: one cell at a time; knows no neighbors and no averages.

use crate::assembly::Slabs;
use crate::conditions::{CellConditions, Conditions};
use crate::element::geometry::{cofactors, determinant, dot, jacobian};
use crate::element::shape::natural_nodes;
use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::material::Isotropic;
use crate::model::Model;
use fem_mesh::{CellType, LocalMesh};
use nalgebra::DMatrix;
use std::sync::LazyLock;

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

    /// Stresses, Pa, at the recovery points of a cell, as [`Deformation::recovery_strains`].
    pub fn recovery_stresses(&self, cell: usize) -> ([[f64; 6]; MAX_RECOVERY_POINTS], usize) {
        let table = Tabulation::of(self.model.mesh.cells.types[cell], Purpose::Recovery);
        let (mut tensors, n_points) = self.recovery_strains(cell);
        let law = self.law(cell);
        for (q, tensor) in tensors[..n_points].iter_mut().enumerate() {
            *tensor = law.stress(table, q, tensor);
        }
        (tensors, n_points)
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

    /// Strains at the recovery points of a cell, in the order of [`Purpose::Recovery`], and their number.
    pub fn recovery_strains(&self, cell: usize) -> ([[f64; 6]; MAX_RECOVERY_POINTS], usize) {
        let table = Tabulation::of(self.model.mesh.cells.types[cell], Purpose::Recovery);
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

/// Weights of the values at the recovery points for the value at node `node`: row by row, a row for each node.
pub fn extrapolation(cell_type: CellType) -> &'static [f64] {
    static ALL: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
        let types = (0..).map_while(CellType::from_index);
        types
            .map(|t| {
                if CellType::SOLIDS.contains(&t) {
                    extrapolation_matrix(t)
                } else {
                    Vec::new()
                }
            })
            .collect()
    });
    &ALL[cell_type as usize]
}

/// P(nodes) P(points)^-1, with P the monomials of the polynomial through the points.
fn extrapolation_matrix(cell_type: CellType) -> Vec<f64> {
    let points: Vec<[f64; 3]> = Tabulation::of(cell_type, Purpose::Recovery)
        .points
        .iter()
        .map(|point| point.xi)
        .collect();
    let monomials = |x: &[[f64; 3]]| {
        let rows: Vec<f64> = x.iter().flat_map(|&xi| monomials(cell_type, xi)).collect();
        DMatrix::from_row_slice(x.len(), rows.len() / x.len(), &rows)
    };
    let at_points = monomials(&points);
    // The points of a rule are unisolvent for its polynomial, a property of the tables that the tests check.
    let inverse = at_points
        .try_inverse()
        .unwrap_or_else(|| unreachable!("recovery points of {cell_type}"));
    let weights = monomials(natural_nodes(cell_type)) * inverse;
    weights.transpose().as_slice().to_vec()
}

/// Monomials of the polynomial that is fixed by the values at the recovery points.
fn monomials(cell_type: CellType, [r, s, t]: [f64; 3]) -> Vec<f64> {
    match cell_type {
        CellType::Tet10 => vec![1.0, r, s, t],
        CellType::Wedge6 => vec![1.0, r, s, t, r * t, s * t],
        CellType::Hex8 | CellType::Hex20 => vec![1.0, r, s, t, r * s, s * t, t * r, r * s * t],
        _ => vec![1.0],
    }
}

#[cfg(test)]
mod tests {
    use super::{Deformation, extrapolation, monomials};
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::element::shape::natural_nodes;
    use crate::element::{Purpose, Tabulation, geometry};
    use crate::post::test_fields::{assert_close, linear, linear_strain, meshes, sample, strain};
    use fem_mesh::{CellType, Comm, Mesh};

    #[test]
    fn extrapolation_reproduces_its_polynomial_at_the_nodes() {
        for cell_type in CellType::SOLIDS {
            let points = &Tabulation::of(cell_type, Purpose::Recovery).points;
            for k in 0..points.len() {
                for (weights, &node) in extrapolation(cell_type)
                    .chunks_exact(points.len())
                    .zip(natural_nodes(cell_type))
                {
                    let at_points = points.iter().map(|point| monomials(cell_type, point.xi)[k]);
                    let value: f64 = at_points.zip(weights).map(|(v, w)| v * w).sum();
                    assert!(
                        (value - monomials(cell_type, node)[k]).abs() < 1e-14,
                        "{cell_type}, monomial {k}"
                    );
                }
            }
        }
    }

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

    /// Parallelepipeds, in which hex20 reproduces all quadratic fields.
    fn sheared_box() -> Mesh {
        let mut mesh = distorted_box(CellType::Hex20, [1, 1, 1], false);
        for [x, y, z] in &mut mesh.coords {
            (*x, *y) = (*x + 0.3 * *y - 0.2 * *z, *y + 0.4 * *z);
        }
        mesh
    }

    #[test]
    fn second_order_cells_have_exact_linear_strains() {
        for mesh in [
            sheared_box(),
            distorted_box(CellType::Tet10, [2, 2, 2], false),
        ] {
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
                for (weights, &x) in extrapolation(cell_type).chunks_exact(n_points).zip(&coords) {
                    let found = geometry::interpolate(&strains[..n_points], weights);
                    assert_close(&found, &quadratic(x).1, 1e-12);
                }
            }
        }
    }
}
