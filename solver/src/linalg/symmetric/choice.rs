//! Which kernels run on x86-64 processors: those over the lanes of the type and the block size.
//!
//! Invariant: no kernel lives here.
#![allow(unsafe_code)]

use super::Scalar;
use super::kernels::run_with;
use super::rows::RowLanes;
use super::work::Work;
use crate::linalg::lanes::x86::{Double3, Single3, Single6, is_there};
use std::any::TypeId;
use std::mem::{ManuallyDrop, transmute_copy};

/// A function that does a step.
type Run<T> = for<'a> fn(Work<'a, T>) -> f64;

/// What does a step whose `work` has been checked, if there are lanes for the type, the block size and this processor.
pub(super) fn choose<T: Scalar, const B: usize>() -> Option<Run<T>> {
    if !is_there() {
        return None;
    }
    let is_single = TypeId::of::<T>() == TypeId::of::<f32>();
    match (is_single, B) {
        // SAFETY: the processor has AVX2 and FMA, and `work::run` has checked `work`; so for the next two.
        (true, 3) => Some(|work| unsafe { run_avx2::<f32, 3, Single3>(rename(work)) }),
        // SAFETY: see above.
        (true, 6) => Some(|work| unsafe { run_avx2::<f32, 6, Single6>(rename(work)) }),
        // SAFETY: see above.
        (false, 3) => Some(|work| unsafe { run_avx2::<f64, 3, Double3>(rename(work)) }),
        _ => None,
    }
}

/// Safety: as `run_with`.
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<T: Scalar, const B: usize, L: RowLanes<T, B>>(work: Work<T>) -> f64 {
    // SAFETY: as demanded of the caller.
    unsafe { run_with::<T, B, L>(work) }
}

/// The same step, where T and U are one type under two names.
fn rename<T: 'static, U: 'static>(work: Work<'_, T>) -> Work<'_, U> {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<U>());
    let work = ManuallyDrop::new(work);
    // SAFETY: T and U are the same type, and the original is never used nor dropped again.
    unsafe { transmute_copy(&*work) }
}
