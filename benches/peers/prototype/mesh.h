// Prototype: the boxes, and the plate read from a file; nodes and elements in an order that suits the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <memory>
#include <numeric>
#include <omp.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <vector>
static inline double now() { return omp_get_wtime(); }
static double rss_mib() {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_maxrss / 1024.0;
}
template <class T> static T *halloc(size_t n) {
  size_t b = ((n * sizeof(T) + (1 << 21) - 1) >> 21) << 21;
  if (b == 0)
    b = 1 << 21;
  T *p = (T *)aligned_alloc(1 << 21, b);
  madvise(p, b, MADV_HUGEPAGE);
  return p;
}
template <class T> struct Buf {
  T *p = nullptr;
  size_t n = 0;
  void alloc(size_t m) {
    free(p);
    n = m;
    p = halloc<T>(m);
  }
  void release() {
    free(p);
    p = nullptr;
  }
  ~Buf() { free(p); }
  T &operator[](size_t i) { return p[i]; }
  const T &operator[](size_t i) const { return p[i]; }
  Buf() {}
  Buf(const Buf &) = delete;
  Buf &operator=(const Buf &) = delete;
};
static int NT;
typedef double v4 __attribute__((vector_size(32)));
struct Mesh {
  int npe = 8, nn = 0, ne = 0, nrow = 0;
  std::vector<int> conn;
  std::vector<double> X, E;
  std::vector<int> row; // of each node, -1 where held
  std::vector<double> load;
  double body = -1;
};
static void make_box(Mesh &m, const std::string &p, int n) {
  double h = 1.0 / n;
  int ex, ey, ez;
  if (p == "y3") {
    ex = 40 * n;
    ey = ez = n;
  } else
    ex = ey = ez = n;
  int ni = ex + 1, nj = ey + 1, nk = ez + 1, pl = nj * nk;
  m.nn = ni * pl;
  m.ne = ex * ey * ez;
  m.conn.resize((size_t)m.ne * 8);
  m.X.resize(3 * (size_t)m.nn);
  m.E.resize(m.ne);
  m.row.resize(m.nn);
  static const int o[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
#pragma omp parallel for
  for (int i = 0; i < ni; i++)
    for (int k = 0; k < nk; k++)
      for (int j = 0; j < nj; j++) {
        size_t q = (size_t)i * pl + k * nj + j;
        m.X[3 * q] = i * h;
        m.X[3 * q + 1] = j * h;
        m.X[3 * q + 2] = k * h;
        m.row[q] = i == 0 ? -1 : (int)q - pl;
      }
#pragma omp parallel for
  for (int e = 0; e < ex; e++)
    for (int k = 0; k < ez; k++)
      for (int j = 0; j < ey; j++) {
        size_t q = ((size_t)e * ez + k) * ey + j;
        for (int a = 0; a < 8; a++)
          m.conn[8 * q + a] = (e + o[a][0]) * pl + (k + o[a][2]) * nj + (j + o[a][1]);
        m.E[q] = (p == "y3" && ((int)((e + 0.5) * h / 5.0) & 1)) ? 1e3 : 1.0;
      }
  m.nrow = m.nn - pl;
}
static void read_bin(Mesh &m, const char *f) {
  FILE *g = fopen(f, "rb");
  int h[3];
  if (!g || fread(h, 4, 3, g) != 3)
    exit(2);
  m.npe = 10;
  m.nn = h[0];
  m.ne = h[1];
  std::vector<double> X(3 * (size_t)h[0]);
  m.conn.resize(10 * (size_t)h[1]);
  std::vector<int> tri(6 * (size_t)h[2]);
  size_t k = fread(X.data(), 8, X.size(), g);
  k += fread(m.conn.data(), 4, m.conn.size(), g);
  k += fread(tri.data(), 4, tri.size(), g);
  fclose(g);
  m.E.assign(m.ne, 1.0);
  m.body = 0;
  // reorder nodes by grid cells, x slowest
  const double cell = 0.15;
  std::vector<int> id(m.nn), inv(m.nn);
  std::iota(id.begin(), id.end(), 0);
  std::vector<long> key(m.nn);
  for (int i = 0; i < m.nn; i++) {
    long a = X[3 * i] / cell, b = X[3 * i + 1] / cell, c = X[3 * i + 2] / cell;
    key[i] = (a * 100000 + b) * 100000 + c;
  }
  std::stable_sort(id.begin(), id.end(), [&](int a, int b) { return key[a] < key[b]; });
  for (int i = 0; i < m.nn; i++)
    inv[id[i]] = i;
  m.X.resize(X.size());
  for (int i = 0; i < m.nn; i++)
    for (int k = 0; k < 3; k++)
      m.X[3 * (size_t)i + k] = X[3 * (size_t)id[i] + k];
  for (auto &c : m.conn)
    c = inv[c];
  for (auto &c : tri)
    c = inv[c];
  // element order by min node
  std::vector<int> eo(m.ne), mn(m.ne);
  for (int e = 0; e < m.ne; e++) {
    eo[e] = e;
    mn[e] = *std::min_element(&m.conn[10 * (size_t)e], &m.conn[10 * (size_t)e] + 10);
  }
  std::stable_sort(eo.begin(), eo.end(), [&](int a, int b) { return mn[a] < mn[b]; });
  std::vector<int> c2(m.conn.size());
  for (int e = 0; e < m.ne; e++)
    memcpy(&c2[10 * (size_t)e], &m.conn[10 * (size_t)eo[e]], 40);
  m.conn.swap(c2);
  m.row.resize(m.nn);
  int r = 0;
  for (int i = 0; i < m.nn; i++)
    m.row[i] = fabs(m.X[3 * (size_t)i]) < 1e-9 ? -1 : r++;
  m.nrow = r;
  m.load.assign(3 * (size_t)m.nn, 0);
  for (size_t t = 0; t < tri.size() / 6; t++) {
    int *q = &tri[6 * t];
    double a[3], b[3];
    for (int k = 0; k < 3; k++) {
      a[k] = m.X[3 * (size_t)q[1] + k] - m.X[3 * (size_t)q[0] + k];
      b[k] = m.X[3 * (size_t)q[2] + k] - m.X[3 * (size_t)q[0] + k];
    }
    double A = .5 * sqrt(pow(a[1] * b[2] - a[2] * b[1], 2) + pow(a[2] * b[0] - a[0] * b[2], 2) +
                         pow(a[0] * b[1] - a[1] * b[0], 2));
    for (int k = 3; k < 6; k++)
      m.load[3 * (size_t)q[k] + 2] += -1e-3 * A / 3;
  }
}
