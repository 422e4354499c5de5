//! `Panels`: sums of products of small dense blocks, as Galerkin products and the smoothing of prolongators need them.
//!
//! Which products go where is listed before any number is touched; a list is worked off without a branch. Left factors are
//! blocks in double precision; right factors have rows of C floats or sums of this module: rows of six, the rigid-body
//! modes of a node, lie in two registers of AVX2 as columns 0 to 3 and 2 to 5. The two in the middle are computed twice,
//! alike, so that every load and store is a whole register. Rows of any other length are plain arrays.
//!
//! Invariant: products of blocks only; knows no matrix.
#![allow(unsafe_code)]

/// A product in a list: places of its factors and of the sum it is added to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) sum: u32,
}

/// Work on blocks with rows of C numbers.
pub(crate) trait PanelWork<const C: usize> {
    /// Result of the work.
    type Output;
    /// Does the work.
    fn run<P: Panels<C>>(self, panels: P) -> Self::Output;
}

/// Does `work` with the best panels that this processor has.
pub(crate) fn with_panels<const C: usize, W: PanelWork<C>>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(six) = avx2::Six::new::<C>() {
        return work.run(six);
    }
    work.run(Plain)
}

/// Ways to hold and multiply rows of C numbers.
///
/// # Panics
/// All methods, if a place in a list is out of range.
pub(crate) trait Panels<const C: usize>: Copy + Sync {
    /// A row of a sum.
    type Row: Copy + Send + Sync;
    /// A row of zeros.
    const ZERO: Self::Row;

    /// Rows of floats as those of sums.
    fn widen<const K: usize>(self, block: &[[f32; C]; K]) -> [Self::Row; K];

    /// sum += left right, for each term.
    fn add_products<const K: usize>(
        self,
        terms: &[Term],
        left: &[[[f64; K]; K]],
        right: &[[[f32; C]; K]],
        sums: &mut [[Self::Row; K]],
    );

    /// sum += leftᵀ right, for each term.
    fn add_transposed_products<const K: usize>(
        self,
        terms: &[Term],
        left: &[[[f64; K]; K]],
        right: &[[[f32; C]; K]],
        sums: &mut [[Self::Row; K]],
    );

    /// sum += leftᵀ right, for each term; left and right are of C columns both, and of `stack` blocks one upon the other,
    /// those of place p being blocks `stack * p` and on.
    fn add_squares<const K: usize>(
        self,
        terms: &[Term],
        stack: usize,
        left: &[[Self::Row; K]],
        right: &[[Self::Row; K]],
        sums: &mut [[[f64; C]; C]],
    );

    /// into += factor sum, rounded, for each sum and the block in its place.
    fn add_scaled_sums<const K: usize>(
        self,
        factor: &[[f64; K]; K],
        sums: &[[Self::Row; K]],
        into: &mut [[[f32; C]; K]],
    );
}

