//! Elements of any formulation and any linear law, one at a time.
//!
//! Every formulation is reduced to strain-displacement matrices B at the quadrature points, so that stiffness
//! sum_q V_q B^T D B, forces sum_q V_q B^T stress and recovered strains B u agree with one another:
//!
//! - `Full`, `Reduced` hex20 and wedge6: derivatives of the shape functions.
//! - `BBar`: the volumetric part of each is its mean over the element (Hughes, Int. J. Numer. Meth. Engng 15 (1980)
//!   1413-1418, mean dilatation).
//! - `IncompatibleModes`: the internal modes 1 - xi_k^2 (Wilson et al. 1973), whose gradients are taken with the Jacobian J0
//!   of the center, det J0 / det J J0^-T d(1 - xi_k^2)/dxi (Taylor, Beresford and Wilson, Int. J. Numer. Meth. Engng 10
//!   (1976) 1211-1219): they do no work on a constant stress, so that patch tests pass. Their amplitudes make the
//!   energy least, a = a0 - S u with S = K_aa^-1 K_au, which leaves B - G S for the displacements.
//! - `Reduced` hex8: the mean strain of the element, one point.
//!
//! Reduced elements resist besides what their points do not see ([`super::hourglass`]).
//!
//! Invariant: one element, no mesh; knows a law only as its 6x6 matrix at each point.

use super::formulation::mean_rule;
use super::geometry::{center, cofactors, determinant, jacobian, point_geometry};
use super::hourglass::Hourglass;
use super::quadrature::{Purpose, Tabulation};
use super::shape::{MAX_NODES, shape_at};
use fem_io::case::Formulation;
use fem_mesh::CellType;
use nalgebra::{Cholesky, SMatrix, SVector};

/// Largest number of quadrature points of a general element.
pub const MAX_POINTS: usize = 27;

/// Strain xx yy zz xy yz zx (engineering shear), or stress.
type Voigt = [f64; 6];

/// What an element is made of.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// Its type.
    pub cell_type: CellType,
    /// A formulation that the type has.
    pub formulation: Formulation,
    /// Coordinates of its nodes, m.
    pub coords: &'a [[f64; 3]],
    /// Stress over strain, Pa: one for all points, or one for each point of the rule of its formulation.
    pub d: &'a [[Voigt; 6]],
}

/// The strain-displacement matrices of one element; keeps its memory from one to the next.
#[derive(Clone, Debug, Default)]
pub struct GeneralElement {
    n_nodes: usize,
    d: Vec<[Voigt; 6]>,
    /// Weight times det J of each point, m3.
    volume: Vec<f64>,
    /// Strains of unit displacements, 1/m: component i of node a at point q is entry (q, a, i).
    b: Vec<Voigt>,
    modes: Option<Modes>,
    hourglass: Option<Hourglass>,
}

/// What initial strains do to the incompatible modes.
#[derive(Clone, Debug)]
struct Modes {
    /// Strains of the nine modes at each point, 1/m.
    g: Vec<[Voigt; 9]>,
    factor: Cholesky<f64, nalgebra::Const<9>>,
}

/// Strains of unit displacements of a node whose shape function has this gradient.
fn strain_columns([x, y, z]: [f64; 3]) -> [Voigt; 3] {
    [
        [x, 0.0, 0.0, y, 0.0, z],
        [0.0, y, 0.0, x, z, 0.0],
        [0.0, 0.0, z, 0.0, y, x],
    ]
}

fn dot(a: &Voigt, b: &Voigt) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]
}

/// D e.
fn times(d: &[Voigt; 6], e: &Voigt) -> Voigt {
    d.map(|row| dot(&row, e))
}

impl GeneralElement {
    /// Takes an element in; returns the smallest det J of its points. If that is not greater than 0, the element is inside
    /// out or flat, and nothing else must be asked of it.
    pub fn set(&mut self, element: &Element) -> f64 {
        let cell_type = element.cell_type;
        self.n_nodes = cell_type.n_nodes();
        self.d.clear();
        self.d.extend_from_slice(element.d);
        self.modes = None;
        self.hourglass = None;
        self.b.clear();
        let rule = mean_rule(cell_type, element.formulation);
        let min_det = self.set_points(Tabulation::of(cell_type, rule), element.coords);
        if min_det.is_nan() || min_det <= 0.0 {
            return min_det;
        }
        match element.formulation {
            Formulation::Full => {}
            Formulation::Reduced => {
                if cell_type == CellType::Hex8 {
                    self.keep_mean_only();
                }
                let young = young_of(self.d(0));
                self.hourglass = Some(Hourglass::new(cell_type, element.coords, young));
            }
            Formulation::BBar => self.average_dilatation(),
            Formulation::IncompatibleModes => self.condense_modes(element),
        }
        min_det
    }

