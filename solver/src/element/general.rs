//! Stiffness of a solid element of any linear elastic law, point by point.
//!
//! K_ab = sum_q w det J B_a^T D B_b with the 6x3 strain matrices B; several times slower than [`super::solid`].
//!
//! Invariant: knows coordinates and stress over strain at the points only.

use super::geometry::point_geometry;
use super::solid::stiffness_len;
use super::{MAX_NODES, Purpose, Tabulation};
use fem_mesh::CellType;

/// Writes the stored half of the stiffness of an element to `into` (3x3 blocks K_ab, a <= b, row by row, N/m) and
/// returns the smallest det J of its quadrature points, as [`super::StiffnessKernel::compute`] does. `d(q)` is stress
/// over strain at point `q` of the rule for stiffness, Pa.
pub fn stiffness(
    cell_type: CellType,
    coords: &[[f64; 3]],
    d: impl Fn(usize) -> [[f64; 6]; 6],
    into: &mut [f64],
) -> f64 {
    let table = Tabulation::of(cell_type, Purpose::Stiffness);
    let n = cell_type.n_nodes();
    let into = into[..stiffness_len(cell_type)].as_chunks_mut::<9>().0;
    into.fill([0.0; 9]);
    let mut min_det = f64::INFINITY;
    for (q, point) in table.points.iter().enumerate() {
        let at = point_geometry(coords, table.grad(q));
        if at.det_jac < min_det || at.det_jac.is_nan() {
            min_det = at.det_jac;
        }
        let volume = point.weight * at.det_jac;
        let d = d(q).map(|row| row.map(|d| d * volume));
        let mut stress = [[[0.0; 3]; 6]; MAX_NODES];
        for (stress, gradient) in stress.iter_mut().zip(&at.grad[..n]) {
            *stress = stress_of_node(&d, gradient);
        }
        let mut blocks = into.iter_mut();
        for (a, gradient) in at.grad[..n].iter().enumerate() {
            for (stress, block) in stress[a..n].iter().zip(blocks.by_ref()) {
                add_block(block, gradient, stress);
            }
        }
    }
    min_det
}

/// D B: stresses per displacement of a node along x, y, z.
fn stress_of_node(d: &[[f64; 6]; 6], [x, y, z]: &[f64; 3]) -> [[f64; 3]; 6] {
    d.map(|[xx, yy, zz, xy, yz, zx]| {
        [
            xx * x + xy * y + zx * z,
            yy * y + xy * x + yz * z,
            zz * z + yz * y + zx * x,
        ]
    })
}

/// Adds B^T S to a block.
fn add_block(block: &mut [f64; 9], [x, y, z]: &[f64; 3], s: &[[f64; 3]; 6]) {
    for j in 0..3 {
        block[j] += x * s[0][j] + y * s[3][j] + z * s[5][j];
        block[3 + j] += y * s[1][j] + x * s[3][j] + z * s[4][j];
        block[6 + j] += z * s[2][j] + y * s[4][j] + x * s[5][j];
    }
}

#[cfg(test)]
mod tests {
    use super::stiffness;
    use crate::element::solid::{Elements, StiffnessKernel, stiffness_len};
    use crate::element::test_cells::distorted;
    use crate::material::{Elastic, Isotropic};
    use fem_mesh::CellType;

    #[test]
    fn an_isotropic_law_gives_the_stiffness_of_the_fast_kernel() {
        let law = Isotropic::new(200.0, 0.3, 0.0);
        let d = Elastic::from(law).d;
        for cell_type in CellType::SOLIDS {
            let coords = distorted(cell_type, 0.1);
            let mut expected = vec![0.0; stiffness_len(cell_type)];
            let mut min_det = [0.0];
            let elements = Elements {
                cell_type,
                coords: &coords,
                lame: &[[law.lambda, law.mu]],
            };
            StiffnessKernel::default().compute(elements, &mut expected, &mut min_det);
            let mut found = vec![0.0; stiffness_len(cell_type)];
            let det = stiffness(cell_type, &coords, |_| d, &mut found);
            assert!((det - min_det[0]).abs() < 1e-14, "{cell_type}");
            let largest = expected.iter().fold(0.0f64, |m, k| m.max(k.abs()));
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-12 * largest, "{cell_type}: {a} {b}");
            }
        }
    }
}
