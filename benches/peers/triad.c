// Memory bandwidth: the triad a = b + s c of the STREAM benchmark (McCalpin 1995), best of 10, 24 bytes an entry.
//
// usage: triad   (OMP_NUM_THREADS threads). Prints RESULT triad=<GB/s>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double *array(size_t n) {
  double *p = aligned_alloc(1 << 21, n * sizeof(double));
  if (p)
    madvise(p, n * sizeof(double), MADV_HUGEPAGE);
  return p;
}

int main(void) {
  size_t n = 32UL << 20; // 256 MiB each, far beyond any cache
  double *a = array(n), *b = array(n), *c = array(n), best = 1e9;
  if (!a || !b || !c)
    return 1;
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++) {
    a[i] = 1;
    b[i] = 2;
    c[i] = 0.5;
  }
  for (int round = 0; round < 10; round++) {
    double start = omp_get_wtime();
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
      a[i] = b[i] + 3.0 * c[i];
    double seconds = omp_get_wtime() - start;
    best = seconds < best ? seconds : best;
  }
  if (a[n / 2] != 3.5)
    return 1;
  printf("RESULT triad=%.2f\n", 24e-9 * n / best);
  return 0;
}
