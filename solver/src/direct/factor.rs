//! `Symbolic` and `Factor`: Cholesky factorization of a sparse matrix that one rank holds whole.
//!
//! Supernodal or simplicial, as the crate faer finds better. One thread: a second one gains 6 %, and the bits of the
//! factor then cannot depend on the number of threads.
//!
//! Invariant: one rank's numbers only; never communicates.

use super::ordering::{Ordering, nested_dissection};
use crate::linalg::{BlockCsr, Scalar};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::LltError;
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::{
    LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};
use fem_mesh::{Error, Result};

/// A pivot smaller than this part of its diagonal entry counts as zero. Free rigid motions leave pivots of 1e-15 to
/// 1e-12 from rounding; a restrained model with such a pivot would have fewer than four digits right.
const SINGULAR: f64 = 1e-12;

/// Where the entries of the factor of a matrix lie.
pub(crate) struct Symbolic {
    symbolic: SymbolicCholesky<usize>,
    column_start: Vec<usize>,
    row_index: Vec<usize>,
}

impl Symbolic {
    /// Orders the rows and finds the pattern of the factor of the symmetric matrix with the lower half `a`.
    pub(crate) fn new<T: Scalar, const B: usize>(a: &BlockCsr<T, B>) -> Result<Self> {
        let order = nested_dissection(a)?.expand(B);
        let (column_start, row_index) = upper_pattern(a);
        let symbolic = analyze(&order, &column_start, &row_index)?;
        Ok(Symbolic {
            symbolic,
            column_start,
            row_index,
        })
    }

    /// Scalars that the factor stores.
    pub(super) fn n_entries(&self) -> usize {
        self.symbolic.len_val()
    }

    /// Multiplications and additions of the factorization.
    pub(super) fn flops(&self) -> f64 {
        self.column_lengths()
            .map(|length| (length as f64).powi(2))
            .sum()
    }

    /// Peak memory of the factorization, bytes: factor, work space, pattern and values of the matrix.
    pub(super) fn memory(&self) -> usize {
        let pattern = (self.column_start.len() + self.row_index.len()) * size_of::<usize>();
        let values = (self.row_index.len() + self.n_entries()) * size_of::<f64>();
        let row_numbers = n_row_numbers(&self.symbolic);
        pattern + values + row_numbers * size_of::<usize>() + self.scratch().size_bytes()
    }

    fn scratch(&self) -> StackReq {
        self.symbolic
            .factorize_numeric_llt_scratch::<f64>(Par::Seq, faer::Spec::default())
    }

    /// Entries of each column of the factor, the diagonal included.
    fn column_lengths(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self.symbolic.raw() {
            SymbolicCholeskyRaw::Simplicial(s) => {
                Box::new(s.col_ptr().windows(2).map(|w| w[1] - w[0]))
            }
            SymbolicCholeskyRaw::Supernodal(s) => {
                Box::new((0..s.n_supernodes()).flat_map(move |k| {
                    let n_columns = s.supernode_end()[k] - s.supernode_begin()[k];
                    let n_below = s.supernode(k).pattern().len();
                    (0..n_columns).map(move |column| n_columns - column + n_below)
                }))
            }
        }
    }
}

/// Row numbers that the pattern of a factor stores.
fn n_row_numbers(symbolic: &SymbolicCholesky<usize>) -> usize {
    match symbolic.raw() {
        SymbolicCholeskyRaw::Simplicial(s) => s.row_idx().len(),
        SymbolicCholeskyRaw::Supernodal(s) => s.row_idx().len(),
    }
}

fn analyze(
    order: &Ordering,
    column_start: &[usize],
    row_index: &[usize],
) -> Result<SymbolicCholesky<usize>> {
    let n = order.rows.len();
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, column_start, None, row_index);
    let permutation = PermRef::new_checked(&order.rows, &order.steps, n);
    factorize_symbolic_cholesky(
        pattern,
        Side::Upper,
        SymmetricOrdering::Custom(permutation),
        Default::default(),
    )
    .map_err(|_| out_of_memory(n))
}

fn out_of_memory(n: usize) -> Error {
    Error::machine(format!(
        "not enough memory for the direct solution of {n} equations"
    ))
    .advice("use `method = \"cg\"`, or a machine with more memory")
}

/// Pattern of the upper triangle by columns, scalar by scalar: by symmetry the lower triangle by rows.
fn upper_pattern<T: Scalar, const B: usize>(a: &BlockCsr<T, B>) -> (Vec<usize>, Vec<usize>) {
    let mut starts = vec![0];
    let mut rows = Vec::with_capacity(a.n_blocks() * B * B);
    for_lower_triangle(
        a,
        |n_entries| starts.push(n_entries),
        |_, column| rows.push(column),
    );
    (starts, rows)
}

