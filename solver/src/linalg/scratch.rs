//! `Scratch`: memory of a thread for the nodes that a kernel works on.
//!
//! Kernels keep the vectors that they gather from and scatter to in registers' width, one aligned node behind the other.
//! Each thread keeps one piece of memory for that and hands it on from kernel to kernel.
//!
//! Invariant: zeros when taken for the first time, later whatever the last kernel left: kernels write before they read.

use bytemuck::{Pod, Zeroable};
use std::cell::Cell;

/// As wide as the widest register.
#[repr(C, align(64))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Line([u8; 64]);

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Some scalars, aligned to 64 bytes, given back to the thread when dropped.
pub(super) struct Scratch {
    lines: Vec<Line>,
}

impl Scratch {
    /// Room for `n` scalars of type T and more.
    pub(super) fn take<T: Pod>(n: usize) -> Self {
        let mut lines = KEPT.take();
        let needed = (n * size_of::<T>()).div_ceil(size_of::<Line>());
        if lines.len() < needed {
            lines.resize(needed, Line::zeroed());
        }
        Scratch { lines }
    }

    /// The scalars.
    pub(super) fn scalars<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        KEPT.set(std::mem::take(&mut self.lines));
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn scratch_is_aligned_and_large_enough() {
        for n in [0, 1, 17, 4096, 100] {
            let mut scratch = Scratch::take::<f64>(n);
            let scalars = scratch.scalars::<f64>();
            assert!(scalars.len() >= n && scalars.as_ptr().addr().is_multiple_of(64));
            scalars.fill(1.0);
        }
        assert!(Scratch::take::<f32>(1).scalars::<f32>().len() >= 8192);
    }
}
