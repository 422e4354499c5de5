//! The tentative prolongator: the near-nullspace cut into aggregates and made orthonormal there.
//!
//! On aggregate g the near-nullspace B satisfies B_g = T_g R_g with orthonormal columns of T_g: T interpolates the
//! near-nullspace exactly from its coarse values R.
//!
//! Invariant: local to each rank; knows no matrix.

use super::aggregate::{Aggregates, NONE};
use crate::linalg::vectorize::{Kernel, dispatch, madd};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// A column shorter than this part of what it was before orthogonalization depends on those before it.
const DEPENDENT: f64 = 1e-8;
/// Aggregates that a thread takes at a time,
const AGGREGATES_PER_TASK: usize = 128;
/// and nodes.
const NODES_PER_TASK: usize = 2048;

/// The tentative prolongator of one rank and the near-nullspace of its coarse nodes.
pub(super) struct Tentative<const B: usize, const C: usize> {
    /// Row of T for each owned node, in the column of its aggregate; zero for nodes in none.
    pub(super) rows: Vec<[[f32; C]; B]>,
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
    let mut coarse_nullspace = vec![[[0.0; C]; C]; aggregates.n];
    let tasks = coarse_nullspace
        .par_chunks_mut(AGGREGATES_PER_TASK)
        .enumerate();
    tasks.for_each(|(task, factors)| {
        let first = task * AGGREGATES_PER_TASK;
        dispatch(TriangularFactors {
            start: &start[first..=first + factors.len()],
            members: &members,
            near_nullspace,
            factors,
        });
    });
    let mut rows = vec![[[0.0; C]; B]; near_nullspace.len()];
    let of_node = aggregates.of_node.par_chunks(NODES_PER_TASK);
    let near_nullspace = near_nullspace.par_chunks(NODES_PER_TASK);
    (rows
        .par_chunks_mut(NODES_PER_TASK)
        .zip(near_nullspace)
        .zip(of_node))
    .for_each(|((rows, near_nullspace), of_node)| {
        dispatch(Divide {
            near_nullspace,
            of_node,
            factors: &coarse_nullspace,
            rows,
        });
    });
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

/// R of the QR factorization of the near-nullspace on some aggregates.
struct TriangularFactors<'a, const B: usize, const C: usize> {
    /// Where the members of each aggregate begin among all, and those behind the last.
    start: &'a [u32],
    members: &'a [u32],
    near_nullspace: &'a [[[f64; C]; B]],
    factors: &'a mut [[[f64; C]; C]],
}

impl<const B: usize, const C: usize> Kernel for TriangularFactors<'_, B, C> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut columns: [Vec<[f64; LANES]>; C] = std::array::from_fn(|_| Vec::new());
        for (g, factor) in self.factors.iter_mut().enumerate() {
            let members = &self.members[self.start[g] as usize..self.start[g + 1] as usize];
            let n_lanes = (members.len() * B).div_ceil(LANES);
            for column in &mut columns {
                column.clear();
                column.resize(n_lanes, [0.0; LANES]);
            }
            for (m, &node) in members.iter().enumerate() {
                for (b, row) in self.near_nullspace[node as usize].iter().enumerate() {
                    let at = m * B + b;
                    for c in 0..C {
                        columns[c][at / LANES][at % LANES] = row[c];
                    }
                }
            }
            *factor = triangular_factor::<FMA, C>(&mut columns);
        }
    }
}

/// Rows of a column side by side.
const LANES: usize = 8;

/// R of the QR factorization of a tall matrix by columns, which Gram and Schmidt's method, done twice, turns into Q; a
/// dependent column gives a zero row.
#[inline(always)]
fn triangular_factor<const FMA: bool, const C: usize>(
    columns: &mut [Vec<[f64; LANES]>; C],
) -> [[f64; C]; C] {
    let mut r = [[0.0; C]; C];
    for c in 0..C {
        let (done, rest) = columns.split_at_mut(c);
        let column = &mut rest[0];
        let before = dot::<FMA>(column, column).sqrt();
        for _ in 0..2 {
            for d in 0..c {
                let overlap = dot::<FMA>(&done[d], column);
                r[d][c] += overlap;
                for (value, other) in column.iter_mut().zip(&done[d]) {
                    for lane in 0..LANES {
                        value[lane] = madd::<FMA, f64>(-overlap, other[lane], value[lane]);
                    }
                }
            }
        }
        let length = dot::<FMA>(column, column).sqrt();
        let independent = length > DEPENDENT * before;
        r[c][c] = if independent { length } else { 0.0 };
        let factor = if independent { 1.0 / length } else { 0.0 };
        for value in column.iter_mut() {
            for lane in 0..LANES {
                value[lane] *= factor;
            }
        }
    }
    r
}

#[inline(always)]
fn dot<const FMA: bool>(a: &[[f64; LANES]], b: &[[f64; LANES]]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = madd::<FMA, f64>(a[lane], b[lane], sums[lane]);
        }
    }
    sums.iter().sum()
}

/// Rows T of some nodes, with T R = near-nullspace; zero where R has a zero row.
struct Divide<'a, const B: usize, const C: usize> {
    near_nullspace: &'a [[[f64; C]; B]],
    of_node: &'a [u32],
    factors: &'a [[[f64; C]; C]],
    rows: &'a mut [[[f32; C]; B]],
}

impl<const B: usize, const C: usize> Kernel for Divide<'_, B, C> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let nodes = self.near_nullspace.iter().zip(self.of_node);
        for ((near_nullspace, &g), rows) in nodes.zip(self.rows) {
            if g == NONE {
                continue;
            }
            let r = &self.factors[g as usize];
            let mut t = [[0.0; C]; B];
            for c in 0..C {
                let inverse = if r[c][c] > 0.0 { 1.0 / r[c][c] } else { 0.0 };
                for b in 0..B {
                    let mut left = near_nullspace[b][c];
                    for d in 0..c {
                        left = madd::<FMA, f64>(-t[b][d], r[d][c], left);
                    }
                    t[b][c] = left * inverse;
                    rows[b][c] = t[b][c] as f32;
                }
            }
        }
    }
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
                        .map(|d| f64::from(row[d]) * coarse_nullspace[g as usize][d][c])
                        .sum();
                    assert!((value - b[c]).abs() < 1e-6);
                }
            }
        }
        for g in 0..2 {
            let mine = |node: &usize| aggregates.of_node[*node] == g;
            for (c, d) in (0..16).map(|k| (k / 4, k % 4)) {
                let nodes = (0..6).filter(mine).flat_map(|node| rows[node]);
                let product: f64 = nodes.map(|row| f64::from(row[c] * row[d])).sum();
                assert!((product - f64::from(u8::from(c == d))).abs() < 1e-6);
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
