//! `GaussSeidel`: symmetric block Gauss-Seidel in single precision, the smoother of every level.
//!
//! The rows of a rank are divided into slabs, and the slabs colored so that (most) slabs of one color have no
//! connection. A forward sweep goes through the colors in order, through the slabs of one color in parallel, and in
//! each slab from the first row to the last; a backward sweep goes the other way around. Rows so see all values that
//! came before them, as in the sequential method, whatever the number of threads. Connections that no order can honor,
//! to other ranks and between slabs of one color, are treated as in Jacobi's method; half the sum of their absolute
//! values is added to the diagonal, which makes the sweeps convergent for every positive definite matrix (Baker,
//! Falgout, Kolev and Yang, SIAM J. Sci. Comput. 33 (2011) 2864).
//!
//! Within a slab only the blocks below the diagonal are stored: each is used twice while it is at hand, for the row it
//! is in and, transposed, for the residual of the row it mirrors. The price of a sweep is the bytes it reads.
//!
//! Invariant: slabs and colors depend on the matrix only, never on the number of threads.

mod border;
mod build;

use crate::linalg::vectorize::{Kernel, dispatch, madd};
use border::Border;
use fem_mesh::{Comm, Halo};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// The smoother of one level.
pub(super) struct GaussSeidel<const B: usize> {
    slabs: Vec<Slab<B>>,
    n_colors: usize,
    halo: Halo,
    n_ghosts: usize,
}

/// Some consecutive rows of a rank.
struct Slab<const B: usize> {
    rows: Range<usize>,
    color: usize,
    /// Blocks below the diagonal with rows and columns in the slab: row i (of the slab) has those of
    /// `row_start[i]..row_start[i + 1]`, columns count from the first row of the slab.
    row_start: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<[[f32; B]; B]>,
    /// Inverses of the diagonal blocks, with what was added to them.
    inverse: Vec<[[f32; B]; B]>,
    /// What was added to the diagonal; empty if nothing was.
    added: Vec<[f32; B]>,
    /// Connections to slabs of earlier colors, of later ones, and of the same one.
    earlier: Border<B>,
    later: Border<B>,
    same: Border<B>,
    /// Connections to ghosts.
    ghosts: Border<B>,
}

impl<const B: usize> GaussSeidel<B> {
    /// Collective. One forward sweep for A x = b from x = 0, and what it leaves: r = b - A x.
    pub(super) fn pre(&self, comm: &Comm, b: &[[f32; B]], x: &mut [[f32; B]], r: &mut [[f32; B]]) {
        r.copy_from_slice(b);
        for color in 0..self.n_colors {
            if color > 0 {
                let jobs = self.jobs(Some(color), r);
                run(jobs, |(slab, r)| slab.earlier.subtract(x, r));
            }
            let jobs = self
                .jobs(Some(color), r)
                .into_iter()
                .zip(self.jobs(Some(color), x));
            let jobs = jobs.map(|((slab, r), (_, x))| (slab, x, r)).collect();
            run(jobs, |(slab, x, r)| dispatch(Forward { slab, x, r }));
        }
        let ghosts = self.ghosts_of(comm, x, |x| {
            run(self.jobs(None, r), |(slab, r)| {
                slab.later.subtract(x, r);
                slab.same.subtract(x, r);
            });
        });
        run(self.jobs(None, r), |(slab, r)| {
            slab.ghosts.subtract(&ghosts, r)
        });
    }

    /// Collective. One backward sweep for A e = r from e = v, then x += e. `v` and `r` are used up.
    pub(super) fn post(
        &self,
        comm: &Comm,
        v: &mut [[f32; B]],
        r: &mut [[f32; B]],
        x: &mut [[f32; B]],
    ) {
        let ghosts = self.ghosts_of(comm, v, |v| {
            run(self.jobs(None, r), |(slab, r)| {
                slab.earlier.subtract(v, r);
                slab.same.subtract(v, r);
            });
        });
        run(self.jobs(None, r), |(slab, r)| {
            slab.ghosts.subtract(&ghosts, r)
        });
        for color in (0..self.n_colors).rev() {
            if color + 1 < self.n_colors {
                let jobs = self.jobs(Some(color), r);
                run(jobs, |(slab, r)| slab.later.subtract(v, r));
            }
            let (r, v, x) = (
                self.jobs(Some(color), r),
                self.jobs(Some(color), v),
                self.jobs(Some(color), x),
            );
            let jobs = r
                .into_iter()
                .zip(v)
                .zip(x)
                .map(|(((slab, r), (_, v)), (_, x))| (slab, r, v, x));
            run(jobs.collect(), |(slab, r, v, x)| {
                dispatch(Backward { slab, r, v });
                for (x, e) in x.iter_mut().zip(v) {
                    (0..B).for_each(|c| x[c] += e[c]);
                }
            });
        }
    }

    /// Collective. The ghost values of `x`, while `meanwhile` runs.
    fn ghosts_of(
        &self,
        comm: &Comm,
        x: &[[f32; B]],
        meanwhile: impl FnOnce(&[[f32; B]]),
    ) -> Vec<[f32; B]> {
        let exchange = self.halo.start(comm, x.as_flattened(), B);
        meanwhile(x);
        let mut ghosts = vec![[0.0; B]; self.n_ghosts];
        self.halo.finish(comm, exchange, ghosts.as_flattened_mut());
        ghosts
    }

