// Prototype: half of a symmetric block matrix, each thread its range of rows; product and Gauss-Seidel sweeps on it.
#pragma once
#include "assembly.h"
struct f3 {
  typedef float T;
  typedef __m128 V;
  static const int B = 3, VS = 4;
  static V zero() { return _mm_setzero_ps(); }
  static V ld(const T *p) { return _mm_loadu_ps(p); }
  static void st(T *p, V v) { _mm_storeu_ps(p, v); }
  static V bc(const T *p) { return _mm_broadcast_ss(p); }
  static V fma(V a, V b, V c) { return _mm_fmadd_ps(a, b, c); }
  static V fnma(V a, V b, V c) { return _mm_fnmadd_ps(a, b, c); }
  static V sub(V a, V b) { return _mm_sub_ps(a, b); }
  static V add(V a, V b) { return _mm_add_ps(a, b); }
  static V red(const V *m) { return _mm_hadd_ps(_mm_hadd_ps(m[0], m[1]), _mm_hadd_ps(m[2], _mm_setzero_ps())); }
};
struct f6 {
  typedef float T;
  typedef __m256 V;
  static const int B = 6, VS = 8;
  static V zero() { return _mm256_setzero_ps(); }
  static V ld(const T *p) { return _mm256_loadu_ps(p); }
  static void st(T *p, V v) { _mm256_storeu_ps(p, v); }
  static V bc(const T *p) { return _mm256_broadcast_ss(p); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V red(const V *m) {
    V h = _mm256_hadd_ps(_mm256_hadd_ps(m[0], m[1]), _mm256_hadd_ps(m[2], m[3])),
      g = _mm256_hadd_ps(_mm256_hadd_ps(m[4], m[5]), _mm256_setzero_ps());
    __m128 a = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)),
           b = _mm_add_ps(_mm256_castps256_ps128(g), _mm256_extractf128_ps(g, 1));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
  }
};
struct d3 {
  typedef double T;
  typedef __m256d V;
  static const int B = 3, VS = 4;
  static V zero() { return _mm256_setzero_pd(); }
  static V ld(const T *p) { return _mm256_loadu_pd(p); }
  static void st(T *p, V v) { _mm256_storeu_pd(p, v); }
  static V bc(const T *p) { return _mm256_broadcast_sd(p); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V fnma(V a, V b, V c) { return _mm256_fnmadd_pd(a, b, c); }
  static V sub(V a, V b) { return _mm256_sub_pd(a, b); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V red(const V *m) {
    V t0 = _mm256_hadd_pd(m[0], m[1]), t1 = _mm256_hadd_pd(m[2], _mm256_setzero_pd());
    return _mm256_add_pd(_mm256_permute2f128_pd(t0, t1, 0x21), _mm256_blend_pd(t0, t1, 0xC));
  }
};
template <class S> struct Half {
  typedef typename S::T T;
  int n = 0;
  std::vector<int> ptr, col, optr, ocol, tr;
  Buf<T> val, oval;
  // from full row-major (BxB blocks)
  template <class Tin>
  void build(int N, const std::vector<int> &fp, const std::vector<int> &fc, const Tin *fv,
             const std::vector<int> &ranges, const Half *pattern = nullptr) {
    const int B = S::B, BB = B * B;
    n = N;
    tr = ranges;
    ptr.assign(n + 1, 0);
    optr.assign(n + 1, 0);
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num(), r0 = tr[id], r1 = tr[id + 1];
      for (int i = r0; i < r1; i++) {
        int a = 0, b = 0;
        for (int p = fp[i]; p < fp[i + 1]; p++) {
          int c = fc[p];
          if (c < r0 || c >= r1)
            b++;
          else if (c <= i)
            a++;
        }
        ptr[i + 1] = a;
        optr[i + 1] = b;
      }
    }
    for (int i = 0; i < n; i++) {
      ptr[i + 1] += ptr[i];
      optr[i + 1] += optr[i];
    }
    col.resize(ptr[n]);
    ocol.resize(optr[n]);
    val.alloc((size_t)ptr[n] * BB + 64);
    oval.alloc((size_t)optr[n] * BB + 64);
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num(), r0 = tr[id], r1 = tr[id + 1];
      for (int i = r0; i < r1; i++) {
        int a = ptr[i], b = optr[i];
        for (int p = fp[i]; p < fp[i + 1]; p++) {
          int c = fc[p];
          const Tin *s = fv + (size_t)BB * p;
          if (c < r0 || c >= r1) {
            T *d = &oval[(size_t)BB * b];
            for (int q = 0; q < BB; q++)
              d[q] = (T)s[q];
            ocol[b++] = c;
          } else if (c <= i) {
            T *d = &val[(size_t)BB * a];
            for (int q = 0; q < BB; q++)
              d[q] = (T)s[q];
            col[a++] = c;
          }
        }
      }
    }
    memset(&val[(size_t)ptr[n] * BB], 0, 64 * sizeof(T));
    memset(&oval[(size_t)optr[n] * BB], 0, 64 * sizeof(T));
  }
  size_t bytes() const {
    return (size_t)ptr[n] * (S::B * S::B * sizeof(T) + 4) + (size_t)optr[n] * (S::B * S::B * sizeof(T) + 4) +
           8 * (size_t)n;
  }
};
#define ROWG(P0, P1, COL, VAL, XX)                                                                                     \
  for (int p = P0; p < P1; p++) {                                                                                      \
    const T *a = VAL + (size_t)BB * p;                                                                                 \
    _mm_prefetch((const char *)(a) + PF, _MM_HINT_T0);                                                                 \
    V xk = S::ld(XX + (size_t)VS * COL[p]);                                                                            \
    for (int r = 0; r < B; r++)                                                                                        \
      M[r] = S::fma(S::ld(a + B * r), xk, M[r]);                                                                       \
  }
