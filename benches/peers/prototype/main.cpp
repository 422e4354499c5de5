// Prototype of the solver, threads only: what fem-solve has to be at least as fast as.
//
// usage: prototype y1 N | y3 N | plate FILE.bin   (OMP_NUM_THREADS threads; needs AVX2)
//   y1, y3: the boxes of petsc_elasticity.c; plate: the tet10 mesh that plate_mesh.py writes
// Flexible conjugate gradients in f64 with half of the matrix; smoothed aggregation with rigid-body modes and fused
// Gauss-Seidel sweeps in f32. Second-order elements are first coarsened to linear ones on their corners.
// Prints one line: RESULT key=value ...
#include "galerkin.h"

static void zeroed(Buf<float> &b, size_t n) {
  b.alloc(n);
  memset(b.p, 0, n * sizeof(float));
}

// Tet10 to tet4 on the same corners: prolongation by linear interpolation, the matrix assembled anew.
struct Corners {
  Mesh mesh;
  Full A;
  Lev<f3> S;
  std::vector<int> parents; // two a fine row, -1 where held
  Buf<float> r, v, b, x;
  std::vector<std::vector<float>> part;

  void build(const Mesh &m, const Full &fine) {
    static const int ed[6][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {2, 3}, {1, 3}};
    mesh.npe = 4;
    mesh.nn = m.nn;
    mesh.ne = m.ne;
    mesh.X = m.X;
    mesh.E = m.E;
    mesh.body = 0;
    mesh.conn.resize(4 * (size_t)m.ne);
    mesh.row.assign(m.nn, -1);
    std::vector<char> is_corner(m.nn, 0);
    for (int e = 0; e < m.ne; e++)
      for (int a = 0; a < 4; a++) {
        int node = m.conn[10 * (size_t)e + a];
        mesh.conn[4 * (size_t)e + a] = node;
        is_corner[node] = 1;
      }
    int n = 0;
    for (int i = 0; i < m.nn; i++)
      if (is_corner[i] && m.row[i] >= 0)
        mesh.row[i] = n++;
    mesh.nrow = n;
    parents.assign(2 * (size_t)fine.n, -1);
    for (int i = 0; i < m.nn; i++)
      if (m.row[i] >= 0 && is_corner[i])
        parents[2 * (size_t)m.row[i]] = parents[2 * (size_t)m.row[i] + 1] = mesh.row[i];
    for (int e = 0; e < m.ne; e++)
      for (int q = 0; q < 6; q++) {
        int row = m.row[m.conn[10 * (size_t)e + 4 + q]];
        if (row >= 0)
          for (int k = 0; k < 2; k++)
            parents[2 * (size_t)row + k] = mesh.row[m.conn[10 * (size_t)e + ed[q][k]]];
      }
    Buf<double> unused;
    assemble(mesh, A, unused);
    S.A.build(fine.n, fine.ptr, fine.col, fine.val.p, fine.tr);
    S.mkdinv(fine.ptr, fine.col, fine.val.p);
    for (Buf<float> *w : {&r, &v})
      zeroed(*w, 4 * (size_t)fine.n + 16);
    for (Buf<float> *w : {&b, &x})
      zeroed(*w, 4 * (size_t)n + 16);
    part.resize(NT);
  }

  void restrict_residual() {
    int n = A.n;
    memset(b.p, 0, 16 * (size_t)n);
#pragma omp parallel num_threads(NT)
    {
      int id = omp_get_thread_num();
      float *o = b.p;
      if (id) {
        part[id].assign(4 * (size_t)n, 0);
        o = part[id].data();
      }
#pragma omp barrier
      for (int i = S.A.tr[id]; i < S.A.tr[id + 1]; i++) {
        __m128 half = _mm_mul_ps(_mm_loadu_ps(&r[4 * (size_t)i]), _mm_set1_ps(.5f));
        for (int k = 0; k < 2; k++) {
          int q = parents[2 * (size_t)i + k];
          if (q >= 0)
            _mm_storeu_ps(o + 4 * (size_t)q, _mm_add_ps(_mm_loadu_ps(o + 4 * (size_t)q), half));
        }
      }
#pragma omp barrier
#pragma omp for schedule(static)
      for (int i = 0; i < 4 * n; i++)
        for (int t = 1; t < NT; t++)
          b[i] += part[t][i];
    }
  }

  void prolong_correction() {
#pragma omp parallel for num_threads(NT) schedule(static)
    for (int i = 0; i < S.A.n; i++) {
      __m128 s = _mm_setzero_ps();
      for (int k = 0; k < 2; k++) {
        int q = parents[2 * (size_t)i + k];
        if (q >= 0)
          s = _mm_add_ps(s, _mm_loadu_ps(&x[4 * (size_t)q]));
      }
      s = _mm_mul_ps(s, _mm_set1_ps(.5f));
      _mm_storeu_ps(&v[4 * (size_t)i], _mm_and_ps(s, _mm_castsi128_ps(_mm_setr_epi32(-1, -1, -1, 0))));
    }
  }

