//! `SymmetricSlabs`: a symmetric block matrix stored by halves, with the products and sweeps of multigrid.
//!
//! A step of an iterative solver costs the bytes that it reads, so each block of the matrix is stored once. The rows
//! are cut into slabs of consecutive rows; threads share the slabs. A slab holds
//! - its *interior*: the blocks below the diagonal whose column is a row of the slab too;
//! - the diagonal blocks, and their inverses;
//! - its *border*: the blocks whose column is a row of an earlier slab.
//!
//! A stored block below the diagonal also stands for its transpose above. What the transposes of a border give to the
//! rows of other slabs is gathered apart and added by the slab that owns the rows, in order of slabs: no two threads
//! write one entry, and since the slabs follow from the matrix alone, results have the same bits for any number of
//! threads.
//!
//! # Smoothing
//! A V-cycle with one sweep before and one after the coarse correction, x about A^-1 b:
//! 1. [`SymmetricSlabs::forward_from_zero`]`(b, x, r)`: x = M^-1 b, and r = b - A x left behind;
//! 2. coarse correction of the residual: v = P (coarse solve of P^T r);
//! 3. [`SymmetricSlabs::backward`]`(v, x, r)`: x += v + M^-T (r - A v).
//!
//! M = D + L is the lower triangle within slabs (Gauss-Seidel within slabs, Jacobi between them), its diagonal D
//! enlarged as [`Damping`] says. With a symmetric
//! coarse solve the result is a symmetric operator on b. Each sweep reads the matrix once. Over ranks the matrix is
//! that of the owned rows and columns, and the caller takes ghosts into account: with G the blocks in ghost columns,
//! r -= G x_ghost after step 1, and r -= G v_ghost before step 3. The safe choice for many small slabs or ranks is
//! [`Damping::L1`].
//!
//! Invariant: one rank's numbers only; knows no ranks. Slabs follow from the pattern alone, never from the threads.

mod build;
#[cfg(target_arch = "x86_64")]
mod choice;
mod fill;
mod inverse;
mod kernels;
#[cfg(target_arch = "x86_64")]
mod paired;
mod rows;
mod slab;
#[cfg(test)]
mod tests;
mod work;

pub use build::Damping;

use super::Scalar;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use slab::Slab;
use work::Work;

/// Symmetric matrix of `n_rows` x `n_rows` blocks of B x B scalars, stored by halves in slabs of rows.
///
/// Vectors have `n_rows * B` scalars, of the type of the matrix; arithmetic is of that type too.
#[derive(Clone, Debug)]
pub struct SymmetricSlabs<T, const B: usize> {
    n_rows: usize,
    slabs: Vec<Slab<T>>,
}

impl<T: Scalar, const B: usize> SymmetricSlabs<T, B> {
    /// Number of block rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of slabs: as many threads can work at a time.
    pub fn n_slabs(&self) -> usize {
        self.slabs.len()
    }

    /// Number of stored blocks, the diagonal counted once.
    pub fn n_blocks(&self) -> usize {
        let below = |slab: &Slab<T>| slab.counts.interior + slab.counts.border;
        self.n_rows + self.slabs.iter().map(below).sum::<usize>()
    }

    /// Number of stored blocks that couple two slabs: the sweeps ignore them in M.
    pub fn n_border_blocks(&self) -> usize {
        self.slabs.iter().map(|s| s.counts.border).sum()
    }

    /// Memory of the stored arrays, bytes: matrix, and inverses of the diagonal blocks.
    pub fn memory(&self) -> usize {
        self.slabs.iter().map(Slab::memory).sum()
    }

    /// y = A x.
    ///
    /// # Panics
    /// If a length is not `n_rows * B`; so do all operations.
    pub fn apply(&self, x: &[T], y: &mut [T]) {
        self.product::<false>(x, y);
    }

    /// y = A x; returns x.y, summed in f64.
    pub fn apply_dot(&self, x: &[T], y: &mut [T]) -> f64 {
        self.product::<true>(x, y)
    }