#define ROWS(P0, P1, COL, VAL, YY, SGN)                                                                                \
  for (int p = P0; p < P1; p++) {                                                                                      \
    const T *a = VAL + (size_t)BB * p;                                                                                 \
    T *y = YY + (size_t)VS * COL[p];                                                                                   \
    V v = S::ld(y);                                                                                                    \
    for (int r = 0; r < B; r++)                                                                                        \
      v = S::SGN(S::ld(a + B * r), bx[r], v);                                                                          \
    S::st(y, v);                                                                                                       \
  }
static const int PF = 2048;
// y = A x ; returns x.y
template <class S> static double symv(const Half<S> &A, const typename S::T *x, typename S::T *y) {
  typedef typename S::T T;
  typedef typename S::V V;
  const int B = S::B, VS = S::VS, BB = B * B;
  double tot = 0;
#pragma omp parallel num_threads(NT) reduction(+ : tot)
  {
    int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
    const T *av = A.val.p, *ov = A.oval.p;
    double acc = 0;
    for (int i = r0; i < r1; i++) {
      V M[B], bx[B], M2[B];
      const T *xi = x + (size_t)VS * i;
      for (int r = 0; r < B; r++) {
        M[r] = S::zero();
        bx[r] = S::bc(xi + r);
      }
      int p0 = A.ptr[i], p1 = A.ptr[i + 1] - 1;
      for (int p = p0; p < p1; p++) {
        const T *a = av + (size_t)BB * p;
        _mm_prefetch((const char *)(a) + PF, _MM_HINT_T0);
        V xk = S::ld(x + (size_t)VS * A.col[p]);
        T *yk = y + (size_t)VS * A.col[p];
        V v = S::ld(yk);
        for (int r = 0; r < B; r++) {
          V ar = S::ld(a + B * r);
          M[r] = S::fma(ar, xk, M[r]);
          v = S::fma(ar, bx[r], v);
        }
        S::st(yk, v);
      }
      for (int r = 0; r < B; r++)
        M2[r] = S::zero();
      {
        const T *a = av + (size_t)BB * p1;
        V xk = S::ld(xi);
        for (int r = 0; r < B; r++)
          M2[r] = S::fma(S::ld(a + B * r), xk, M2[r]);
      }
      for (int p = A.optr[i]; p < A.optr[i + 1]; p++) {
        const T *a = ov + (size_t)BB * p;
        V xk = S::ld(x + (size_t)VS * A.ocol[p]);
        for (int r = 0; r < B; r++)
          M2[r] = S::fma(S::ld(a + B * r), xk, M2[r]);
      }
      V g = S::red(M), h = S::red(M2);
      V yi = S::add(g, h);
      S::st(y + (size_t)VS * i, yi);
      T t[VS];
      S::st(t, S::add(S::add(g, g), h));
      for (int r = 0; r < B; r++)
        acc += (double)t[r] * xi[r];
    }
    tot += acc;
  }
  return tot;
}
template <class S> struct Lev {
  typedef typename S::T T;
  typedef typename S::V V;
  static const int B = S::B, VS = S::VS, BB = B * B;
  Half<S> A;
  Buf<T> dinv; /*B columns x VS*/
  void mkdinv(const std::vector<int> &fp, const std::vector<int> &fc, const double *fv) {
    int n = A.n;
    dinv.alloc((size_t)n * B * VS + 16);
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
      for (int i = r0; i < r1; i++) {
        double m[B][2 * B];
        for (int p = fp[i]; p < fp[i + 1]; p++)
          if (fc[p] == i)
            for (int r = 0; r < B; r++)
              for (int c = 0; c < B; c++)
                m[r][c] = fv[(size_t)BB * p + r * B + c];
        for (int r = 0; r < B; r++) {
          if (m[r][r] <= 0)
            m[r][r] = 1;
          for (int c = 0; c < B; c++)
            m[r][B + c] = r == c;
        }
        double tr_ = 0;
        for (int r = 0; r < B; r++)
          tr_ = std::max(tr_, m[r][r]);
        for (int k = 0; k < B; k++) {
          double d = m[k][k];
          if (d < 1e-13 * tr_)
            d = tr_;
          d = 1 / d;
          for (int c = 0; c < 2 * B; c++)
            m[k][c] *= d;
          for (int r = 0; r < B; r++)
            if (r != k) {
              double f = m[r][k];
              for (int c = 0; c < 2 * B; c++)
                m[r][c] -= f * m[k][c];
            }
        }
        T *d = &dinv[(size_t)i * B * VS];
        for (int c = 0; c < B; c++)
          for (int r = 0; r < VS; r++)
            d[c * VS + r] = r < B ? (T)m[r][B + c] : 0;
      }
    }
  }
  static inline V dmul(const T *d, const T *s) {
    V v = S::zero();
    for (int c = 0; c < B; c++)
      v = S::fma(S::ld(d + c * VS), S::bc(s + c), v);
    return v;
  }
  // forward GS from zero + residual, one half pass
  void pre(const T *b, T *x, T *rr) {
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
      const T *av = A.val.p;
      for (int i = r0; i < r1; i++) {
        V M[B], bx[B];
        for (int r = 0; r < B; r++)
          M[r] = S::zero();
        int p0 = A.ptr[i], p1 = A.ptr[i + 1] - 1;
        ROWG(p0, p1, A.col, av, x)
        alignas(32) T s[VS];
        V sv = S::sub(S::ld(b + (size_t)VS * i), S::red(M));
        S::st(s, sv);
        V xi = dmul(&dinv[(size_t)i * B * VS], s);
        S::st(x + (size_t)VS * i, xi);
        S::st(s, xi);
        for (int r = 0; r < B; r++)
          bx[r] = S::bc(s + r);
        S::st(rr + (size_t)VS * i, S::zero());
        ROWS(p0, p1, A.col, av, rr, fnma)
      }
      if (NT > 1) {
#pragma omp barrier
        for (int i = r0; i < r1; i++)
          if (A.optr[i + 1] > A.optr[i]) {
            V M[B];
            for (int r = 0; r < B; r++)
              M[r] = S::zero();
            ROWG(A.optr[i], A.optr[i + 1], A.ocol, A.oval.p, x) T *y = rr + (size_t)VS * i;
            S::st(y, S::sub(S::ld(y), S::red(M)));
          }
      }
    }
  }
  // x += v + backwardGS(r - A v), one half pass; v = prolonged correction (complete)
  void post(const T *v, T *x, T *rr) {
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
      const T *av = A.val.p;
      for (int i = r1 - 1; i >= r0; i--) {
        V M[B], bx[B];
        for (int r = 0; r < B; r++)
          M[r] = S::zero();
        int p0 = A.ptr[i], p1 = A.ptr[i + 1] - 1;
        for (int p = p0; p <= p1; p++) {
          const T *a = av + (size_t)BB * p;
          _mm_prefetch((const char *)(a)-PF, _MM_HINT_T0);
          V xk = S::ld(v + (size_t)VS * A.col[p]);
          for (int r = 0; r < B; r++)
            M[r] = S::fma(S::ld(a + B * r), xk, M[r]);
        }
        for (int p = A.optr[i]; p < A.optr[i + 1]; p++) {
          const T *a = A.oval.p + (size_t)BB * p;
          V xk = S::ld(v + (size_t)VS * A.ocol[p]);
          for (int r = 0; r < B; r++)
            M[r] = S::fma(S::ld(a + B * r), xk, M[r]);
        }
        alignas(32) T s[VS];
        S::st(s, S::sub(S::ld(rr + (size_t)VS * i), S::red(M)));
        V w = S::add(S::ld(v + (size_t)VS * i), dmul(&dinv[(size_t)i * B * VS], s));
        S::st(x + (size_t)VS * i, S::add(S::ld(x + (size_t)VS * i), w));
        S::st(s, w);
        for (int r = 0; r < B; r++)
          bx[r] = S::bc(s + r);
        ROWS(p0, p1, A.col, av, rr, fnma)
      }
    }
  }
};
