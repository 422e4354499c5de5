//! Displacement fields with known strains for tests.
//!
//! Invariant: formulas only; nothing here is computed by what it tests.

use crate::assembly::test_models::{distorted_box, mixed_mesh};
use fem_mesh::{CellType, LocalMesh, Mesh};

/// Gradient of [`linear`]: row i holds du_i/dx_j.
const GRADIENT: [[f64; 3]; 3] = [
    [0.01, -0.02, 0.005],
    [0.03, 0.02, 0.004],
    [-0.01, 0.015, -0.007],
];

/// A displacement with constant strain.
pub(super) fn linear(x: [f64; 3]) -> [f64; 3] {
    GRADIENT.map(|g| 0.1 + g[0] * x[0] + g[1] * x[1] + g[2] * x[2])
}

/// Strain of [`linear`].
pub(super) fn linear_strain() -> [f64; 6] {
    strain(GRADIENT)
}

/// Voigt strain of a displacement gradient.
pub(super) fn strain(g: [[f64; 3]; 3]) -> [f64; 6] {
    [
        g[0][0],
        g[1][1],
        g[2][2],
        g[0][1] + g[1][0],
        g[1][2] + g[2][1],
        g[2][0] + g[0][2],
    ]
}

/// The field at all local nodes, 3 components a node.
pub(super) fn sample(mesh: &LocalMesh, field: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<f64> {
    mesh.coords.iter().flat_map(|&x| field(x)).collect()
}

/// A field of no particular form.
pub(super) fn wavy([x, y, z]: [f64; 3]) -> [f64; 3] {
    [
        0.01 * (3.0 * y + z).sin(),
        0.02 * (2.0 * x * z).cos(),
        0.01 * (x - 4.0 * y).sin() + 0.003 * z * z,
    ]
}

/// A box of each type, straight or curved.
pub(super) fn boxes(curved: bool) -> Vec<Mesh> {
    CellType::SOLIDS
        .map(|cell_type| distorted_box(cell_type, [2, 3, 2], curved))
        .to_vec()
}

/// The boxes and a mesh of several types, whose flat triangles and twisted quadrilaterals leave slits.
pub(super) fn meshes(curved: bool) -> Vec<Mesh> {
    [boxes(curved), vec![mixed_mesh()]].concat()
}

/// Panics unless each of `found` is within `tolerance` of its expected value.
#[track_caller]
pub(super) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let error = found
        .iter()
        .zip(expected)
        .fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(
        error <= tolerance,
        "error {error:e}: {found:?} is not {expected:?}"
    );
}
