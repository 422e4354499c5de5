// Prototype: aggregates of nodes, tentative prolongator from the near-nullspace, and its smoothing.
#pragma once
#include "half.h"
struct PM {
  int n = 0, nc = 0, B = 0;
  std::vector<int> ptr, col, tr, clo, chi;
  Buf<float> val;
  std::vector<Buf<float>> buf;
  size_t bytes() const { return (size_t)ptr[n] * (B * 6 * 4 + 4); }
};
template <int B, int VS> static void prolong(const PM &P, const float *e, float *v) {
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num();
    for (int i = P.tr[id]; i < P.tr[id + 1]; i++) {
      __m256 M[6];
      for (int r = 0; r < 6; r++)
        M[r] = _mm256_setzero_ps();
      for (int q = P.ptr[i]; q < P.ptr[i + 1]; q++) {
        const float *a = P.val.p + (size_t)q * B * 6;
        __m256 x = _mm256_loadu_ps(e + 8 * (size_t)P.col[q]);
        _mm_prefetch((const char *)a + 1024, _MM_HINT_T0);
        for (int r = 0; r < B; r++)
          M[r] = _mm256_fmadd_ps(_mm256_loadu_ps(a + 6 * r), x, M[r]);
      }
      if (B == 3) {
        __m128 m[3];
        for (int r = 0; r < 3; r++)
          m[r] = _mm_add_ps(_mm256_castps256_ps128(M[r]), _mm256_extractf128_ps(M[r], 1));
        _mm_storeu_ps(v + 4 * (size_t)i, f3::red(m));
      } else
        _mm256_storeu_ps(v + 8 * (size_t)i, f6::red(M));
    }
  }
}
template <int B, int VS> static void restrict_(PM &P, const float *r, float *rc) {
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num();
    int lo = P.clo[id], hi = P.chi[id];
    float *o = P.buf[id].p - 8 * (size_t)lo;
    memset(o + 8 * (size_t)lo, 0, 32 * (size_t)(hi - lo));
    for (int i = P.tr[id]; i < P.tr[id + 1]; i++) {
      __m256 b[B];
      for (int k = 0; k < B; k++)
        b[k] = _mm256_broadcast_ss(r + VS * (size_t)i + k);
      for (int q = P.ptr[i]; q < P.ptr[i + 1]; q++) {
        const float *a = P.val.p + (size_t)q * B * 6;
        float *c = o + 8 * (size_t)P.col[q];
        __m256 s = _mm256_loadu_ps(c);
        _mm_prefetch((const char *)a + 1024, _MM_HINT_T0);
        for (int k = 0; k < B; k++)
          s = _mm256_fmadd_ps(_mm256_loadu_ps(a + 6 * k), b[k], s);
        _mm256_storeu_ps(c, s);
      }
    }
#pragma omp barrier
    __m256 mk = _mm256_castsi256_ps(_mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0));
