//! `Scalar`: the number types a matrix can store.
//!
//! Invariant: plain values; how they are computed with is the kernels' affair.

use std::ops::{Add, Mul, Sub};

/// A stored matrix value: f64, or f32 where half the memory traffic is worth the rounding (preconditioners).
pub trait Scalar:
    bytemuck::Pod
    + PartialEq
    + std::fmt::Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// Nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// The same value as f64, exactly.
    fn to_f64(self) -> f64;
}

impl Scalar for f64 {
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

impl Scalar for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}