  void apply(Hier &below, const float *in, float *out) {
    S.pre(in, out, r.p);
    restrict_residual();
    below.apply(b.p, x.p);
    prolong_correction();
    S.post(v.p, out, r.p);
  }
};

// Six modes a free node, about the center of the free nodes.
static std::vector<double> rigid_body_modes(const Mesh &m) {
  int n = m.nrow;
  std::vector<double> at(3 * (size_t)n), modes((size_t)n * 18, 0);
  double center[3] = {0, 0, 0};
  for (int i = 0; i < m.nn; i++)
    if (m.row[i] >= 0)
      for (int k = 0; k < 3; k++) {
        at[3 * (size_t)m.row[i] + k] = m.X[3 * (size_t)i + k];
        center[k] += m.X[3 * (size_t)i + k] / n;
      }
#pragma omp parallel for num_threads(NT)
  for (int i = 0; i < n; i++) {
    double x = at[3 * (size_t)i] - center[0], y = at[3 * (size_t)i + 1] - center[1],
           z = at[3 * (size_t)i + 2] - center[2];
    double *s = &modes[(size_t)i * 18];
    s[0] = s[7] = s[14] = 1;
    s[3] = -y;
    s[9] = x;
    s[10] = -z;
    s[16] = y;
    s[5] = z;
    s[17] = -x;
  }
  return modes;
}

static void build_hierarchy(Hier &H, const Mesh &m, const Full &A) {
  const int coarsest = 100;
  const double threshold = 0.02; // neighbors coupled less are not aggregated
  std::vector<double> modes = rigid_body_modes(m);
  H.L.emplace_back(new L6);
  level<3, f3>(A, H.S, modes, H.P, H.L[0]->A, threshold);
  H.r.alloc(4 * (size_t)A.n + 16);
  H.v.alloc(4 * (size_t)A.n + 16);
  for (int l = 0;; l++) {
    L6 &a = *H.L[l];
    for (Buf<float> *q : {&a.b, &a.x, &a.r, &a.v})
      zeroed(*q, 8 * (size_t)a.A.n + 16);
    if (a.A.n <= coarsest) {
      H.C.factor(a.A);
      break;
    }
    H.L.emplace_back(new L6);
    level<6, f6>(a.A, a.S, modes, a.P, H.L[l + 1]->A, threshold);
  }
  for (auto &l : H.L)
    l->A.val.release();
}

// Largest absolute row sum.
static double norm_inf(const Full &A) {
  double largest = 0;
  for (int i = 0; i < A.n; i++)
    for (int r = 0; r < 3; r++) {
      double s = 0;
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; p++)
        for (int c = 0; c < 3; c++)
          s += fabs(A.val[9 * (size_t)p + 3 * r + c]);
      largest = std::max(largest, s);
    }
  return largest;
}

