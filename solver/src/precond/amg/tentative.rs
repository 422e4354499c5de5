//! The tentative prolongator: the near-nullspace cut into aggregates and made orthonormal there.
//!
//! On aggregate g the near-nullspace B satisfies B_g = T_g R_g with orthonormal columns of T_g: T interpolates the
//! near-nullspace exactly from its coarse values R.
//!
//! Invariant: local to each rank; knows no matrix.

use super::aggregate::{Aggregates, NONE};
use rayon::prelude::IndexedParallelIterator;
use rayon::prelude::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// A column shorter than this part of what it was before orthogonalization depends on those before it.
const DEPENDENT: f64 = 1e-8;

/// The tentative prolongator of one rank and the near-nullspace of its coarse nodes.
pub(super) struct Tentative<const B: usize, const C: usize> {
    /// Row of T for each owned node, in the column of its aggregate; zero for nodes in none.
    pub(super) rows: Vec<[[f64; C]; B]>,
    /// R of each aggregate: the near-nullspace of the coarse matrix. Row c is zero if the aggregate is too small for C
    /// independent columns and coarse degree of freedom c so stands for nothing.
    pub(super) coarse_nullspace: Vec<[[f64; C]; C]>,
}

/// Orthogonalizes the near-nullspace on every aggregate.
pub(super) fn tentative<const B: usize, const C: usize>(
    aggregates: &Aggregates,
    near_nullspace: &[[[f64; C]; B]],
) -> Tentative<B, C> {
    let (start, members) = members(aggregates);
    let coarse_nullspace: Vec<[[f64; C]; C]> = (0..aggregates.n)
        .into_par_iter()
        .map(|g| {
            let nodes = &members[start[g] as usize..start[g + 1] as usize];
            let rows = nodes.iter().flat_map(|&node| near_nullspace[node as usize]);
            triangular_factor(rows.collect())
        })
        .collect();
    let rows = (near_nullspace.par_iter().zip(&aggregates.of_node))
        .map(|(rows, &g)| match g {
            NONE => [[0.0; C]; B],
            g => rows.map(|row| divide_by_triangle(row, &coarse_nullspace[g as usize])),
        })
        .collect();
    Tentative {
        rows,
        coarse_nullspace,
    }
}

/// Nodes by aggregate: those of g are `members[start[g]..start[g + 1]]`, ascending.
fn members(aggregates: &Aggregates) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; aggregates.n + 1];
    let in_group = |(_, g): &(usize, &u32)| **g != NONE;
    for (_, &g) in aggregates.of_node.iter().enumerate().filter(in_group) {
        start[g as usize + 1] += 1;
    }
    for g in 0..aggregates.n {
        start[g + 1] += start[g];
    }
    let mut next = start.clone();
    let mut members = vec![0; start[aggregates.n] as usize];
    for (node, &g) in aggregates.of_node.iter().enumerate().filter(in_group) {
        members[next[g as usize] as usize] = node as u32;
        next[g as usize] += 1;
    }
    (start, members)
}

/// R of the QR factorization of a tall matrix, by Gram and Schmidt's method done twice; a dependent column gives a
/// zero row.
fn triangular_factor<const C: usize>(mut rows: Vec<[f64; C]>) -> [[f64; C]; C] {
    let mut r = [[0.0; C]; C];
    for c in 0..C {
        let norm = |rows: &[[f64; C]]| rows.iter().map(|row| row[c] * row[c]).sum::<f64>().sqrt();
        let before = norm(&rows);
        for d in (0..c).chain(0..c) {
            let overlap: f64 = rows.iter().map(|row| row[d] * row[c]).sum();
            r[d][c] += overlap;
            rows.iter_mut().for_each(|row| row[c] -= overlap * row[d]);
        }
        let length = norm(&rows);
        let independent = length > DEPENDENT * before;
        r[c][c] = if independent { length } else { 0.0 };
        let factor = if independent { 1.0 / length } else { 0.0 };
        rows.iter_mut().for_each(|row| row[c] *= factor);
    }
    r
}

/// t with t R = row; zero where R has a zero row.
fn divide_by_triangle<const C: usize>(row: [f64; C], r: &[[f64; C]; C]) -> [f64; C] {
    let mut t = [0.0; C];
    for c in (0..C).filter(|&c| r[c][c] > 0.0) {
        let known: f64 = (0..c).map(|d| t[d] * r[d][c]).sum();
        t[c] = (row[c] - known) / r[c][c];
    }
    t
}

#[cfg(test)]
mod tests {
    use super::{Tentative, tentative};
    use crate::linalg::sample::noise;
    use crate::precond::amg::aggregate::{Aggregates, NONE};

    fn nullspace(n: usize) -> Vec<[[f64; 4]; 2]> {
        let values = noise(8 * n, 3);
        values.as_chunks::<4>().0.as_chunks::<2>().0.to_vec()
    }

    #[test]
    fn columns_are_orthonormal_and_interpolate_the_nullspace() {
        let aggregates = Aggregates {
            of_node: vec![0, 1, NONE, 0, 1, 0],
            n: 2,
        };
        let b = nullspace(6);
        let Tentative {
            rows,
            coarse_nullspace,
        } = tentative(&aggregates, &b);
        assert_eq!(rows[2], [[0.0; 4]; 2]);
        for (node, &g) in aggregates
            .of_node
            .iter()
            .enumerate()
            .filter(|(_, g)| **g != NONE)
        {
            for (row, b) in rows[node].iter().zip(&b[node]) {
                for c in 0..4 {
                    let value: f64 = (0..4)
                        .map(|d| row[d] * coarse_nullspace[g as usize][d][c])
                        .sum();
                    assert!((value - b[c]).abs() < 1e-13);
                }
            }
        }
        for g in 0..2 {
            let mine = |node: &usize| aggregates.of_node[*node] == g;
            for (c, d) in (0..16).map(|k| (k / 4, k % 4)) {
                let nodes = (0..6).filter(mine).flat_map(|node| rows[node]);
                let product: f64 = nodes.map(|row| row[c] * row[d]).sum();
                assert!((product - f64::from(u8::from(c == d))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_small_aggregate_has_dead_columns() {
        // Two rows cannot carry four columns; a third aggregate has a zero row (a prescribed displacement).
        let aggregates = Aggregates {
            of_node: vec![0, 1, 1],
            n: 2,
        };
        let mut b = nullspace(3);
        b[1][0] = [0.0; 4];
        let found = tentative(&aggregates, &b);
        let alive = |g: usize| {
            (0..4)
                .filter(|&c| found.coarse_nullspace[g][c][c] > 0.0)
                .count()
        };
        assert_eq!((alive(0), alive(1)), (2, 3));
        assert_eq!(found.rows[1][0], [0.0; 4]);
        assert!(found.rows.iter().flatten().flatten().all(|v| v.abs() < 2.0));
        let dead = (0..4).filter(|&c| found.coarse_nullspace[0][c][c] == 0.0);
        dead.for_each(|c| assert!(found.rows[0].iter().all(|row| row[c] == 0.0)));
    }
}
