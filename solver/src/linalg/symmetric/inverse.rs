//! Inverses of small symmetric positive definite blocks.
//!
//! Invariant: the result is symmetric positive definite whatever the block, so that a sweep is never undefined.

/// A pivot below this share of the largest diagonal entry is noise: the block has no stiffness in its direction.
const SINGULAR: f64 = 1e-13;

/// Inverse of a symmetric block by its factors L D L^T, and the block that it is the inverse of; only the lower triangle
/// is read.
///
/// That is the same block but where a pivot is not positive (a singular block, as coarse levels have where an aggregate
/// is a single node): such a pivot is replaced by the largest diagonal entry, or by 1 if none is positive, so that
/// correction in that direction stays small.
pub(super) fn invert_symmetric<const B: usize>(
    block: &[[f64; B]; B],
) -> ([[f64; B]; B], [[f64; B]; B]) {
    let largest = (0..B).map(|i| block[i][i]).fold(0.0, f64::max);
    let substitute = if largest > 0.0 { largest } else { 1.0 };
    let mut lower = [[0.0; B]; B];
    let mut pivots = [substitute; B];
    let mut is_regular = true;
    for j in 0..B {
        let known: f64 = (0..j).map(|k| lower[j][k] * lower[j][k] * pivots[k]).sum();
        let pivot = block[j][j] - known;
        if pivot > SINGULAR * largest {
            pivots[j] = pivot;
            for i in j + 1..B {
                let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k] * pivots[k]).sum();
                lower[i][j] = (block[i][j] - known) / pivot;
            }
        } else {
            is_regular = false;
        }
    }
    let mut inverse = [[0.0; B]; B];
    for column in 0..B {
        let solution = solve_unit(&lower, &pivots, column);
        for row in column..B {
            inverse[row][column] = solution[row];
            inverse[column][row] = solution[row];
        }
    }
    let inverted = if is_regular {
        *block
    } else {
        multiply_factors(lower, &pivots)
    };
    (inverse, inverted)
}

/// L D L^T; the diagonal of L is 1 and not stored.
fn multiply_factors<const B: usize>(mut lower: [[f64; B]; B], pivots: &[f64; B]) -> [[f64; B]; B] {
    (0..B).for_each(|i| lower[i][i] = 1.0);
    let entry = |i: usize, j: usize| (0..B).map(|k| lower[i][k] * pivots[k] * lower[j][k]).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
}

/// Column of the inverse of L D L^T.
fn solve_unit<const B: usize>(lower: &[[f64; B]; B], pivots: &[f64; B], column: usize) -> [f64; B] {
    let mut x = [0.0; B];
    x[column] = 1.0;
    for i in column + 1..B {
        x[i] = -(column..i).map(|k| lower[i][k] * x[k]).sum::<f64>();
    }
    for i in 0..B {
        x[i] /= pivots[i];
    }
    for i in (0..B).rev() {
        x[i] -= (i + 1..B).map(|k| lower[k][i] * x[k]).sum::<f64>();
    }
    x
}

#[cfg(test)]
mod tests {
    use super::invert_symmetric;

    #[test]
    fn inverse_times_block_is_one() {
        let block: [[f64; 6]; 6] = std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                1.0 / (i + j + 1) as f64 + if i == j { 2.0 + i as f64 } else { 0.0 }
            })
        });
        let (inverse, inverted) = invert_symmetric(&block);
        assert_eq!(inverted, block);
        for i in 0..6 {
            for j in 0..6 {
                let sum: f64 = (0..6).map(|k| block[i][k] * inverse[k][j]).sum();
                assert!((sum - f64::from(u8::from(i == j))).abs() < 1e-14);
                assert_eq!(inverse[i][j], inverse[j][i]);
            }
        }
    }

    #[test]
    fn singular_blocks_get_a_positive_definite_inverse() {
        let once = [[4.0, 2.0], [2.0, 1.0]];
        for block in [once, [[0.0; 2]; 2], [[-1.0, 0.0], [0.0, 0.0]]] {
            let ([[a, b], [_, c]], inverted) = invert_symmetric(&block);
            assert!(a > 0.0 && c > 0.0 && a * c > b * b, "{a} {b} {c}");
            let [[d, e], [f, g]] = inverted;
            let product = [a * d + b * f, a * e + b * g, b * d + c * f, b * e + c * g];
            let errors = product.iter().zip([1.0, 0.0, 0.0, 1.0]);
            assert!(errors.into_iter().all(|(p, one)| (p - one).abs() < 1e-14));
        }
    }
}