    /// B of the shape functions at each point; returns the smallest det J.
    fn set_points(&mut self, table: &Tabulation, coords: &[[f64; 3]]) -> f64 {
        self.volume.clear();
        let mut min_det = f64::INFINITY;
        for (q, point) in table.points.iter().enumerate() {
            let geometry = point_geometry(coords, table.grad(q));
            let det = geometry.det_jac;
            // NaN counts as smallest and stays.
            if det < min_det || det.is_nan() {
                min_det = det;
            }
            self.volume.push(point.weight * det);
            let grad = &geometry.grad[..self.n_nodes];
            self.b.extend(grad.iter().flat_map(|&g| strain_columns(g)));
        }
        min_det
    }

    /// Stress over strain at a point.
    fn d(&self, q: usize) -> &[Voigt; 6] {
        &self.d[q.min(self.d.len() - 1)]
    }

    fn n_dofs(&self) -> usize {
        3 * self.n_nodes
    }

    /// Number of quadrature points.
    pub fn n_points(&self) -> usize {
        self.volume.len()
    }

    /// Volume that each point stands for, m3.
    pub fn volumes(&self) -> &[f64] {
        &self.volume
    }

    /// B of a point: a column for each degree of freedom.
    fn columns(&self, q: usize) -> &[Voigt] {
        &self.b[q * self.n_dofs()..(q + 1) * self.n_dofs()]
    }

    /// Mean over the element of the gradient of each shape function: the diagonal of its three strain columns.
    fn mean_gradients(&self) -> [[f64; 3]; MAX_NODES] {
        let total: f64 = self.volume.iter().sum();
        let mut mean = [[0.0; 3]; MAX_NODES];
        for (q, volume) in self.volume.iter().enumerate() {
            for (mean, columns) in mean.iter_mut().zip(self.columns(q).chunks_exact(3)) {
                for i in 0..3 {
                    mean[i] += volume / total * columns[i][i];
                }
            }
        }
        mean
    }

    fn average_dilatation(&mut self) {
        let mean = self.mean_gradients();
        let n_dofs = self.n_dofs();
        for (k, column) in self.b.iter_mut().enumerate() {
            let (a, i) = (k % n_dofs / 3, k % 3);
            let change = (mean[a][i] - column[i]) / 3.0;
            column[..3].iter_mut().for_each(|e| *e += change);
        }
    }

    fn keep_mean_only(&mut self) {
        let mean = self.mean_gradients();
        let volume: f64 = self.volume.iter().sum();
        self.volume.clear();
        self.volume.push(volume);
        self.b.clear();
        let mean = &mean[..self.n_nodes];
        self.b.extend(mean.iter().flat_map(|&g| strain_columns(g)));
    }

    fn condense_modes(&mut self, element: &Element) {
        let table = Tabulation::of(element.cell_type, Purpose::Stiffness);
        let g = mode_strains(element, table);
        let n_dofs = self.n_dofs();
        let mut k_aa = SMatrix::<f64, 9, 9>::zeros();
        let mut k_au = vec![SVector::<f64, 9>::zeros(); n_dofs];
        for (q, g) in g.iter().enumerate() {
            let stress = g.map(|g| times(self.d(q), &g).map(|s| s * self.volume[q]));
            for (k, stress) in stress.iter().enumerate() {
                for (l, g) in g.iter().enumerate() {
                    k_aa[(k, l)] += dot(stress, g);
                }
                for (k_au, b) in k_au.iter_mut().zip(self.columns(q)) {
                    k_au[k] += dot(stress, b);
                }
            }
        }
        let k_aa = 0.5 * (k_aa + k_aa.transpose());
        // The modes of a sound element strain it, and D is positive definite.
        let Some(factor) = Cholesky::new(k_aa) else {
            return;
        };
        for (dof, mut s) in k_au.into_iter().enumerate() {
            factor.solve_mut(&mut s);
            for (q, g) in g.iter().enumerate() {
                let column = &mut self.b[q * n_dofs + dof];
                for (g, s) in g.iter().zip(s.iter()) {
                    (0..6).for_each(|i| column[i] -= g[i] * s);
                }
            }
        }
        self.modes = Some(Modes { g, factor });
    }

