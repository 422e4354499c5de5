// Prototype: Galerkin product, largest eigenvalue, dense coarsest level, hierarchy and V-cycle.
#pragma once
#include "aggregation.h"
// C = P^T A P, f64, upper computed then mirrored
template <int B> static void rap(const Full &A, const PM &P, Full &C) {
  const int BB = B * B;
  int nc = P.nc;
  C.n = nc;
  struct Row {
    std::vector<int> col;
    std::vector<double> val;
  };
  std::vector<std::vector<int>> slot(NT);
  std::vector<std::vector<Row>> rows(NT);
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
    auto &sl = slot[id];
    sl.assign(nc, -1);
    auto &RW = rows[id];
    RW.reserve(P.chi[id] - P.clo[id] + 8);
    std::vector<int> cols(2048), mark(nc, -1);
    std::vector<double> acc((size_t)2048 * B * 8);
    for (int i = r0; i < r1; i++) {
      int nk = 0;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++) {
        int j = A.col[p];
        const double *av = &A.val[(size_t)BB * p];
        for (int q = P.ptr[j]; q < P.ptr[j + 1]; q++) {
          int c = P.col[q], s = mark[c];
          if (s < 0) {
            s = mark[c] = nk;
            cols[nk++] = c;
            memset(&acc[(size_t)s * B * 8], 0, sizeof(double) * B * 8);
          }
          double *o = &acc[(size_t)s * B * 8];
          const float *pv = P.val.p + (size_t)q * B * 6;
          __m256d x0[B], x1[B];
          for (int t = 0; t < B; t++) {
            x0[t] = _mm256_cvtps_pd(_mm_loadu_ps(pv + 6 * t));
            x1[t] = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(pv + 6 * t + 4))));
          }
          for (int r = 0; r < B; r++) {
            __m256d v0 = _mm256_loadu_pd(o + 8 * r), v1 = _mm256_loadu_pd(o + 8 * r + 4);
            for (int t = 0; t < B; t++) {
              __m256d b = _mm256_broadcast_sd(av + r * B + t);
              v0 = _mm256_fmadd_pd(b, x0[t], v0);
              v1 = _mm256_fmadd_pd(b, x1[t], v1);
            }
            _mm256_storeu_pd(o + 8 * r, v0);
            _mm256_storeu_pd(o + 8 * r + 4, v1);
          }
        }
      }
      for (int s = 0; s < nk; s++)
        mark[cols[s]] = -1;
      for (int q = P.ptr[i]; q < P.ptr[i + 1]; q++) {
        int I = P.col[q];
        int rs = sl[I];
        if (rs < 0) {
          rs = sl[I] = RW.size();
          RW.emplace_back();
          RW.back().col.reserve(40);
          RW.back().val.reserve((size_t)40 * 48);
        }
        Row &R = RW[rs];
        const float *pv = P.val.p + (size_t)q * B * 6;
        double pd[B * 6];
        for (int k = 0; k < B * 6; k++)
          pd[k] = pv[k];
        for (int s = 0; s < nk; s++) {
          int J = cols[s];
          if (J < I)
            continue;
          int t = 0, L = R.col.size();
          const int *rc = R.col.data();
          while (t < L && rc[t] != J)
            t++;
          if (t == L) {
            R.col.push_back(J);
            R.val.resize((size_t)(t + 1) * 48, 0.0);
          }
          double *o = &R.val[(size_t)t * 48];
          const double *ap = &acc[(size_t)s * B * 8];
          __m256d x0[B], x1[B];
          for (int b = 0; b < B; b++) {
            x0[b] = _mm256_loadu_pd(ap + 8 * b);
            x1[b] = _mm256_loadu_pd(ap + 8 * b + 4);
          }
          for (int r = 0; r < 6; r++) {
            __m256d v0 = _mm256_loadu_pd(o + 8 * r), v1 = _mm256_loadu_pd(o + 8 * r + 4);
            for (int b = 0; b < B; b++) {
              __m256d c = _mm256_broadcast_sd(pd + 6 * b + r);
              v0 = _mm256_fmadd_pd(c, x0[b], v0);
              v1 = _mm256_fmadd_pd(c, x1[b], v1);
            }
            _mm256_storeu_pd(o + 8 * r, v0);
            _mm256_storeu_pd(o + 8 * r + 4, v1);
          }
        }
      }
    }
  }
  std::vector<Row> U(nc);