/// Rows as plain arrays.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl<const C: usize> Panels<C> for Plain {
    type Row = [f64; C];
    const ZERO: [f64; C] = [0.0; C];

    fn widen<const K: usize>(self, block: &[[f32; C]; K]) -> [[f64; C]; K] {
        block.map(|row| row.map(f64::from))
    }

    fn add_products<const K: usize>(
        self,
        terms: &[Term],
        left: &[[[f64; K]; K]],
        right: &[[[f32; C]; K]],
        sums: &mut [[[f64; C]; K]],
    ) {
        add_plain_products::<false, C, K>(terms, left, right, sums);
    }

    fn add_transposed_products<const K: usize>(
        self,
        terms: &[Term],
        left: &[[[f64; K]; K]],
        right: &[[[f32; C]; K]],
        sums: &mut [[[f64; C]; K]],
    ) {
        add_plain_products::<true, C, K>(terms, left, right, sums);
    }

    fn add_squares<const K: usize>(
        self,
        terms: &[Term],
        stack: usize,
        left: &[[[f64; C]; K]],
        right: &[[[f64; C]; K]],
        sums: &mut [[[f64; C]; C]],
    ) {
        for term in terms {
            let sum = &mut sums[term.sum as usize];
            let left = &left[term.left as usize * stack..][..stack];
            let right = &right[term.right as usize * stack..][..stack];
            for (a, b) in left.as_flattened().iter().zip(right.as_flattened()) {
                for (i, c) in (0..C * C).map(|at| (at / C, at % C)) {
                    sum[i][c] += a[i] * b[c];
                }
            }
        }
    }

    fn add_scaled_sums<const K: usize>(
        self,
        factor: &[[f64; K]; K],
        sums: &[[[f64; C]; K]],
        into: &mut [[[f32; C]; K]],
    ) {
        for (sum, into) in sums.iter().zip(into) {
            for (i, c) in (0..K * C).map(|at| (at / C, at % C)) {
                let change: f64 = (0..K).map(|k| factor[i][k] * sum[k][c]).sum();
                into[i][c] = (f64::from(into[i][c]) + change) as f32;
            }
        }
    }
}