    /// Writes the half K_ab, a <= b, of the stiffness, N/m: 3x3 blocks row by row, each row-major.
    pub fn stiffness_into(&self, half: &mut [f64]) {
        half.fill(0.0);
        let blocks = half.as_chunks_mut::<9>().0;
        let mut stress = [[0.0; 6]; 3 * MAX_NODES];
        for (q, &volume) in self.volume.iter().enumerate() {
            let b = self.columns(q);
            for (stress, column) in stress.iter_mut().zip(b) {
                *stress = times(self.d(q), column).map(|s| s * volume);
            }
            let mut place = 0;
            for a in 0..self.n_nodes {
                for c in a..self.n_nodes {
                    let block = &mut blocks[place];
                    for i in 0..3 {
                        // Diagonal blocks are symmetric: their upper half is computed.
                        for j in (if a == c { i } else { 0 })..3 {
                            block[3 * i + j] += dot(&b[3 * a + i], &stress[3 * c + j]);
                        }
                    }
                    place += 1;
                }
            }
        }
        let mut place = 0;
        for a in 0..self.n_nodes {
            let diagonal = &mut blocks[place];
            (diagonal[3], diagonal[6], diagonal[7]) = (diagonal[1], diagonal[2], diagonal[5]);
            place += self.n_nodes - a;
        }
        if let Some(hourglass) = &self.hourglass {
            hourglass.add_to(half);
        }
    }

    /// Strains at the points under the displacements `u` of the nodes, m. `held` is the stress at each point that would keep
    /// the element from straining, D times the free strain less the initial stress, Pa, of which the incompatible modes take
    /// their part; none if it is empty.
    pub fn strains_into(&self, u: &[[f64; 3]], held: &[Voigt], into: &mut [Voigt]) {
        let u = u[..self.n_nodes].as_flattened();
        for (q, strain) in into.iter_mut().enumerate().take(self.n_points()) {
            *strain = [0.0; 6];
            for (column, u) in self.columns(q).iter().zip(u) {
                (0..6).for_each(|i| strain[i] += column[i] * u);
            }
        }
        let Some(modes) = self.modes.as_ref().filter(|_| !held.is_empty()) else {
            return;
        };
        let mut load = SVector::<f64, 9>::zeros();
        for ((g, stress), volume) in modes.g.iter().zip(held).zip(&self.volume) {
            (0..9).for_each(|k| load[k] += volume * dot(&g[k], stress));
        }
        modes.factor.solve_mut(&mut load);
        for (strain, g) in into.iter_mut().zip(&modes.g) {
            for (g, amplitude) in g.iter().zip(load.iter()) {
                (0..6).for_each(|i| strain[i] += g[i] * amplitude);
            }
        }
    }

    /// Adds the internal forces of the stresses at the points, and of hourglass displacements, to `into`, N.
    pub fn forces_into(&self, stress: &[Voigt], u: &[[f64; 3]], into: &mut [[f64; 3]]) {
        let forces = into[..self.n_nodes].as_flattened_mut();
        for (q, stress) in stress.iter().enumerate().take(self.n_points()) {
            for (force, column) in forces.iter_mut().zip(self.columns(q)) {
                *force += self.volume[q] * dot(column, stress);
            }
        }
        if let Some(hourglass) = &self.hourglass {
            hourglass.add_forces(u, into);
        }
    }

    /// Energy of hourglass displacements, J: what the stresses at the points do not see of `u^T K u / 2`.
    pub fn hourglass_energy(&self, u: &[[f64; 3]]) -> f64 {
        self.hourglass.as_ref().map_or(0.0, |h| h.energy(u))
    }
}

/// Strains of the nine incompatible modes of a hex8 at its points: mode k along axis i is number 3 k + i.
fn mode_strains(element: &Element, table: &Tabulation) -> Vec<[Voigt; 9]> {
    let at_center = shape_at(element.cell_type, center(element.cell_type));
    let jac = jacobian(element.coords, &at_center.grad);
    let at_center = cofactors(&jac);
    let mut strains = Vec::with_capacity(table.n_points());
    for (q, point) in table.points.iter().enumerate() {
        let jac = jacobian(element.coords, table.grad(q));
        let det = determinant(&jac, &cofactors(&jac));
        let mut of_point = [[0.0; 6]; 9];
        for k in 0..3 {
            // det J0 J0^-T is the matrix of cofactors; its column k times d(1 - xi_k^2)/dxi_k, over det J.
            let gradient = at_center.map(|row| -2.0 * point.xi[k] * row[k] / det);
            of_point[3 * k..3 * k + 3].copy_from_slice(&strain_columns(gradient));
        }
        strains.push(of_point);
    }
    strains
}

/// Young's modulus of the isotropic law nearest to D (Voigt's mean), which does not depend on the axes, Pa.
fn young_of(d: &[Voigt; 6]) -> f64 {
    let dilatation: f64 = (0..3).flat_map(|i| (0..3).map(move |j| d[i][j])).sum();
    let trace: f64 = (0..6)
        .map(|i| if i < 3 { d[i][i] } else { 2.0 * d[i][i] })
        .sum();
    let (bulk, shear) = (dilatation / 9.0, (3.0 * trace - dilatation) / 30.0);
    9.0 * bulk * shear / (3.0 * bulk + shear)
}

#[cfg(test)]
mod tests;
