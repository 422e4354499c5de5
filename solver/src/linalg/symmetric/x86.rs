//! Lanes of x86-64 processors: AVX2 with FMA, and AVX-512 for 6 x 6 blocks of f64.
//!
//! No closure stands around an instruction: a closure knows nothing of the instruction sets of the function it is in,
//! which keeps the compiler from expanding it in place.
//!
//! Vectors are read and written in the same pieces everywhere, so that a load of what was just stored need not wait
//! for the store to reach the cache.
//!
//! Invariant: lanes touch no more memory than [`Lanes`] says.
#![allow(unsafe_code)]

use super::Scalar;
use super::kernels::{Lanes, Matrix, Work, run_with};
use bytemuck::{cast_slice, cast_slice_mut};
use std::any::TypeId;
use std::arch::x86_64::{
    __m128, __m256, __m256d, __m512d, _MM_HINT_T0, _mm_add_ps, _mm_castps_si128, _mm_castsi128_ps,
    _mm_fmadd_ps, _mm_hadd_ps, _mm_load_sd, _mm_load_ss, _mm_loadl_epi64, _mm_loadu_pd,
    _mm_loadu_ps, _mm_movehl_ps, _mm_movelh_ps, _mm_prefetch, _mm_setzero_ps, _mm_shuffle_ps,
    _mm_store_sd, _mm_store_ss, _mm_storel_epi64, _mm_storeu_pd, _mm_storeu_ps, _mm_sub_ps,
    _mm256_add_pd, _mm256_add_ps, _mm256_blend_pd, _mm256_castpd128_pd256, _mm256_castpd256_pd128,
    _mm256_castps128_ps256, _mm256_castps256_ps128, _mm256_extractf128_pd, _mm256_extractf128_ps,
    _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_hadd_pd, _mm256_hadd_ps, _mm256_insertf128_pd,
    _mm256_insertf128_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_permute2f128_pd,
    _mm256_permute4x64_pd, _mm256_permutevar8x32_ps, _mm256_set1_epi32, _mm256_setzero_pd,
    _mm256_setzero_ps, _mm256_storeu_pd, _mm256_sub_pd, _mm256_sub_ps, _mm256_zextpd128_pd256,
    _mm512_add_pd, _mm512_castpd256_pd512, _mm512_castpd512_pd256, _mm512_extractf64x4_pd,
    _mm512_fmadd_pd, _mm512_insertf64x4, _mm512_loadu_pd, _mm512_permutexvar_pd, _mm512_set1_epi64,
    _mm512_setzero_pd, _mm512_sub_pd,
};

/// A function that does a step.
type Run<T> = for<'a> fn(Work<'a, T>) -> f64;

/// What does a step whose `work` has been checked, if there are lanes for the type, the block size and this processor.
pub(super) fn choose<T: Scalar, const B: usize>() -> Option<Run<T>> {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        return None;
    }
    let is_single = TypeId::of::<T>() == TypeId::of::<f32>();
    match (is_single, B) {
        // SAFETY: the processor has AVX2 and FMA, and `kernels::run` has checked `work`; so for the next two.
        (true, 3) => Some(|work| unsafe { run_avx2::<f32, 3, Single3>(cast(work)) }),
        // SAFETY: see above.
        (true, 6) => Some(|work| unsafe { run_avx2::<f32, 6, Single6>(cast(work)) }),
        // SAFETY: see above.
        (false, 3) => Some(|work| unsafe { run_avx2::<f64, 3, Double3>(cast(work)) }),
        (false, 6) if is_x86_feature_detected!("avx512f") => {
            // SAFETY: see above; the processor has AVX-512 too.
            Some(|work| unsafe { run_avx512::<f64, 6, Double6>(cast(work)) })
        }
        _ => None,
    }
}

/// Safety: as `run_with`. So for the next.
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<T: Scalar, const B: usize, L: Lanes<T, B>>(work: Work<T>) -> f64 {
    // SAFETY: as demanded of the caller.
    unsafe { run_with::<T, B, L>(work) }
}