fn add_plain_products<const TRANSPOSED: bool, const C: usize, const K: usize>(
    terms: &[Term],
    left: &[[[f64; K]; K]],
    right: &[[[f32; C]; K]],
    sums: &mut [[[f64; C]; K]],
) {
    for term in terms {
        let (a, b) = (&left[term.left as usize], &right[term.right as usize]);
        let sum = &mut sums[term.sum as usize];
        for (i, k) in (0..K * K).map(|at| (at / K, at % K)) {
            let factor = if TRANSPOSED { a[k][i] } else { a[i][k] };
            (0..C).for_each(|c| sum[i][c] += factor * f64::from(b[k][c]));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Panels, Term};
    use std::arch::x86_64::{
        __m256d, _mm_loadu_ps, _mm_storeu_ps, _mm256_cvtpd_ps, _mm256_cvtps_pd, _mm256_fmadd_pd,
        _mm256_load_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_setzero_pd, _mm256_store_pd,
        _mm256_storeu_pd,
    };

    /// Rows of six. There is one only where the processor has AVX2 and FMA, and only for C = 6.
    #[derive(Clone, Copy)]
    pub(super) struct Six(());

    impl Six {
        pub(super) fn new<const C: usize>() -> Option<Six> {
            let is_possible = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            (C == 6 && is_possible).then_some(Six(()))
        }
    }

    /// Columns 0 to 3, then 2 to 5.
    #[derive(Clone, Copy)]
    #[repr(C, align(32))]
    pub(crate) struct Row([f64; 8]);

    /// A row in registers.
    type Register = [__m256d; 2];

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn load(row: &Row) -> Register {
        // SAFETY: rows are aligned.
        unsafe {
            [
                _mm256_load_pd(row.0.as_ptr()),
                _mm256_load_pd(row.0.as_ptr().add(4)),
            ]
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn store(row: &mut Row, [low, high]: Register) {
        // SAFETY: rows are aligned.
        unsafe {
            _mm256_store_pd(row.0.as_mut_ptr(), low);
            _mm256_store_pd(row.0.as_mut_ptr().add(4), high);
        }
    }

    /// A row of six floats.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn widen<const C: usize>(row: &[f32; C]) -> Register {
        assert!(C == 6);
        // SAFETY: six floats are there.
        unsafe {
            [
                _mm256_cvtps_pd(_mm_loadu_ps(row.as_ptr())),
                _mm256_cvtps_pd(_mm_loadu_ps(row.as_ptr().add(2))),
            ]
        }
    }

    /// c + a b.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn add_scaled(c: Register, a: f64, b: Register) -> Register {
        let a = _mm256_set1_pd(a);
        [
            _mm256_fmadd_pd(a, b[0], c[0]),
            _mm256_fmadd_pd(a, b[1], c[1]),
        ]
    }

    #[target_feature(enable = "avx2,fma")]
    fn add_products<const TRANSPOSED: bool, const C: usize, const K: usize>(
        terms: &[Term],
        left: &[[[f64; K]; K]],
        right: &[[[f32; C]; K]],
        sums: &mut [[Row; K]],
    ) {
        for term in terms {
            let (a, b) = (&left[term.left as usize], &right[term.right as usize]);
            let sum = &mut sums[term.sum as usize];
            let mut rows = [[_mm256_setzero_pd(); 2]; K];
            for k in 0..K {
                rows[k] = widen(&b[k]);
            }
            for i in 0..K {
                let mut row = load(&sum[i]);
                for k in 0..K {
                    let factor = if TRANSPOSED { a[k][i] } else { a[i][k] };
                    row = add_scaled(row, factor, rows[k]);
                }
                store(&mut sum[i], row);
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn add_squares<const C: usize, const K: usize>(
        terms: &[Term],
        stack: usize,
        left: &[[Row; K]],
        right: &[[Row; K]],
        sums: &mut [[[f64; C]; C]],
    ) {
        assert!(C == 6);
        for term in terms {
            let left = left[term.left as usize * stack..][..stack].as_flattened();
            let right = right[term.right as usize * stack..][..stack].as_flattened();
            let sum: *mut f64 = sums[term.sum as usize].as_mut_ptr().cast();
            let mut rows = [[_mm256_setzero_pd(); 2]; 6];
            // SAFETY: the sum has six rows of six.
            unsafe {
                for i in 0..6 {
                    let row = sum.add(6 * i);
                    rows[i] = [_mm256_loadu_pd(row), _mm256_loadu_pd(row.add(2))];
                }
                for (a, b) in left.iter().zip(right) {
                    let b = load(b);
                    for i in 0..6 {
                        // Columns 4 and 5 stand behind a second copy of 2 and 3.
                        let place = if i < 4 { i } else { i + 2 };
                        rows[i] = add_scaled(rows[i], a.0[place], b);
                    }
                }
                for i in 0..6 {
                    let row = sum.add(6 * i);
                    _mm256_storeu_pd(row.add(2), rows[i][1]);
                    _mm256_storeu_pd(row, rows[i][0]);
                }
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn add_scaled_sums<const C: usize, const K: usize>(
        factor: &[[f64; K]; K],
        sums: &[[Row; K]],
        into: &mut [[[f32; C]; K]],
    ) {
        for (sum, into) in sums.iter().zip(into) {
            for i in 0..K {
                let mut row = widen(&into[i]);
                for k in 0..K {
                    row = add_scaled(row, factor[i][k], load(&sum[k]));
                }
                let target = into[i].as_mut_ptr();
                // SAFETY: six floats are there, as `widen` has made sure.
                unsafe {
                    _mm_storeu_ps(target.add(2), _mm256_cvtpd_ps(row[1]));
                    _mm_storeu_ps(target, _mm256_cvtpd_ps(row[0]));
                }
            }
        }
    }

    impl<const C: usize> Panels<C> for Six {
        type Row = Row;
        const ZERO: Row = Row([0.0; 8]);

        fn widen<const K: usize>(self, block: &[[f32; C]; K]) -> [Row; K] {
            block.map(|row| {
                let mut wide = Row([0.0; 8]);
                // SAFETY: a `Six` stands for the instructions; so below.
                unsafe { store(&mut wide, widen(&row)) };
                wide
            })
        }

        fn add_products<const K: usize>(
            self,
            terms: &[Term],
            left: &[[[f64; K]; K]],
            right: &[[[f32; C]; K]],
            sums: &mut [[Row; K]],
        ) {
            // SAFETY: see `widen`.
            unsafe { add_products::<false, C, K>(terms, left, right, sums) }
        }

        fn add_transposed_products<const K: usize>(
            self,
            terms: &[Term],
            left: &[[[f64; K]; K]],
            right: &[[[f32; C]; K]],
            sums: &mut [[Row; K]],
        ) {
            // SAFETY: see `widen`.
            unsafe { add_products::<true, C, K>(terms, left, right, sums) }
        }

        fn add_squares<const K: usize>(
            self,
            terms: &[Term],
            stack: usize,
            left: &[[Row; K]],
            right: &[[Row; K]],
            sums: &mut [[[f64; C]; C]],
        ) {
            // SAFETY: see `widen`.
            unsafe { add_squares(terms, stack, left, right, sums) }
        }

        fn add_scaled_sums<const K: usize>(
            self,
            factor: &[[f64; K]; K],
            sums: &[[Row; K]],
            into: &mut [[[f32; C]; K]],
        ) {
            // SAFETY: see `widen`.
            unsafe { add_scaled_sums(factor, sums, into) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PanelWork, Panels, Plain, Term, with_panels};

    /// Products of blocks of small whole numbers: all is exact.
    struct Products;

    type Found<const C: usize> = ([[[f32; C]; 3]; 2], [[f64; C]; C]);

    fn b(k: usize, c: usize) -> f64 {
        ((k * 5 + c * 3) % 7) as f64 - 3.0
    }

    const A: [[f64; 3]; 3] = [[1.0, -2.0, 3.0], [4.0, 0.0, -5.0], [0.0, 7.0, 1.0]];

    impl<const C: usize> PanelWork<C> for Products {
        type Output = Found<C>;

        fn run<P: Panels<C>>(self, panels: P) -> Found<C> {
            let right: [[f32; C]; 3] =
                std::array::from_fn(|k| std::array::from_fn(|c| b(k, c) as f32));
            let term = |left, right, sum| Term { left, right, sum };
            let mut sums = [[P::ZERO; 3]; 2];
            let terms = [term(1, 0, 1), term(1, 0, 1)];
            panels.add_products(&terms, &[[[0.0; 3]; 3], A], &[right], &mut sums);
            panels.add_transposed_products(&terms[..1], &[A, A], &[right], &mut sums);
            let mut rounded = [right; 2];
            panels.add_scaled_sums(&A, &sums, &mut rounded);
            let mut squares = [[[1.0; C]; C]; 1];
            let wide = [panels.widen(&right); 2];
            panels.add_squares(&[term(0, 1, 0)], 1, &wide, &sums, &mut squares);
            panels.add_squares(&[term(0, 0, 0)], 2, &wide, &sums, &mut squares);
            (rounded, squares[0])
        }
    }

    fn check<const C: usize>() {
        let found: Found<C> = with_panels(Products);
        assert_eq!(found, Products.run(Plain));
        let sum = |i: usize, c: usize| -> f64 {
            (0..3).map(|k| (2.0 * A[i][k] + A[k][i]) * b(k, c)).sum()
        };
        for c in 0..C {
            for i in 0..3 {
                assert_eq!(f64::from(found.0[0][i][c]), b(i, c));
                let scaled: f64 = (0..3).map(|k| A[i][k] * sum(k, c)).sum();
                assert_eq!(f64::from(found.0[1][i][c]), b(i, c) + scaled);
            }
            for d in 0..C {
                let square: f64 = (0..3).map(|k| b(k, d) * sum(k, c)).sum();
                assert_eq!(found.1[d][c], 1.0 + 2.0 * square);
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        check::<6>();
        check::<4>();
        check::<2>();
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn places_out_of_range_are_caught() {
        struct Wrong;
        impl PanelWork<6> for Wrong {
            type Output = ();

            fn run<P: Panels<6>>(self, panels: P) {
                let term = Term {
                    left: 0,
                    right: 1,
                    sum: 0,
                };
                panels.add_products(&[term], &[A], &[[[0.0; 6]; 3]], &mut [[P::ZERO; 3]]);
            }
        }
        with_panels(Wrong);
    }
}
