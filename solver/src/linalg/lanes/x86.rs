//! Lanes of x86-64 processors: AVX2 with FMA.
//!
//! No closure stands around an instruction: a closure knows nothing of the instruction sets of the function it is in,
//! which keeps the compiler from expanding it in place.
//!
//! Vectors are read and written in the same pieces everywhere, so that a load of what was just stored need not wait
//! for the store to reach the cache.
//!
//! Invariant: lanes touch no more memory than [`Lanes`] says.
#![allow(unsafe_code)]

use super::Lanes;
use std::arch::x86_64::{
    __m128, __m256, __m256d, _MM_HINT_T0, _mm_add_pd, _mm_add_ps, _mm_add_sd, _mm_blend_ps,
    _mm_castps_si128, _mm_castsi128_ps, _mm_fmadd_ps, _mm_load_ps, _mm_load_sd, _mm_load_ss,
    _mm_loadl_epi64, _mm_loadu_pd, _mm_loadu_ps, _mm_movehl_ps, _mm_movelh_ps, _mm_prefetch,
    _mm_set1_ps, _mm_setzero_ps, _mm_shuffle_ps, _mm_store_ps, _mm_store_sd, _mm_store_ss,
    _mm_storel_epi64, _mm_storeu_pd, _mm_storeu_ps, _mm_sub_ps, _mm_unpackhi_pd, _mm_unpackhi_ps,
    _mm_unpacklo_ps, _mm256_add_pd, _mm256_add_ps, _mm256_blend_pd, _mm256_castpd128_pd256,
    _mm256_castpd256_pd128, _mm256_castps128_ps256, _mm256_castps256_ps128, _mm256_extractf128_pd,
    _mm256_extractf128_ps, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_hadd_ps, _mm256_insertf128_pd,
    _mm256_insertf128_ps, _mm256_load_pd, _mm256_load_ps, _mm256_loadu_pd, _mm256_loadu_ps,
    _mm256_permute4x64_pd, _mm256_permutevar8x32_ps, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_store_pd,
    _mm256_store_ps, _mm256_sub_pd, _mm256_sub_ps, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
};
/// Whether this processor has AVX2 with FMA.
pub(in crate::linalg) fn is_there() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Three f32 in an SSE register.
pub(in crate::linalg) struct Single3;

