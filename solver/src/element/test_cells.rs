//! Cells with irregular geometry for tests.

use super::shape::natural_nodes;
use fem_mesh::CellType;

/// Reproducible numbers in [-1, 1].
pub(crate) fn noise(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The natural cell sheared, with every node moved by up to `amount`: curved where the type allows.
pub(crate) fn distorted(cell_type: CellType, amount: f64) -> Vec<[f64; 3]> {
    let nodes = natural_nodes(cell_type).iter().enumerate();
    nodes
        .map(|(a, x)| {
            let moved = [0, 1, 2]
                .map(|i| x[i] + amount * noise((100 * cell_type as usize + 3 * a + i) as u64));
            [
                1.3 * moved[0] + 0.2 * moved[1],
                0.9 * moved[1] + 0.1 * moved[2],
                moved[2] - 0.15 * moved[0],
            ]
        })
        .collect()
}