    /// The slabs of one color, or all, each with its part of `values`.
    fn jobs<'a>(
        &'a self,
        color: Option<usize>,
        mut values: &'a mut [[f32; B]],
    ) -> Vec<(&'a Slab<B>, &'a mut [[f32; B]])> {
        let mut jobs = Vec::with_capacity(self.slabs.len());
        for slab in &self.slabs {
            let (part, rest) = values.split_at_mut(slab.rows.len());
            values = rest;
            if color.is_none_or(|color| color == slab.color) {
                jobs.push((slab, part));
            }
        }
        jobs
    }

    /// Number of slabs and of colors.
    pub(super) fn division(&self) -> (usize, usize) {
        (self.slabs.len(), self.n_colors)
    }

    /// Memory, bytes.
    pub(super) fn memory(&self) -> usize {
        self.slabs.iter().map(Slab::memory).sum()
    }
}

/// Runs jobs in parallel, or here if there is only one.
fn run<J: Send>(jobs: Vec<J>, work: impl Fn(J) + Send + Sync) {
    if jobs.len() == 1 {
        jobs.into_iter().for_each(work);
    } else {
        jobs.into_par_iter().for_each(work);
    }
}

impl<const B: usize> Slab<B> {
    fn memory(&self) -> usize {
        let borders = [&self.earlier, &self.later, &self.same, &self.ghosts];
        size_of_val(self.row_start.as_slice())
            + size_of_val(self.columns.as_slice())
            + size_of_val(self.blocks.as_slice())
            + size_of_val(self.inverse.as_slice())
            + size_of_val(self.added.as_slice())
            + borders.map(Border::memory).iter().sum::<usize>()
    }

    /// A row's blocks and columns.
    #[inline(always)]
    fn row(&self, row: usize) -> (&[u32], &[[[f32; B]; B]]) {
        let range = self.row_start[row] as usize..self.row_start[row + 1] as usize;
        (&self.columns[range.clone()], &self.blocks[range])
    }
}

/// Forward sweep of a slab from zero. `r` holds the right-hand side and is left as the residual, as far as blocks of
/// the slab go.
struct Forward<'a, const B: usize> {
    slab: &'a Slab<B>,
    x: &'a mut [[f32; B]],
    r: &'a mut [[f32; B]],
}

impl<const B: usize> Kernel for Forward<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Forward { slab, x, r } = self;
        for row in 0..slab.rows.len() {
            let (columns, blocks) = slab.row(row);
            let sum = subtract_row::<FMA, B>(columns, blocks, x, r[row]);
            let value = multiply::<FMA, B>(&slab.inverse[row], &sum);
            x[row] = value;
            // The sweep solves the row with what was added to its diagonal.
            r[row] = match slab.added.get(row) {
                Some(added) => std::array::from_fn(|c| added[c] * value[c]),
                None => [0.0; B],
            };
            subtract_transposed::<FMA, B>(columns, blocks, &value, r);
        }
    }
}

/// Backward sweep of a slab for A e = r from e = v, which is overwritten by the result.
struct Backward<'a, const B: usize> {
    slab: &'a Slab<B>,
    r: &'a mut [[f32; B]],
    v: &'a mut [[f32; B]],
}

impl<const B: usize> Kernel for Backward<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Backward { slab, r, v } = self;
        for row in (0..slab.rows.len()).rev() {
            let (columns, blocks) = slab.row(row);
            let mut sum = subtract_row::<FMA, B>(columns, blocks, v, r[row]);
            if let Some(added) = slab.added.get(row) {
                (0..B).for_each(|c| sum[c] = madd::<FMA, f32>(added[c], v[row][c], sum[c]));
            }
            let value = multiply::<FMA, B>(&slab.inverse[row], &sum);
            v[row] = value;
            subtract_transposed::<FMA, B>(columns, blocks, &value, r);
        }
    }
}

/// `sum` minus the product of a row with `x`.
#[inline(always)]
fn subtract_row<const FMA: bool, const B: usize>(
    columns: &[u32],
    blocks: &[[[f32; B]; B]],
    x: &[[f32; B]],
    sum: [f32; B],
) -> [f32; B] {
    let mut lanes = [[0.0f32; B]; B];
    for (&column, block) in columns.iter().zip(blocks) {
        let x = &x[column as usize];
        for i in 0..B {
            for j in 0..B {
                lanes[i][j] = madd::<FMA, f32>(block[i][j], x[j], lanes[i][j]);
            }
        }
    }
    std::array::from_fn(|i| sum[i] - lanes[i].iter().sum::<f32>())
}

/// Subtracts the product of a transposed row with `value` from the rows of `r` that it mirrors.
#[inline(always)]
fn subtract_transposed<const FMA: bool, const B: usize>(
    columns: &[u32],
    blocks: &[[[f32; B]; B]],
    value: &[f32; B],
    r: &mut [[f32; B]],
) {
    let minus = value.map(|v| -v);
    for (&column, block) in columns.iter().zip(blocks) {
        let r = &mut r[column as usize];
        for i in 0..B {
            for j in 0..B {
                r[j] = madd::<FMA, f32>(block[i][j], minus[i], r[j]);
            }
        }
    }
}

#[inline(always)]
fn multiply<const FMA: bool, const B: usize>(block: &[[f32; B]; B], x: &[f32; B]) -> [f32; B] {
    let mut y = [0.0; B];
    for i in 0..B {
        for j in 0..B {
            y[i] = madd::<FMA, f32>(block[i][j], x[j], y[i]);
        }
    }
    y
}