#pragma omp parallel for schedule(dynamic, 64) num_threads(NT)
  for (int I = 0; I < nc; I++)
    for (int t = 0; t < NT; t++) {
      int rs = slot[t][I];
      if (rs < 0)
        continue;
      Row &R = rows[t][rs];
      if (U[I].col.empty())
        std::swap(U[I], R);
      else
        for (size_t k = 0; k < R.col.size(); k++) {
          size_t s = 0;
          while (s < U[I].col.size() && U[I].col[s] != R.col[k])
            s++;
          if (s == U[I].col.size()) {
            U[I].col.push_back(R.col[k]);
            U[I].val.resize((s + 1) * 48, 0.0);
          }
          for (int q = 0; q < 48; q++)
            U[I].val[s * 48 + q] += R.val[k * 48 + q];
        }
    }
  C.ptr.assign(nc + 1, 0);
  for (int I = 0; I < nc; I++)
    for (int J : U[I].col) {
      C.ptr[I + 1]++;
      if (J != I)
        C.ptr[J + 1]++;
    }
  for (int I = 0; I < nc; I++)
    C.ptr[I + 1] += C.ptr[I];
  C.col.resize(C.ptr[nc]);
  C.val.alloc((size_t)C.ptr[nc] * 36 + 16);
  std::vector<std::pair<int, const double *>> ent(C.ptr[nc]);
  {
    std::vector<int> c(C.ptr.begin(), C.ptr.end() - 1);
    for (int I = 0; I < nc; I++)
      for (size_t k = 0; k < U[I].col.size(); k++) {
        int J = U[I].col[k];
        ent[c[I]++] = {2 * J, &U[I].val[k * 48]};
        if (J != I)
          ent[c[J]++] = {2 * I + 1, &U[I].val[k * 48]};
      }
  }
#pragma omp parallel for schedule(dynamic, 64) num_threads(NT)
  for (int I = 0; I < nc; I++) {
    int p = C.ptr[I], m = C.ptr[I + 1] - p;
    std::sort(ent.begin() + p, ent.begin() + p + m, [](auto &a, auto &b) { return (a.first >> 1) < (b.first >> 1); });
    for (int k = 0; k < m; k++) {
      auto e = ent[p + k];
      C.col[p + k] = e.first >> 1;
      double *o = &C.val[(size_t)36 * (p + k)];
      for (int r = 0; r < 6; r++)
        for (int c = 0; c < 6; c++)
          o[r * 6 + c] = (e.first & 1) ? e.second[c * 8 + r] : e.second[r * 8 + c];
      if (C.col[p + k] == I) {
        for (int r = 0; r < 6; r++)
          for (int c = 0; c < r; c++)
            o[r * 6 + c] = o[c * 6 + r] = .5 * (o[r * 6 + c] + o[c * 6 + r]);
        for (int r = 0; r < 6; r++)
          if (o[r * 6 + r] <= 0)
            o[r * 6 + r] = 1;
      }
    }
  }
  C.tr.resize(NT + 1);
  for (int t = 0; t <= NT; t++)
    C.tr[t] = std::lower_bound(C.ptr.begin(), C.ptr.end() - 1, (int)((size_t)C.ptr[nc] * t / NT)) - C.ptr.begin();
  C.tr[0] = 0;
  C.tr[NT] = nc;
}
template <class S> static double lanczos(Lev<S> &L, int its) {
  typedef typename S::T T;
  const int B = S::B, VS = S::VS;
  int n = L.A.n;
  size_t N = (size_t)VS * n;
  Buf<T> p, w, r, z;
  p.alloc(N + 16);
  w.alloc(N + 16);
  r.alloc(N + 16);
  z.alloc(N + 16);
  unsigned s = 12345;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < VS; k++) {
      s = s * 1664525u + 1013904223u;
      r[(size_t)VS * i + k] = k < B ? (T)((s >> 9) & 0xffff) / 65536 - (T)0.5 : 0;
    }
  auto dm = [&] {
    double q = 0;
#pragma omp parallel for num_threads(NT) reduction(+ : q)
    for (int i = 0; i < n; i++) {
      auto v = Lev<S>::dmul(&L.dinv[(size_t)i * B * VS], &r[(size_t)VS * i]);
      S::st(&z[(size_t)VS * i], v);
      for (int k = 0; k < B; k++)
        q += (double)z[(size_t)VS * i + k] * r[(size_t)VS * i + k];
    }
    return q;
  };
  double rz = dm();
  memcpy(p.p, z.p, N * sizeof(T));
  std::vector<double> al, be;
  double ao = 0, bo = 0;
  for (int k = 0; k < its; k++) {
    double pw = symv<S>(L.A, p.p, w.p), a = rz / pw;
#pragma omp parallel for num_threads(NT)
    for (size_t i = 0; i < N; i++)
      r[i] -= (T)a * w[i];
    double rn = dm(), b = rn / rz;
    al.push_back(1 / a + (k ? bo / ao : 0));
    be.push_back(sqrt(b) / a);
    ao = a;
    bo = b;
    rz = rn;
#pragma omp parallel for num_threads(NT)
    for (size_t i = 0; i < N; i++)
      p[i] = z[i] + (T)b * p[i];
  }
  double lo = 0, hi = 0;
  int K = al.size();
  for (int k = 0; k < K; k++)
    hi = std::max(hi, al[k] + (k ? be[k - 1] : 0) + (k < K - 1 ? be[k] : 0));
  for (int it = 0; it < 50; it++) {
    double mid = .5 * (lo + hi);
    int neg = 0;
    double d = al[0] - mid;
    if (d < 0)
      neg++;
    for (int k = 1; k < K; k++) {
      d = al[k] - mid - be[k - 1] * be[k - 1] / (d == 0 ? 1e-300 : d);
      if (d < 0)
        neg++;
    }
    if (neg == K)
      hi = mid;
    else
      lo = mid;
  }
  return hi;
}
struct Chol {
  int n = 0;
  std::vector<double> L;
  void factor(const Full &A) {
    n = 6 * A.n;
    L.assign((size_t)n * n, 0);
    for (int i = 0; i < A.n; i++)
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        for (int r = 0; r < 6; r++)
          for (int c = 0; c < 6; c++)
            L[(size_t)(6 * i + r) * n + 6 * A.col[p] + c] = A.val[(size_t)36 * p + 6 * r + c];
    for (int j = 0; j < n; j++) {
      double *lj = &L[(size_t)j * n];
      double s = lj[j], s0 = s;
      for (int k = 0; k < j; k++)
        s -= lj[k] * lj[k];
      if (s <= 1e-14 * s0)
        s = 1e300;
      double d = sqrt(s);
      lj[j] = d;
      for (int i = j + 1; i < n; i++) {
        double *li = &L[(size_t)i * n];
        double q = 0;
#pragma omp simd reduction(+ : q)
        for (int k = 0; k < j; k++)
          q += li[k] * lj[k];
        li[j] = (li[j] - q) / d;
      }
    }
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++)
        L[(size_t)i * n + j] = L[(size_t)j * n + i];
  }
  void solve(const float *b, float *x) {
    std::vector<double> y(n);
    for (int i = 0; i < n; i++) {
      const double *l = &L[(size_t)i * n];
      double q = 0;
#pragma omp simd reduction(+ : q)
      for (int k = 0; k < i; k++)
        q += l[k] * y[k];
      y[i] = (b[8 * (i / 6) + i % 6] - q) / l[i];
    }
    for (int i = n - 1; i >= 0; i--) {
      const double *l = &L[(size_t)i * n];
      double q = 0;
#pragma omp simd reduction(+ : q)
      for (int k = i + 1; k < n; k++)
        q += l[k] * y[k];
      y[i] = (y[i] - q) / l[i];
    }
    for (int i = 0; i < n; i++)
      x[8 * (i / 6) + i % 6] = (float)y[i];
    for (int i = 0; i < n / 6; i++)
      x[8 * i + 6] = x[8 * i + 7] = 0;
  }
};
struct L6 {
  Full A;
  Lev<f6> S;
  PM P;
  Buf<float> b, x, r, v;
};