impl Lanes<f32, 3> for Single3 {
    type V = __m128;
    const STRIDE: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> __m128 {
        // SAFETY: the instructions are there, and memory is valid, as the trait demands of callers; so for all here.
        unsafe { _mm_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_row(p: *const f32) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn load_symmetric(p: *const f32) -> [__m128; 3] {
        // SAFETY: see `zero`.
        unsafe {
            let (front, back) = (_mm_loadu_ps(p), _mm_loadu_ps(p.add(2)));
            [
                front,
                _mm_shuffle_ps::<0b10_10_11_01>(front, back),
                _mm_shuffle_ps::<0b11_11_10_00>(back, back),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m128 {
        // SAFETY: see `zero`.
        unsafe {
            _mm_movelh_ps(
                _mm_castsi128_ps(_mm_loadl_epi64(p.cast())),
                _mm_load_ss(p.add(2)),
            )
        }
    }

    #[inline(always)]
    unsafe fn load_beyond(p: *const f32) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m128) {
        // SAFETY: see `zero`.
        unsafe {
            _mm_storel_epi64(p.cast(), _mm_castps_si128(v));
            _mm_store_ss(p.add(2), _mm_movehl_ps(v, v));
        }
    }

    #[inline(always)]
    unsafe fn load_node(p: *const f32) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_load_ps(p) }
    }

    #[inline(always)]
    unsafe fn store_node(p: *mut f32, v: __m128) {
        // SAFETY: see `zero`.
        unsafe { _mm_store_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn splats(v: __m128) -> [__m128; 3] {
        // SAFETY: see `zero`.
        unsafe {
            [
                _mm_shuffle_ps::<0b00_00_00_00>(v, v),
                _mm_shuffle_ps::<0b01_01_01_01>(v, v),
                _mm_shuffle_ps::<0b10_10_10_10>(v, v),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m128, b: __m128) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m128, b: __m128) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m128, b: __m128, c: __m128) -> __m128 {
        // SAFETY: see `zero`.
        unsafe { _mm_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn sum_rows([a, b, c]: [__m128; 3]) -> __m128 {
        // SAFETY: see `zero`.
        unsafe {
            let front = _mm_unpacklo_ps(a, b);
            let back = _mm_unpackhi_ps(a, b);
            let lane_0 = _mm_shuffle_ps::<0b11_00_01_00>(front, c);
            let lane_1 = _mm_shuffle_ps::<0b11_01_11_10>(front, c);
            let lane_2 = _mm_blend_ps::<0b0011>(c, back);
            _mm_add_ps(_mm_add_ps(lane_0, lane_1), lane_2)
        }
    }

    #[inline(always)]
    unsafe fn prefetch_line(p: *const f32) {
        // SAFETY: a prefetch of any address is no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}

/// Six f32 in an AVX register.
pub(in crate::linalg) struct Single6;

impl Lanes<f32, 6> for Single6 {
    type V = __m256;
    const STRIDE: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: the instructions are there, and memory is valid, as the trait demands of callers; so for all here.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_row(p: *const f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn load_symmetric(p: *const f32) -> [__m256; 6] {
        // SAFETY: see `zero`.
        unsafe {
            let mut rows = [_mm256_loadu_ps(p); 6];
            for i in 1..6 {
                rows[i] = _mm256_loadu_ps(p.add(6 * i));
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe {
            let two = _mm_castsi128_ps(_mm_loadl_epi64(p.add(4).cast()));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(p)), two)
        }
    }

    #[inline(always)]
    unsafe fn load_beyond(p: *const f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m256) {
        // SAFETY: see `zero`.
        unsafe {
            _mm_storeu_ps(p, _mm256_castps256_ps128(v));
            let two = _mm_castps_si128(_mm256_extractf128_ps::<1>(v));
            _mm_storel_epi64(p.add(4).cast(), two);
        }
    }

    #[inline(always)]
    unsafe fn load_node(p: *const f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_load_ps(p) }
    }

    #[inline(always)]
    unsafe fn store_node(p: *mut f32, v: __m256) {
        // SAFETY: see `zero`.
        unsafe { _mm256_store_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn splats(v: __m256) -> [__m256; 6] {
        let mut splats = [v; 6];
        for (i, splat) in splats.iter_mut().enumerate() {
            // SAFETY: see `zero`.
            *splat = unsafe { _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(i as i32)) };
        }
        splats
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: see `zero`.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn sum_rows(rows: [__m256; 6]) -> __m256 {
        // SAFETY: see `zero`.
        unsafe {
            let [a, b, c, d, e, f] = rows;
            // Sums of two lanes of two rows: low half 01 23 of each, high half 45 67, of which 67 is left out.
            let first = _mm256_hadd_ps(a, b);
            let second = _mm256_hadd_ps(c, d);
            let third = _mm256_hadd_ps(e, f);
            let front = _mm256_castps256_ps128(_mm256_hadd_ps(first, second));
            let back =
                _mm256_extractf128_ps::<1>(_mm256_shuffle_ps::<0b10_00_10_00>(first, second));
            let low = _mm_add_ps(front, back);
            let front = _mm256_castps256_ps128(_mm256_hadd_ps(third, third));
            let back = _mm256_extractf128_ps::<1>(_mm256_shuffle_ps::<0b10_00_10_00>(third, third));
            let high = _mm_add_ps(front, back);
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn prefetch_line(p: *const f32) {
        // SAFETY: a prefetch of any address is no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}

/// Three f64 in an AVX register.
pub(in crate::linalg) struct Double3;

impl Lanes<f64, 3> for Double3 {
    type V = __m256d;
    const STRIDE: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> __m256d {
        // SAFETY: the instructions are there, and memory is valid, as the trait demands of callers; so for all here.
        unsafe { _mm256_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn load_row(p: *const f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_loadu_pd(p) }
    }

    #[inline(always)]
    unsafe fn load_symmetric(p: *const f64) -> [__m256d; 3] {
        // SAFETY: see `zero`.
        unsafe {
            let (front, back) = (_mm256_loadu_pd(p), _mm256_loadu_pd(p.add(2)));
            let middle = _mm256_permute4x64_pd::<0b11_11_11_01>(front);
            [
                front,
                _mm256_blend_pd::<0b0100>(middle, back),
                _mm256_permute4x64_pd::<0b11_11_10_00>(back),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe {
            let two = _mm256_castpd128_pd256(_mm_loadu_pd(p));
            _mm256_insertf128_pd::<1>(two, _mm_load_sd(p.add(2)))
        }
    }

    #[inline(always)]
    unsafe fn load_beyond(p: *const f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_loadu_pd(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f64, v: __m256d) {
        // SAFETY: see `zero`.
        unsafe {
            _mm_storeu_pd(p, _mm256_castpd256_pd128(v));
            _mm_store_sd(p.add(2), _mm256_extractf128_pd::<1>(v));
        }
    }

    #[inline(always)]
    unsafe fn load_node(p: *const f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_load_pd(p) }
    }

    #[inline(always)]
    unsafe fn store_node(p: *mut f64, v: __m256d) {
        // SAFETY: see `zero`.
        unsafe { _mm256_store_pd(p, v) }
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_set1_pd(value) }
    }

    #[inline(always)]
    unsafe fn splats(v: __m256d) -> [__m256d; 3] {
        // SAFETY: see `zero`.
        unsafe {
            [
                _mm256_permute4x64_pd::<0b00_00_00_00>(v),
                _mm256_permute4x64_pd::<0b01_01_01_01>(v),
                _mm256_permute4x64_pd::<0b10_10_10_10>(v),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see `zero`.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn sum_rows([a, b, c]: [__m256d; 3]) -> __m256d {
        // SAFETY: see `zero`.
        unsafe {
            let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            let lane_2 = _mm256_extractf128_pd::<1>(even);
            let front = _mm_add_pd(_mm256_castpd256_pd128(even), _mm256_castpd256_pd128(odd));
            let low = _mm_add_pd(front, lane_2);
            let two = _mm256_castpd256_pd128(c);
            let front = _mm_add_sd(two, _mm_unpackhi_pd(two, two));
            let high = _mm_add_sd(front, _mm256_extractf128_pd::<1>(c));
            _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn prefetch_line(p: *const f64) {
        // SAFETY: a prefetch of any address is no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}