#pragma omp for schedule(static)
    for (int c = 0; c < P.nc; c++) {
      __m256 s = _mm256_setzero_ps();
      for (int t = 0; t < NT; t++)
        if (c >= P.clo[t] && c < P.chi[t])
          s = _mm256_add_ps(s, _mm256_loadu_ps(P.buf[t].p + 8 * (size_t)(c - P.clo[t])));
      _mm256_storeu_ps(rc + 8 * (size_t)c, _mm256_and_ps(s, mk));
    }
  }
}
template <int B> static int aggregate(const Full &A, double theta, std::vector<int> &agg) {
  int n = A.n;
  const int BB = B * B;
  std::vector<char> strong;
  if (theta > 0) {
    strong.resize(A.ptr[n]);
    std::vector<float> dn(n), nr(A.ptr[n]);
#pragma omp parallel for num_threads(NT)
    for (int i = 0; i < n; i++)
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++) {
        double s = 0;
        for (int q = 0; q < BB; q++)
          s += A.val[(size_t)BB * p + q] * A.val[(size_t)BB * p + q];
        nr[p] = sqrt(s);
        if (A.col[p] == i)
          dn[i] = nr[p];
      }
#pragma omp parallel for num_threads(NT)
    for (int i = 0; i < n; i++)
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        strong[p] = nr[p] > theta * sqrtf(dn[i] * dn[A.col[p]]);
  }
  auto S = [&](int p) { return theta <= 0 || strong[p]; };
  agg.assign(n, -1);
  int nc = 0;
  for (int i = 0; i < n; i++)
    if (agg[i] < 0) {
      bool ok = true;
      for (int p = A.ptr[i]; ok && p < A.ptr[i + 1]; p++)
        if (S(p) && agg[A.col[p]] >= 0)
          ok = false;
      if (!ok)
        continue;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        if (S(p))
          agg[A.col[p]] = nc;
      agg[i] = nc;
      nc++;
    }
  std::vector<int> a2 = agg;
  for (int i = 0; i < n; i++)
    if (agg[i] < 0) {
      int best = -1, bc = 0, seen[64], cn[64], ns = 0;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        if (S(p) && A.col[p] != i) {
          int a = agg[A.col[p]];
          if (a < 0)
            continue;
          int k = 0;
          while (k < ns && seen[k] != a)
            k++;
          if (k == ns) {
            if (ns == 64)
              continue;
            seen[ns] = a;
            cn[ns++] = 0;
          }
          cn[k]++;
        }
      for (int k = 0; k < ns; k++)
        if (cn[k] > bc) {
          bc = cn[k];
          best = seen[k];
        }
      a2[i] = best;
    }
  agg.swap(a2);
  for (int i = 0; i < n; i++)
    if (agg[i] < 0) { // leftovers: group, or join any neighbour aggregate when too small
      int cnt = 0;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        if (agg[A.col[p]] < 0)
          cnt++;
      if (cnt < 4) {
        int best = -1;
        double bv = -1;
        for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
          if (agg[A.col[p]] >= 0) {
            double s = 0;
            for (int q = 0; q < BB; q++)
              s += fabs(A.val[(size_t)BB * p + q]);
            if (s > bv) {
              bv = s;
              best = agg[A.col[p]];
            }
          }
        if (best >= 0) {
          agg[i] = best;
          continue;
        }
      }
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        if (agg[A.col[p]] < 0)
          agg[A.col[p]] = nc;
      agg[i] = nc;
      nc++;
    }
  // renumber by first appearance for locality
  std::vector<int> mp(nc, -1);
  int k = 0;
  for (int i = 0; i < n; i++) {
    if (mp[agg[i]] < 0)
      mp[agg[i]] = k++;
    agg[i] = mp[agg[i]];
  }
  return k;
}
template <int B>
static void tentative(int n, int nc, const std::vector<int> &agg, const std::vector<double> &NS, std::vector<double> &T,
                      std::vector<double> &NSc) {
  std::vector<int> ap(nc + 1, 0), al(n);
  for (int i = 0; i < n; i++)
    ap[agg[i] + 1]++;
  for (int i = 0; i < nc; i++)
    ap[i + 1] += ap[i];
  {
    std::vector<int> c(ap.begin(), ap.end() - 1);
    for (int i = 0; i < n; i++)
      al[c[agg[i]]++] = i;
  }
  T.assign((size_t)n * B * 8 + 8, 0);
  NSc.assign((size_t)nc * 36, 0);
#pragma omp parallel num_threads(NT)
  {
    std::vector<double> M;
#pragma omp for schedule(static)
    for (int a = 0; a < nc; a++) {
      int m = ap[a + 1] - ap[a], R = m * B;
      M.resize((size_t)R * 6);
      for (int q = 0; q < m; q++)
        for (int r = 0; r < B; r++)
          for (int c = 0; c < 6; c++)
            M[(size_t)c * R + q * B + r] = NS[((size_t)al[ap[a] + q] * B + r) * 6 + c];
      double Q[6][6] = {{0}};
      for (int c = 0; c < 6; c++) {
        double *mc = &M[(size_t)c * R];
        double n0 = 0;
        for (int r = 0; r < R; r++)
          n0 += mc[r] * mc[r];
        for (int rep = 0; rep < 2; rep++)
          for (int d = 0; d < c; d++) {
            const double *md = &M[(size_t)d * R];
            double s = 0;
            for (int r = 0; r < R; r++)
              s += md[r] * mc[r];
            Q[d][c] += s;
            for (int r = 0; r < R; r++)
              mc[r] -= s * md[r];
          }
        double s = 0;
        for (int r = 0; r < R; r++)
          s += mc[r] * mc[r];
        if (s <= 1e-20 * n0 || s == 0) {
          for (int r = 0; r < R; r++)
            mc[r] = 0;
        } else {
          s = sqrt(s);
          Q[c][c] = s;
          for (int r = 0; r < R; r++)
            mc[r] /= s;
        }
      }
      for (int q = 0; q < m; q++)
        for (int r = 0; r < B; r++)
          for (int c = 0; c < 6; c++)
            T[((size_t)al[ap[a] + q] * B + r) * 8 + c] = M[(size_t)c * R + q * B + r];
      memcpy(&NSc[(size_t)a * 36], Q, sizeof Q);
    }
  }
}
template <int B>
static void smoothP(const Full &A, const std::vector<int> &agg, int nc, const std::vector<double> &T,
                    const std::vector<double> &Dinv, double omega, PM &P) {
  const int BB = B * B;
  P.n = A.n;
  P.nc = nc;
  P.B = B;
  P.tr = A.tr;
  P.ptr.assign(A.n + 1, 0);
  std::vector<std::vector<int>> tc(NT);
  std::vector<std::vector<float>> tv(NT);
  P.clo.assign(NT, nc);
  P.chi.assign(NT, 0);
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
    auto &C = tc[id];
    auto &V = tv[id];
    C.reserve((size_t)(r1 - r0) * 6);
    V.reserve((size_t)(r1 - r0) * 6 * B * 6);
    std::vector<double> acc((size_t)512 * B * 8);
    int cols[512], ord[512];
    int lo = nc, hi = 0;
    for (int i = r0; i < r1; i++) {
      int nk = 0;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++) {
        int j = A.col[p], a = agg[j], s = 0;
        while (s < nk && cols[s] != a)
          s++;
        if (s == nk) {
          cols[nk++] = a;
          memset(&acc[(size_t)s * B * 8], 0, sizeof(double) * B * 8);
        }
        const double *t = &T[(size_t)j * B * 8];
        double *c = &acc[(size_t)s * B * 8];
        const double *av = &A.val[(size_t)BB * p];
        for (int r = 0; r < B; r++) {
          __m256d v0 = _mm256_loadu_pd(c + 8 * r), v1 = _mm256_loadu_pd(c + 8 * r + 4);
          for (int q = 0; q < B; q++) {
            __m256d b = _mm256_broadcast_sd(av + r * B + q);
            v0 = _mm256_fmadd_pd(b, _mm256_loadu_pd(t + 8 * q), v0);
            v1 = _mm256_fmadd_pd(b, _mm256_loadu_pd(t + 8 * q + 4), v1);
          }
          _mm256_storeu_pd(c + 8 * r, v0);
          _mm256_storeu_pd(c + 8 * r + 4, v1);
        }
      }
      for (int s = 0; s < nk; s++)
        ord[s] = s;
      std::sort(ord, ord + nk, [&](int x, int y) { return cols[x] < cols[y]; });
      lo = std::min(lo, cols[ord[0]]);
      hi = std::max(hi, cols[ord[nk - 1]] + 1);
      P.ptr[i + 1] = nk;
      const double *d = &Dinv[(size_t)BB * i];
      for (int s = 0; s < nk; s++) {
        int o = ord[s];
        C.push_back(cols[o]);
        size_t at = V.size();
        V.resize(at + B * 6);
        const double *c = &acc[(size_t)o * B * 8];
        for (int r = 0; r < B; r++)
          for (int k = 0; k < 6; k++) {
            double x = 0;
            for (int q = 0; q < B; q++)
              x += d[r * B + q] * c[8 * q + k];
            x *= -omega;
            if (cols[o] == agg[i])
              x += T[((size_t)i * B + r) * 8 + k];
            V[at + 6 * r + k] = (float)x;
          }
      }
    }
    P.clo[id] = lo;
    P.chi[id] = std::max(lo, hi);
  }
  for (int i = 0; i < A.n; i++)
    P.ptr[i + 1] += P.ptr[i];
  P.col.resize(P.ptr[A.n]);
  P.val.alloc((size_t)P.ptr[A.n] * B * 6 + 16);
  P.buf = std::vector<Buf<float>>(NT);
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num();
    std::copy(tc[id].begin(), tc[id].end(), P.col.begin() + P.ptr[A.tr[id]]);
    std::copy(tv[id].begin(), tv[id].end(), P.val.p + (size_t)P.ptr[A.tr[id]] * B * 6);
    P.buf[id].alloc(8 * (size_t)(P.chi[id] - P.clo[id]) + 8);
  }
  memset(P.val.p + (size_t)P.ptr[A.n] * B * 6, 0, 64);
}