struct Hier {
  Lev<f3> S;
  PM P;
  Buf<float> r, v;
  std::vector<std::unique_ptr<L6>> L;
  Chol C;
  void cyc(int l) {
    L6 &a = *L[l];
    if (l == (int)L.size() - 1) {
      C.solve(a.b.p, a.x.p);
      return;
    }
    a.S.pre(a.b.p, a.x.p, a.r.p);
    restrict_<6, 8>(a.P, a.r.p, L[l + 1]->b.p);
    cyc(l + 1);
    prolong<6, 8>(a.P, L[l + 1]->x.p, a.v.p);
    a.S.post(a.v.p, a.x.p, a.r.p);
  }
  void apply(const float *b, float *x) {
    S.pre(b, x, r.p);
    restrict_<3, 4>(P, r.p, L[0]->b.p);
    cyc(0);
    prolong<3, 4>(P, L[0]->x.p, v.p);
    S.post(v.p, x, r.p);
  }
};
template <int B, class S>
static void level(const Full &A, Lev<S> &L, std::vector<double> &NS, PM &P, Full &C, double theta) {
  const int BB = B * B;
  std::vector<int> agg;
  int nc = aggregate<B>(A, theta, agg);
  std::vector<double> T, NSc;
  tentative<B>(A.n, nc, agg, NS, T, NSc);
  L.A.build(A.n, A.ptr, A.col, A.val.p, A.tr);
  L.mkdinv(A.ptr, A.col, A.val.p);
  double lam = lanczos<S>(L, 6) * 1.03;
  std::vector<double> D((size_t)A.n * BB);
#pragma omp parallel for num_threads(NT)
  for (int i = 0; i < A.n; i++)
    for (int r = 0; r < B; r++)
      for (int c = 0; c < B; c++)
        D[(size_t)BB * i + r * B + c] = L.dinv[((size_t)i * B + c) * S::VS + r];
  smoothP<B>(A, agg, nc, T, D, 4.0 / 3 / lam, P);
  rap<B>(A, P, C);
  NS.swap(NSc);
}
