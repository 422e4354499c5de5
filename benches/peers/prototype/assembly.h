// Prototype: stiffness of hex8, tet10 and tet4 in 3 x 3 blocks, four elements at a time, rows dealt to threads.
#pragma once
#include "mesh.h"
struct Full {
  int n = 0;
  std::vector<int> ptr, col;
  Buf<double> val;
  std::vector<int> tr;
};
template <int NPE, int NQ> struct Tab {
  double dN[NQ][NPE][3], N[NQ][NPE], w[NQ];
};
static Tab<8, 8> T8;
static Tab<10, 4> T10;
static Tab<4, 1> T4;
static void init_tabs() {
  static const int s[8][3] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                              {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};
  double g = 1 / sqrt(3.0);
  int q = 0;
  for (int k = -1; k < 2; k += 2)
    for (int j = -1; j < 2; j += 2)
      for (int i = -1; i < 2; i += 2, q++) {
        T8.w[q] = 1;
        for (int a = 0; a < 8; a++) {
          double x = 1 + s[a][0] * i * g, y = 1 + s[a][1] * j * g, z = 1 + s[a][2] * k * g;
          T8.dN[q][a][0] = .125 * s[a][0] * y * z;
          T8.dN[q][a][1] = .125 * s[a][1] * x * z;
          T8.dN[q][a][2] = .125 * s[a][2] * x * y;
          T8.N[q][a] = .125 * x * y * z;
        }
      }
  {
    T4.w[0] = 1.0 / 6;
    static const double dL[4][3] = {{-1, -1, -1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int a = 0; a < 4; a++) {
      T4.N[0][a] = .25;
      for (int k = 0; k < 3; k++)
        T4.dN[0][a][k] = dL[a][k];
    }
  }
  double A = 0.58541019662496852, B = 0.1381966011250105;
  static const int ed[6][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {2, 3}, {1, 3}};
  for (int q = 0; q < 4; q++) {
    double L[4] = {B, B, B, B};
    L[q] = A;
    T10.w[q] = 1.0 / 24;
    static const double dL[4][3] = {{-1, -1, -1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int a = 0; a < 4; a++) {
      T10.N[q][a] = L[a] * (2 * L[a] - 1);
      for (int k = 0; k < 3; k++)
        T10.dN[q][a][k] = (4 * L[a] - 1) * dL[a][k];
    }
    for (int e = 0; e < 6; e++) {
      int i = ed[e][0], j = ed[e][1];
      T10.N[q][4 + e] = 4 * L[i] * L[j];
      for (int k = 0; k < 3; k++)
        T10.dN[q][4 + e][k] = 4 * (dL[i][k] * L[j] + L[i] * dL[j][k]);
    }
  }
}
// 4 elements at a time (SIMD over elements); upper node-pair blocks only: K[a][b][9], b>=a
template <int NPE, int NQ>
static void elem_simd(const Tab<NPE, NQ> &T, const v4 X[NPE][3], v4 lam, v4 mu, v4 (*K)[NPE][9], v4 F[NPE],
                      double body) {
  for (int a = 0; a < NPE; a++) {
    F[a] = v4{0, 0, 0, 0};
    for (int b = a; b < NPE; b++)
      for (int k = 0; k < 9; k++)
        K[a][b][k] = v4{0, 0, 0, 0};
  }
  for (int q = 0; q < NQ; q++) {
    v4 J[3][3];
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        v4 s = v4{0, 0, 0, 0};
        for (int a = 0; a < NPE; a++)
          s += T.dN[q][a][i] * X[a][j];
        J[i][j] = s;
      }
    v4 c00 = J[1][1] * J[2][2] - J[1][2] * J[2][1], c01 = J[1][2] * J[2][0] - J[1][0] * J[2][2],
       c02 = J[1][0] * J[2][1] - J[1][1] * J[2][0], det = J[0][0] * c00 + J[0][1] * c01 + J[0][2] * c02, id = 1.0 / det;
    v4 I[3][3] = {
        {c00 * id, (J[0][2] * J[2][1] - J[0][1] * J[2][2]) * id, (J[0][1] * J[1][2] - J[0][2] * J[1][1]) * id},
        {c01 * id, (J[0][0] * J[2][2] - J[0][2] * J[2][0]) * id, (J[0][2] * J[1][0] - J[0][0] * J[1][2]) * id},
        {c02 * id, (J[0][1] * J[2][0] - J[0][0] * J[2][1]) * id, (J[0][0] * J[1][1] - J[0][1] * J[1][0]) * id}};
    v4 G[NPE][3];
    for (int a = 0; a < NPE; a++)
      for (int i = 0; i < 3; i++)
        G[a][i] = I[i][0] * T.dN[q][a][0] + I[i][1] * T.dN[q][a][1] + I[i][2] * T.dN[q][a][2];
    v4 w = det * T.w[q], wl = w * lam, wm = w * mu;
    for (int a = 0; a < NPE; a++) {
      v4 la[3] = {wl * G[a][0], wl * G[a][1], wl * G[a][2]}, ma[3] = {wm * G[a][0], wm * G[a][1], wm * G[a][2]};
      F[a] += w * T.N[q][a] * body;
      for (int b = a; b < NPE; b++) {
        v4 *k = K[a][b];
        v4 d = ma[0] * G[b][0] + ma[1] * G[b][1] + ma[2] * G[b][2];
        for (int i = 0; i < 3; i++)
          for (int j = 0; j < 3; j++)
            k[3 * i + j] += la[i] * G[b][j] + ma[j] * G[b][i];
        k[0] += d;
        k[4] += d;
        k[8] += d;
      }
    }
  }
}
template <int NPE, int NQ> static void fill(const Mesh &m, Full &A, const Tab<NPE, NQ> &T, double *rhs) {
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num(), r0 = A.tr[id], r1 = A.tr[id + 1];
    memset(&A.val[9 * (size_t)A.ptr[r0]], 0, 72 * (size_t)(A.ptr[r1] - A.ptr[r0]));
    memset(rhs + 4 * (size_t)r0, 0, 32 * (size_t)(r1 - r0));
    std::vector<int> my;
    for (int e = 0; e < m.ne; e++) {
      bool in = false;
      for (int a = 0; a < NPE; a++) {
        int r = m.row[m.conn[(size_t)NPE * e + a]];
        in |= r >= r0 && r < r1;
      }
      if (in)
        my.push_back(e);
    }
    alignas(32) static thread_local v4 K[NPE][NPE][9];
    v4 X[NPE][3], F[NPE];
    for (size_t s = 0; s < my.size(); s += 4) {
      int es[4];
      v4 E;
      for (int l = 0; l < 4; l++) {
        es[l] = my[std::min(s + l, my.size() - 1)];
        E[l] = m.E[es[l]];
      }
      for (int a = 0; a < NPE; a++)
        for (int l = 0; l < 4; l++) {
          const double *x = &m.X[3 * (size_t)m.conn[(size_t)NPE * es[l] + a]];
          X[a][0][l] = x[0];
          X[a][1][l] = x[1];
          X[a][2][l] = x[2];
        }
      const double nu = 0.3;
      elem_simd<NPE, NQ>(T, X, E * (nu / ((1 + nu) * (1 - 2 * nu))), E * (1 / (2 * (1 + nu))), K, F, m.body);
      for (size_t l = 0; l < 4 && s + l < my.size(); l++) {
        int rw[NPE];
        for (int a = 0; a < NPE; a++)
          rw[a] = m.row[m.conn[(size_t)NPE * es[l] + a]];
        for (int a = 0; a < NPE; a++) {
          int r = rw[a];
          if (r < r0 || r >= r1)
            continue;
          rhs[4 * (size_t)r + 2] += F[a][l];
          const int *cb = &A.col[A.ptr[r]];
          int len = A.ptr[r + 1] - A.ptr[r];
          for (int b = 0; b < NPE; b++) {
            int c = rw[b];
            if (c < 0)
              continue;
            int k = std::lower_bound(cb, cb + len, c) - cb;
            double *v = &A.val[9 * ((size_t)A.ptr[r] + k)];
            if (b >= a)
              for (int q = 0; q < 9; q++)
                v[q] += K[a][b][q][l];
            else
              for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                  v[3 * i + j] += K[b][a][3 * j + i][l];
          }
        }
      }
    }
  }
}
static void assemble(const Mesh &m, Full &A, Buf<double> &rhs) {
  init_tabs();
  int N = m.nrow, npe = m.npe;
  A.n = N;
  A.ptr.assign(N + 1, 0);
  std::vector<int> nptr(N + 1, 0), nel;
  for (size_t i = 0; i < m.conn.size(); i++) {
    int r = m.row[m.conn[i]];
    if (r >= 0)
      nptr[r + 1]++;
  }
  for (int i = 0; i < N; i++)
    nptr[i + 1] += nptr[i];
  nel.resize(nptr[N]);
  {
    std::vector<int> c(nptr.begin(), nptr.end() - 1);
    for (int e = 0; e < m.ne; e++)
      for (int a = 0; a < npe; a++) {
        int r = m.row[m.conn[(size_t)npe * e + a]];
        if (r >= 0)
          nel[c[r]++] = e;
      }
  }
  std::vector<std::vector<int>> tc(NT);
#pragma omp parallel num_threads(NT)
  {
    int id = omp_get_thread_num(), r0 = (long)N * id / NT, r1 = (long)N * (id + 1) / NT;
    auto &C = tc[id];
    C.reserve((size_t)(r1 - r0) * 28);
    std::vector<int> mark(N, -1);
    int buf[2048];
    for (int i = r0; i < r1; i++) {
      int c = 0;
      for (int p = nptr[i]; p < nptr[i + 1]; p++)
        for (int a = 0; a < npe; a++) {
          int r = m.row[m.conn[(size_t)npe * nel[p] + a]];
          if (r >= 0 && mark[r] != i) {
            mark[r] = i;
            buf[c++] = r;
          }
        }
      std::sort(buf, buf + c);
      A.ptr[i + 1] = c;
      C.insert(C.end(), buf, buf + c);
    }
#pragma omp barrier
#pragma omp single
    {
      for (int i = 0; i < N; i++)
        A.ptr[i + 1] += A.ptr[i];
      A.col.resize(A.ptr[N]);
    }
    std::copy(C.begin(), C.end(), A.col.begin() + A.ptr[r0]);
  }
  A.tr.resize(NT + 1);
  for (int t = 0; t <= NT; t++)
    A.tr[t] = std::lower_bound(A.ptr.begin(), A.ptr.end() - 1, (int)((size_t)A.ptr[N] * t / NT)) - A.ptr.begin();
  A.tr[0] = 0;
  A.tr[NT] = N;
  A.val.alloc(9 * (size_t)A.ptr[N] + 16);
  rhs.alloc(4 * (size_t)N + 8);
  if (npe == 8)
    fill<8, 8>(m, A, T8, rhs.p);
  else if (npe == 4)
    fill<4, 1>(m, A, T4, rhs.p);
  else
    fill<10, 4>(m, A, T10, rhs.p);
  if (!m.load.empty())
    for (int i = 0; i < m.nn; i++)
      if (m.row[i] >= 0)
        for (int k = 0; k < 3; k++)
          rhs[4 * (size_t)m.row[i] + k] += m.load[3 * (size_t)i + k];
}