/// Values in the order of [`upper_pattern`].
fn upper_values<const B: usize>(a: &BlockCsr<f64, B>) -> Vec<f64> {
    let mut values = Vec::with_capacity(a.n_blocks() * B * B);
    for_lower_triangle(a, |_| (), |value, _| values.push(value));
    values
}

/// Walks the lower triangle by scalar rows: `entry` gets each value and its scalar column, `end` the number
/// of entries so far at the end of each row.
fn for_lower_triangle<T: Scalar, const B: usize>(
    a: &BlockCsr<T, B>,
    mut end: impl FnMut(usize),
    mut entry: impl FnMut(T, usize),
) {
    debug_assert!(a.is_lower_half());
    let mut n_entries = 0;
    for row in 0..a.n_rows {
        for i in 0..B {
            for k in a.row(row) {
                let column = a.columns[k] as usize;
                for j in 0..if column == row { i + 1 } else { B } {
                    entry(a.block(k)[i * B + j], column * B + j);
                    n_entries += 1;
                }
            }
            end(n_entries);
        }
    }
}

/// Cholesky factor of a matrix.
pub(crate) struct Factor {
    symbolic: SymbolicCholesky<usize>,
    values: Vec<f64>,
}

impl Factor {
    /// Factorizes the matrix with the lower half `a` that `symbolic` was made from.
    ///
    /// # Errors
    /// A pivot that is not positive; the message names its scalar row. Too little memory.
    pub(crate) fn new<const B: usize>(
        symbolic: Symbolic,
        a: &BlockCsr<f64, B>,
    ) -> std::result::Result<Self, FactorFailure> {
        let n = a.n_rows * B;
        let mut stack = MemBuffer::try_new(symbolic.scratch()).map_err(|_| out_of_memory(n))?;
        let Symbolic {
            symbolic,
            column_start,
            row_index,
        } = symbolic;
        let mut values = Vec::new();
        values
            .try_reserve_exact(symbolic.len_val())
            .map_err(|_| out_of_memory(n))?;
        values.resize(symbolic.len_val(), 0.0);
        let upper = upper_values(a);
        let pattern = SymbolicSparseColMatRef::new_checked(n, n, &column_start, None, &row_index);
        let result = symbolic.factorize_numeric_llt(
            &mut values,
            SparseColMatRef::new(pattern, &upper),
            Side::Upper,
            Default::default(),
            Par::Seq,
            MemStack::new(&mut stack),
            faer::Spec::default(),
        );
        if let Err(LltError::NonPositivePivot { index }) = result {
            // faer counts steps from 1 in the simplicial factorization, from 0 in the supernodal one.
            let from = usize::from(matches!(symbolic.raw(), SymbolicCholeskyRaw::Simplicial(_)));
            let row = row_of_step(&symbolic, index - from);
            return Err(FactorFailure::NoPositivePivot(row));
        }
        let factor = Factor { symbolic, values };
        factor.check_pivots(a)?;
        Ok(factor)
    }

    /// Memory of the factor, bytes.
    pub(crate) fn memory(&self) -> usize {
        let row_numbers = n_row_numbers(&self.symbolic);
        self.values.len() * size_of::<f64>() + row_numbers * size_of::<usize>()
    }

    /// Finds pivots that are zero but for rounding.
    fn check_pivots<const B: usize>(
        &self,
        a: &BlockCsr<f64, B>,
    ) -> std::result::Result<(), FactorFailure> {
        let diagonal = |row: usize| {
            let block_row = row / B;
            a.find(block_row, block_row as u32)
                .map_or(0.0, |k| a.block(k)[row % B * (B + 1)])
        };
        for (step, pivot) in self.pivots().into_iter().enumerate() {
            let row = row_of_step(&self.symbolic, step);
            let is_positive = pivot.is_finite() && pivot * pivot > SINGULAR * diagonal(row);
            if !is_positive {
                return Err(FactorFailure::NoPositivePivot(row));
            }
        }
        Ok(())
    }

    /// Diagonal of the factor, in the order of elimination.
    fn pivots(&self) -> Vec<f64> {
        match self.symbolic.raw() {
            SymbolicCholeskyRaw::Simplicial(s) => s.col_ptr()[..s.ncols()]
                .iter()
                .map(|&start| self.values[start])
                .collect(),
            SymbolicCholeskyRaw::Supernodal(s) => {
                let mut pivots = Vec::with_capacity(s.ncols());
                for k in 0..s.n_supernodes() {
                    let n_columns = s.supernode_end()[k] - s.supernode_begin()[k];
                    let n_rows = n_columns + s.supernode(k).pattern().len();
                    let values = &self.values[s.col_ptr_for_val()[k]..];
                    pivots.extend((0..n_columns).map(|i| values[i * (n_rows + 1)]));
                }
                pivots
            }
        }
    }