// Flexible conjugate gradients to a recursive residual of 1e-8; `precondition` takes and gives f32. Returns iterations.
template <class M>
static int conjugate_gradients(const Half<d3> &A, M precondition, const Buf<double> &rhs, Buf<double> &x) {
  const int max_iterations = 1000, n = A.n;
  size_t length = 4 * (size_t)n;
  Buf<double> r, p, q;
  Buf<float> rf, zf;
  for (auto *b : {&x, &r, &p, &q}) {
    b->alloc(length + 8);
    memset(b->p, 0, 8 * (length + 8));
  }
  for (auto *b : {&rf, &zf})
    zeroed(*b, length + 16);
  double norm_b = 0;
  for (size_t i = 0; i < length; i++)
    norm_b += rhs[i] * rhs[i];
  norm_b = sqrt(norm_b);
  for (size_t i = 0; i < length; i++) {
    r[i] = rhs[i];
    rf[i] = (float)(rhs[i] / norm_b);
  }
  int its = 0;
  // rf holds r over `scale`, so that f32 neither over- nor underflows.
  double rn = norm_b, rz = 0, alpha = 0, scale = norm_b;
  const __m256d mask = _mm256_castsi256_pd(_mm256_setr_epi64x(-1, -1, -1, 0));
  while (its < max_iterations && rn > 1e-8 * norm_b) {
    precondition(rf.p, zf.p);
    double zr = 0, zq = 0;
#pragma omp parallel for num_threads(NT) reduction(+ : zr, zq) schedule(static)
    for (int t = 0; t < NT * 8; t++) {
      __m256d s = _mm256_setzero_pd(), u = s;
      for (size_t i = (size_t)n * t / (NT * 8); i < (size_t)n * (t + 1) / (NT * 8); i++) {
        __m256d z = _mm256_and_pd(_mm256_cvtps_pd(_mm_loadu_ps(&zf[4 * i])), mask);
        s = _mm256_fmadd_pd(z, _mm256_loadu_pd(&r[4 * i]), s);
        u = _mm256_fmadd_pd(z, _mm256_loadu_pd(&q[4 * i]), u);
      }
      double o[4];
      _mm256_storeu_pd(o, s);
      zr += o[0] + o[1] + o[2];
      _mm256_storeu_pd(o, u);
      zq += o[0] + o[1] + o[2];
    }
    zr *= scale;
    zq *= scale;
    double beta = its ? -alpha * zq / rz : 0;
    rz = zr;
#pragma omp parallel for num_threads(NT) schedule(static)
    for (int i = 0; i < n; i++) {
      __m256d z =
          _mm256_mul_pd(_mm256_and_pd(_mm256_cvtps_pd(_mm_loadu_ps(&zf[4 * (size_t)i])), mask), _mm256_set1_pd(scale));
      _mm256_storeu_pd(&p[4 * (size_t)i], _mm256_fmadd_pd(_mm256_set1_pd(beta), _mm256_loadu_pd(&p[4 * (size_t)i]), z));
    }
    alpha = rz / symv<d3>(A, p.p, q.p);
    double s2 = 0, inverse = 1 / rn;
#pragma omp parallel for num_threads(NT) reduction(+ : s2) schedule(static)
    for (int t = 0; t < NT * 8; t++) {
      __m256d s = _mm256_setzero_pd(), va = _mm256_set1_pd(alpha);
      for (size_t i = (size_t)n * t / (NT * 8); i < (size_t)n * (t + 1) / (NT * 8); i++) {
        _mm256_storeu_pd(&x[4 * i], _mm256_fmadd_pd(va, _mm256_loadu_pd(&p[4 * i]), _mm256_loadu_pd(&x[4 * i])));
        __m256d w = _mm256_and_pd(_mm256_fnmadd_pd(va, _mm256_loadu_pd(&q[4 * i]), _mm256_loadu_pd(&r[4 * i])), mask);
        _mm256_storeu_pd(&r[4 * i], w);
        s = _mm256_fmadd_pd(w, w, s);
        _mm_storeu_ps(&rf[4 * i], _mm256_cvtpd_ps(_mm256_mul_pd(w, _mm256_set1_pd(inverse))));
      }
      double o[4];
      _mm256_storeu_pd(o, s);
      s2 += o[0] + o[1] + o[2];
    }
    scale = rn;
    rn = sqrt(s2);
    its++;
  }
  return its;
}

// Prints what was reached, judged by the matrix: |b-Ax|/|b|, |b-Ax|/(|A||x|+|b|), largest component of x.
static void report(const Half<d3> &A, double norm_a, const Buf<double> &rhs, const Buf<double> &x) {
  Buf<double> q;
  q.alloc(4 * (size_t)A.n + 8);
  memset(q.p, 0, 8 * (4 * (size_t)A.n + 8));
  symv<d3>(A, x.p, q.p);
  double rr = 0, bb = 0, xx = 0, largest = 0;
  for (int i = 0; i < A.n; i++)
    for (int k = 0; k < 3; k++) {
      size_t j = 4 * (size_t)i + k;
      double d = rhs[j] - q[j];
      rr += d * d;
      bb += rhs[j] * rhs[j];
      xx += x[j] * x[j];
      largest = std::max(largest, fabs(x[j]));
    }
  printf("residual=%.3e backward=%.3e u=%.9e ", sqrt(rr / bb), sqrt(rr) / (norm_a * sqrt(xx) + sqrt(bb)), largest);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: prototype y1 N | y3 N | plate FILE.bin\n");
    return 2;
  }
  std::string problem = argv[1];
  NT = omp_get_max_threads();
  Mesh mesh;
  if (problem == "plate")
    read_bin(mesh, argv[2]);
  else
    make_box(mesh, problem, atoi(argv[2]));
  double start = now();
  Full A;
  Buf<double> rhs, x;
  assemble(mesh, A, rhs);
  double assembly = now() - start;
  start = now();
  bool second_order = mesh.npe == 10;
  Corners corners;
  Hier hierarchy;
  if (second_order)
    corners.build(mesh, A);
  build_hierarchy(hierarchy, second_order ? corners.mesh : mesh, second_order ? corners.A : A);
  corners.A.val.release();
  Half<d3> half;
  half.build(A.n, A.ptr, A.col, A.val.p, A.tr);
  double setup = now() - start, norm_a = norm_inf(A);
  A.val.release();
  start = now();
  auto precondition = [&](const float *b, float *z) {
    second_order ? corners.apply(hierarchy, b, z) : hierarchy.apply(b, z);
  };
  int its = conjugate_gradients(half, precondition, rhs, x);
  double solve = now() - start, memory = rss_mib();
  printf("RESULT dofs=%d assembly=%.4f setup=%.4f solve=%.4f iterations=%d converged=1 ", 3 * mesh.nn, assembly, setup,
         solve, its);
  report(half, norm_a, rhs, x);
  printf("memory=%.1f\n", memory);
}