    fn product<const DOT: bool>(&self, x: &[T], y: &mut [T]) -> f64 {
        self.check(&[x, y]);
        let tasks = self.slabs.iter().zip(self.split(y)).collect();
        let (dots, sent) = each(tasks, |(slab, y)| {
            let own = &x[slab.scalars::<B>()];
            let matrix = slab.matrix();
            let interior = work::run::<T, B>(Work::Product {
                matrix,
                x: own,
                y: &mut *y,
                dot: DOT,
            });
            let (border, sent) = slab.border_product::<B>(x, y, (false, DOT));
            (interior + border, sent)
        });
        self.deliver(&sent, y);
        dots.into_iter().sum()
    }

    /// Pre-smoother: x = M^-1 b, and r = b - A x. Reads the matrix once.
    pub fn forward_from_zero(&self, b: &[T], x: &mut [T], r: &mut [T]) {
        self.check(&[b, x, r]);
        let vectors = self.split(x).into_iter().zip(self.split(r));
        let tasks = self.slabs.iter().zip(vectors).collect();
        each(tasks, |(slab, (x, r))| {
            let work = Work::Forward {
                matrix: slab.matrix(),
                b: &b[slab.scalars::<B>()],
                x,
                r,
            };
            (work::run::<T, B>(work), ())
        });
        let sent = self.subtract_border(x, r);
        self.deliver(&sent, r);
    }

    /// Post-smoother: x += v + M^-T (r - A v), where `r` is the residual b - A x; what it holds afterwards has no
    /// meaning. Reads the matrix once. `v` may be zero: x += M^-T r.
    pub fn backward(&self, v: &[T], x: &mut [T], r: &mut [T]) {
        self.check(&[v, x, r]);
        let sent = self.subtract_border(v, r);
        let vectors = self.split(x).into_iter().zip(self.split(r));
        let tasks = self.slabs.iter().zip(vectors).collect();
        each(tasks, |(slab, (x, r))| {
            self.deliver_to(slab, &sent, r);
            let work = Work::Backward {
                matrix: slab.matrix(),
                v: &v[slab.scalars::<B>()],
                x,
                r,
            };
            (work::run::<T, B>(work), ())
        });
    }

    /// y -= C x, where C couples the slabs; what is to be delivered yet is returned.
    fn subtract_border(&self, x: &[T], y: &mut [T]) -> Vec<Vec<T>> {
        if self.slabs.len() == 1 {
            return Vec::new();
        }
        let tasks = self.slabs.iter().zip(self.split(y)).collect();
        let (_, sent) = each(tasks, |(slab, y)| {
            slab.border_product::<B>(x, y, (true, false))
        });
        sent
    }

    /// Adds to `y` what the borders of other slabs give to a slab's rows: `sent[s]` has a block of scalars for each
    /// of the rows that slab s touches.
    fn deliver(&self, sent: &[Vec<T>], y: &mut [T]) {
        if self.slabs.len() > 1 {
            let tasks = self.slabs.iter().zip(self.split(y)).collect();
            each(tasks, |(slab, y)| {
                self.deliver_to(slab, sent, y);
                (0.0, ())
            });
        }
    }

    /// As [`SymmetricSlabs::deliver`], to the entries `y` of one slab.
    fn deliver_to(&self, slab: &Slab<T>, sent: &[Vec<T>], y: &mut [T]) {
        for (from, values) in self.slabs.iter().zip(sent) {
            from.deliver::<B>(values, slab.rows.clone(), y);
        }
    }

    /// Pieces of a vector by slabs.
    fn split<'a>(&self, mut vector: &'a mut [T]) -> Vec<&'a mut [T]> {
        let mut pieces = Vec::with_capacity(self.slabs.len());
        for slab in &self.slabs {
            let (piece, rest) = vector.split_at_mut(slab.rows.len() * B);
            pieces.push(piece);
            vector = rest;
        }
        pieces
    }

    fn check(&self, vectors: &[&[T]]) {
        for vector in vectors {
            assert_eq!(vector.len(), self.n_rows * B, "length of a vector");
        }
    }
}

/// Runs `work` on all tasks, on several threads if there are; results in the order of the tasks.
fn each<I: Send, R: Send>(
    tasks: Vec<I>,
    work: impl Fn(I) -> (f64, R) + Sync + Send,
) -> (Vec<f64>, Vec<R>) {
    if tasks.len() > 1 && rayon::current_num_threads() > 1 {
        tasks.into_par_iter().map(work).unzip()
    } else {
        tasks.into_iter().map(work).unzip()
    }
}