#[target_feature(enable = "avx2,fma,avx512f")]
unsafe fn run_avx512<T: Scalar, const B: usize, L: Lanes<T, B>>(work: Work<T>) -> f64 {
    // SAFETY: as demanded of the caller.
    unsafe { run_with::<T, B, L>(work) }
}

/// The same step, where T and U are one type under two names.
fn cast<T: Scalar, U: Scalar>(work: Work<'_, T>) -> Work<'_, U> {
    match work {
        Work::Product { matrix, x, y, dot } => {
            let (x, y) = (cast_slice(x), cast_slice_mut(y));
            Work::Product {
                matrix: cast_matrix(matrix),
                x,
                y,
                dot,
            }
        }
        Work::Forward {
            matrix,
            b,
            x,
            r,
            is_damped,
        } => {
            let (b, x, r) = (cast_slice(b), cast_slice_mut(x), cast_slice_mut(r));
            Work::Forward {
                matrix: cast_matrix(matrix),
                b,
                x,
                r,
                is_damped,
            }
        }
        Work::Backward { matrix, v, x, r } => {
            let (v, x, r) = (cast_slice(v), cast_slice_mut(x), cast_slice_mut(r));
            Work::Backward {
                matrix: cast_matrix(matrix),
                v,
                x,
                r,
            }
        }
        Work::Border {
            matrix,
            rows,
            far,
            x,
            sent,
            y,
            is_negative,
        } => Work::Border {
            matrix: cast_matrix(matrix),
            rows,
            far: cast_slice(far),
            x: cast_slice(x),
            sent: cast_slice_mut(sent),
            y: cast_slice_mut(y),
            is_negative,
        },
    }
}

fn cast_matrix<T: Scalar, U: Scalar>(matrix: Matrix<'_, T>) -> Matrix<'_, U> {
    Matrix {
        row_start: matrix.row_start,
        columns: matrix.columns,
        values: cast_slice(matrix.values),
        diagonal: cast_slice(matrix.diagonal),
        inverse: cast_slice(matrix.inverse),
    }
}

/// Three f32 in an SSE register.
struct Single3;

impl Lanes<f32, 3> for Single3 {
    type V = __m128;

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
    unsafe fn store(p: *mut f32, v: __m128) {
        // SAFETY: see `zero`.
        unsafe {
            _mm_storel_epi64(p.cast(), _mm_castps_si128(v));
            _mm_store_ss(p.add(2), _mm_movehl_ps(v, v));
        }
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
    unsafe fn sum_rows(rows: [__m128; 3]) -> __m128 {
        // SAFETY: see `zero`.
        unsafe {
            _mm_hadd_ps(
                _mm_hadd_ps(rows[0], rows[1]),
                _mm_hadd_ps(rows[2], _mm_setzero_ps()),
            )
        }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        // SAFETY: a prefetch of any address is no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}

/// Six f32 in an AVX register.
struct Single6;

impl Lanes<f32, 6> for Single6 {
    type V = __m256;

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
    unsafe fn load(p: *const f32) -> __m256 {
        // SAFETY: see `zero`.
        unsafe {
            let two = _mm_castsi128_ps(_mm_loadl_epi64(p.add(4).cast()));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(p)), two)
        }
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
            let [r0, r1, r2, r3, r4, r5] = rows;
            let first = _mm256_hadd_ps(_mm256_hadd_ps(r0, r1), _mm256_hadd_ps(r2, r3));
            let last = _mm256_hadd_ps(_mm256_hadd_ps(r4, r5), _mm256_setzero_ps());
            let low = _mm_add_ps(
                _mm256_castps256_ps128(first),
                _mm256_extractf128_ps::<1>(first),
            );
            let high = _mm_add_ps(
                _mm256_castps256_ps128(last),
                _mm256_extractf128_ps::<1>(last),
            );
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        // SAFETY: a prefetch of any address is no access. A block fills more than two cache lines.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(p.cast());
            _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(16).cast());
            _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(32).cast());
        }
    }
}