    /// Replaces the right-hand side in `x` by the solution.
    ///
    /// # Errors
    /// Too little memory.
    pub(crate) fn solve(&self, x: &mut [f64]) -> Result<()> {
        let n = x.len();
        let request = self.symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let mut stack = MemBuffer::try_new(request).map_err(|_| out_of_memory(n))?;
        let x = MatMut::from_column_major_slice_mut(x, n, 1);
        LltRef::new(&self.symbolic, &self.values).solve_in_place_with_conj(
            Conj::No,
            x,
            Par::Seq,
            MemStack::new(&mut stack),
        );
        Ok(())
    }
}

fn row_of_step(symbolic: &SymbolicCholesky<usize>, step: usize) -> usize {
    symbolic
        .perm()
        .map_or(step, |permutation| permutation.arrays().0[step])
}

/// Why a factorization failed.
#[derive(Debug)]
pub(crate) enum FactorFailure {
    /// The matrix is not positive definite: no positive pivot in this scalar row.
    NoPositivePivot(usize),
    /// Anything else.
    Other(Error),
}

impl From<Error> for FactorFailure {
    fn from(error: Error) -> Self {
        FactorFailure::Other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Factor, FactorFailure, Symbolic};
    use crate::linalg::BlockCsr;
    use crate::linalg::sample::{both_halves, laplace_grid, lower_half, noise, spring_grid};
    use nalgebra::{DMatrix, DVector};

    fn dense<const B: usize>(lower: &BlockCsr<f64, B>) -> DMatrix<f64> {
        let a = both_halves(lower);
        DMatrix::from_fn(a.n_rows * B, a.n_cols * B, |i, j| {
            a.find(i / B, (j / B) as u32)
                .map_or(0.0, |k| a.block(k)[i % B * B + j % B])
        })
    }

    fn check<const B: usize>(a: &BlockCsr<f64, B>) {
        let b = noise(a.n_rows * B, 3);
        let expected = dense(a)
            .cholesky()
            .expect("it is positive definite")
            .solve(&DVector::from_vec(b.clone()));
        let factor =
            Factor::new(Symbolic::new(a).expect("analysis"), a).expect("it is positive definite");
        let mut x = b;
        factor.solve(&mut x).expect("memory");
        let scale = expected.amax();
        assert!(
            x.iter()
                .zip(&expected)
                .all(|(x, e)| (x - e).abs() < 1e-11 * scale)
        );
    }

    #[test]
    fn solutions_are_those_of_a_dense_factorization() {
        check(&lower_half(&spring_grid(5, 10.0)));
        check(&lower_half(&laplace_grid(7)));
        check(&BlockCsr::from_blocks(
            3,
            3,
            (0..3).map(|i| (i, i, [[4.0, 1.0], [1.0, 2.0]])).collect(),
        ));
        check(&BlockCsr::from_blocks(1, 1, vec![(0, 0, [[2.0]])]));
    }

    #[test]
    fn costs_are_those_of_a_known_factor() {
        // A full matrix of 4 scalars: 10 entries below and on the diagonal.
        let blocks = [(0, 0), (1, 0), (1, 1)].map(|(i, j)| (i, j, [[1.0, 0.5], [0.5, 1.0]]));
        let symbolic =
            Symbolic::new(&BlockCsr::from_blocks(2, 2, blocks.to_vec())).expect("analysis");
        assert_eq!(symbolic.flops(), 16.0 + 9.0 + 4.0 + 1.0);
        assert!((10..=16).contains(&symbolic.n_entries()));
        let large = Symbolic::new(&lower_half(&spring_grid(8, 1.0))).expect("analysis");
        assert!(large.memory() > large.n_entries() * 8 && large.memory() < large.n_entries() * 80);
    }

    #[test]
    fn indefinite_and_singular_matrices_are_refused() {
        let is_refused = |a: &BlockCsr<f64, 3>| {
            let factor = Factor::new(Symbolic::new(a).expect("analysis"), a);
            matches!(factor, Err(FactorFailure::NoPositivePivot(_)))
        };
        for n in [2, 9] {
            let mut a = lower_half(&spring_grid(n, 3.7));
            assert!(!is_refused(&a));
            let k = a.find(1, 1).expect("a diagonal block");
            let saved = a.block(k).to_vec();
            a.block_mut(k)[4] = -1.0;
            assert!(is_refused(&a), "{n}");
            a.block_mut(k).copy_from_slice(&saved);
            a.block_mut(k)[4] = f64::NAN;
            assert!(is_refused(&a), "{n}");

            // Without ground six rigid motions are free; with n = 9 all pivots are positive by rounding.
            let mut free = lower_half(&spring_grid(n, 3.7));
            for node in 0..(n * n) as u32 {
                let k = free.find(node as usize, node).expect("a diagonal block");
                (0..3).for_each(|i| free.block_mut(k)[4 * i] -= 1.0);
            }
            assert!(is_refused(&free), "{n}");
        }
    }
}