/// Three f64 in an AVX register.
struct Double3;

impl Lanes<f64, 3> for Double3 {
    type V = __m256d;

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
    unsafe fn load(p: *const f64) -> __m256d {
        // SAFETY: see `zero`.
        unsafe {
            let two = _mm256_castpd128_pd256(_mm_loadu_pd(p));
            _mm256_insertf128_pd::<1>(two, _mm_load_sd(p.add(2)))
        }
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
    unsafe fn sum_rows(rows: [__m256d; 3]) -> __m256d {
        // SAFETY: see `zero`.
        unsafe {
            let first = _mm256_hadd_pd(rows[0], rows[1]);
            let last = _mm256_hadd_pd(rows[2], _mm256_setzero_pd());
            let crossed = _mm256_permute2f128_pd::<0x21>(first, last);
            _mm256_add_pd(crossed, _mm256_blend_pd::<0b1100>(first, last))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const f64) {
        // SAFETY: a prefetch of any address is no access. A block is longer than a cache line.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(p.cast());
            _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(8).cast());
        }
    }
}

/// Six f64 in an AVX-512 register.
struct Double6;

impl Lanes<f64, 6> for Double6 {
    type V = __m512d;

    #[inline(always)]
    unsafe fn zero() -> __m512d {
        // SAFETY: the instructions are there, and memory is valid, as the trait demands of callers; so for all here.
        unsafe { _mm512_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn load_row(p: *const f64) -> __m512d {
        // SAFETY: see `zero`.
        unsafe { _mm512_loadu_pd(p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> __m512d {
        // SAFETY: see `zero`.
        unsafe {
            let two = _mm256_zextpd128_pd256(_mm_loadu_pd(p.add(4)));
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(_mm256_loadu_pd(p)), two)
        }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f64, v: __m512d) {
        // SAFETY: see `zero`. A masked store would hold up the next load of the same scalars.
        unsafe {
            _mm256_storeu_pd(p, _mm512_castpd512_pd256(v));
            let two = _mm256_castpd256_pd128(_mm512_extractf64x4_pd::<1>(v));
            _mm_storeu_pd(p.add(4), two);
        }
    }

    #[inline(always)]
    unsafe fn splats(v: __m512d) -> [__m512d; 6] {
        let mut splats = [v; 6];
        for (i, splat) in splats.iter_mut().enumerate() {
            // SAFETY: see `zero`.
            *splat = unsafe { _mm512_permutexvar_pd(_mm512_set1_epi64(i as i64), v) };
        }
        splats
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: see `zero`.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: see `zero`.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: see `zero`.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn sum_rows(rows: [__m512d; 6]) -> __m512d {
        // SAFETY: see `zero`.
        unsafe {
            let mut halves = [_mm256_setzero_pd(); 6];
            for (half, row) in halves.iter_mut().zip(rows) {
                let high = _mm512_extractf64x4_pd::<1>(row);
                *half = _mm256_add_pd(_mm512_castpd512_pd256(row), high);
            }
            let first = _mm256_hadd_pd(halves[0], halves[1]);
            let second = _mm256_hadd_pd(halves[2], halves[3]);
            let third = _mm256_hadd_pd(halves[4], halves[5]);
            let crossed = _mm256_permute2f128_pd::<0x21>(first, second);
            let four = _mm256_add_pd(crossed, _mm256_blend_pd::<0b1100>(first, second));
            let third_high = _mm256_castpd128_pd256(_mm256_extractf128_pd::<1>(third));
            let two =
                _mm256_zextpd128_pd256(_mm256_castpd256_pd128(_mm256_add_pd(third, third_high)));
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(four), two)
        }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const f64) {
        // SAFETY: a prefetch of any address is no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}
