// Elasticity on boxes of hex8 with PETSc: what benches/peers/run.py measures fem-solve against.
//
// usage: petsc_elasticity -prob y1|y3 -n N [PETSc options]
//   y1: unit cube of N x N x N cells, E = 1
//   y3: beam 40 x 1 x 1 of 40 N x N x N cells, E = 1, 1000, 1, ... in slabs of length 5
// Poisson's ratio 0.3, 2 x 2 x 2 points, face x = 0 held (its nodes are no unknowns), body force (0, 0, -1). Conjugate
// gradients on the unpreconditioned residual to 1e-8; the near-nullspace holds the rigid-body modes; GAMG by default.
// Prints one line: RESULT key=value ...
#include <petscksp.h>
#include <petsctime.h>
#include <sys/resource.h>

static const int CORNER[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                 {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};

// Shape functions and their gradients at the 8 points.
static double SHAPE[8][8], GRADIENT[8][8][3];

// The box, and the planes of nodes (x = constant) that this rank owns. Planes 1 to cells[0] are unknowns.
typedef struct {
  PetscInt cells[3], first, last, plane, n_owned;
  double h;
  PetscBool slabs;
} Box;

static void tabulate(void) {
  double g = 1 / PetscSqrtReal(3.0);
  for (int q = 0; q < 8; q++) {
    double at[3];
    for (int i = 0; i < 3; i++)
      at[i] = (2 * CORNER[q][i] - 1) * g;
    for (int a = 0; a < 8; a++) {
      double s[3], f[3];
      for (int i = 0; i < 3; i++) {
        s[i] = 2 * CORNER[a][i] - 1;
        f[i] = 1 + s[i] * at[i];
      }
      SHAPE[q][a] = 0.125 * f[0] * f[1] * f[2];
      GRADIENT[q][a][0] = 0.125 * s[0] * f[1] * f[2];
      GRADIENT[q][a][1] = 0.125 * s[1] * f[0] * f[2];
      GRADIENT[q][a][2] = 0.125 * s[2] * f[0] * f[1];
    }
  }
}

// Gradients in space at point q of an element with corners x, and the determinant of the Jacobian.
static double gradients(int q, const double x[8][3], double out[8][3]) {
  double j[3][3] = {{0}};
  for (int a = 0; a < 8; a++)
    for (int i = 0; i < 3; i++)
      for (int k = 0; k < 3; k++)
        j[i][k] += GRADIENT[q][a][i] * x[a][k];
  double c0 = j[1][1] * j[2][2] - j[1][2] * j[2][1], c1 = j[1][2] * j[2][0] - j[1][0] * j[2][2],
         c2 = j[1][0] * j[2][1] - j[1][1] * j[2][0];
  double det = j[0][0] * c0 + j[0][1] * c1 + j[0][2] * c2, d = 1 / det;
  double inv[3][3] = {
      {c0 * d, (j[0][2] * j[2][1] - j[0][1] * j[2][2]) * d, (j[0][1] * j[1][2] - j[0][2] * j[1][1]) * d},
      {c1 * d, (j[0][0] * j[2][2] - j[0][2] * j[2][0]) * d, (j[0][2] * j[1][0] - j[0][0] * j[1][2]) * d},
      {c2 * d, (j[0][1] * j[2][0] - j[0][0] * j[2][1]) * d, (j[0][0] * j[1][1] - j[0][1] * j[1][0]) * d}};
  for (int a = 0; a < 8; a++)
    for (int i = 0; i < 3; i++)
      out[a][i] = inv[i][0] * GRADIENT[q][a][0] + inv[i][1] * GRADIENT[q][a][1] + inv[i][2] * GRADIENT[q][a][2];
  return det;
}

// Stiffness by pairs of nodes, K_ab = sum of w (lambda ga gb^T + mu gb ga^T + mu ga.gb I); the lower pairs mirrored.
static void element(const double x[8][3], double young, double k[24][24], double f[24]) {
  const double nu = 0.3, lambda = young * nu / ((1 + nu) * (1 - 2 * nu)), mu = young / (2 * (1 + nu));
  memset(k, 0, sizeof(double) * 576);
  memset(f, 0, sizeof(double) * 24);
  for (int q = 0; q < 8; q++) {
    double g[8][3], w = gradients(q, x, g), wl = w * lambda, wm = w * mu;
    for (int a = 0; a < 8; a++) {
      for (int b = a; b < 8; b++) {
        double d = wm * (g[a][0] * g[b][0] + g[a][1] * g[b][1] + g[a][2] * g[b][2]);
        for (int i = 0; i < 3; i++) {
          for (int j = 0; j < 3; j++)
            k[3 * a + i][3 * b + j] += wl * g[a][i] * g[b][j] + wm * g[a][j] * g[b][i];
          k[3 * a + i][3 * b + i] += d;
        }
      }
      f[3 * a + 2] -= w * SHAPE[q][a];
    }
  }
  for (int r = 0; r < 24; r++)
    for (int c = 0; c < r - r % 3; c++)
      k[r][c] = k[c][r];
}

static Box make_box(PetscBool slabs, PetscInt n, PetscMPIInt rank, PetscMPIInt size) {
  Box box = {{slabs ? 40 * n : n, n, n}};
  box.slabs = slabs;
  box.h = 1.0 / n;
  box.plane = (n + 1) * (n + 1);
  box.first = 1 + box.cells[0] * rank / size;
  box.last = 1 + box.cells[0] * (rank + 1) / size;
  box.n_owned = (box.last - box.first) * box.plane;
  return box;
}

// An empty matrix with room for the 27 neighbors of each node.
static PetscErrorCode create_matrix(const Box *box, Mat *matrix) {
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, matrix));
  PetscCall(MatSetSizes(*matrix, 3 * box->n_owned, 3 * box->n_owned, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSize(*matrix, 3));
  PetscCall(MatSetType(*matrix, MATAIJ));
  PetscCall(MatSetFromOptions(*matrix));
  PetscInt *here, *elsewhere;
  PetscCall(PetscMalloc2(box->n_owned, &here, box->n_owned, &elsewhere));
  for (PetscInt i = box->first, row = 0; i < box->last; i++)
    for (PetscInt k = 0; k <= box->cells[2]; k++)
      for (PetscInt j = 0; j <= box->cells[1]; j++, row++) {
        PetscInt in_plane = (1 + (j > 0) + (j < box->cells[1])) * (1 + (k > 0) + (k < box->cells[2]));
        PetscInt low = i > 1, high = i < box->cells[0];
        PetscInt low_here = low && i - 1 >= box->first, high_here = high && i + 1 < box->last;
        here[row] = (1 + low_here + high_here) * in_plane;
        elsewhere[row] = (low + high - low_here - high_here) * in_plane;
      }
  // The same numbers for the upper triangle: room enough.
  PetscCall(MatXAIJSetPreallocation(*matrix, 3, here, elsewhere, here, elsewhere));
  PetscCall(PetscFree2(here, elsewhere));
  PetscCall(MatSetOption(*matrix, MAT_SPD, PETSC_TRUE));
  PetscBool half;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*matrix, &half, MATSEQSBAIJ, MATMPISBAIJ, ""));
  if (half)
    PetscCall(MatSetOption(*matrix, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
  PetscFunctionReturn(0);
}

static PetscErrorCode assemble(const Box *box, Mat matrix, Vec rhs) {
  PetscFunctionBeginUser;
  double k_e[24][24], f_e[24], x[8][3];
  PetscInt id[8];
  // A rank computes the cells right of its planes, the first one also those left of them.
  PetscInt begin = box->first == 1 ? 0 : box->first, end = PetscMin(box->last, box->cells[0]);
  for (PetscInt e = begin; e < end; e++)
    for (PetscInt k = 0; k < box->cells[2]; k++)
      for (PetscInt j = 0; j < box->cells[1]; j++) {
        for (int a = 0; a < 8; a++) {
          PetscInt at[3] = {e + CORNER[a][0], j + CORNER[a][1], k + CORNER[a][2]};
          for (int i = 0; i < 3; i++)
            x[a][i] = at[i] * box->h;
          id[a] = at[0] == 0 ? -1 : (at[0] - 1) * box->plane + at[2] * (box->cells[1] + 1) + at[1];
        }
        int slab = (int)((e + 0.5) * box->h / 5.0);
        element(x, box->slabs && slab % 2 ? 1e3 : 1.0, k_e, f_e);
        PetscCall(MatSetValuesBlocked(matrix, 8, id, 8, id, &k_e[0][0], ADD_VALUES));
        PetscCall(VecSetValuesBlocked(rhs, 8, id, f_e, ADD_VALUES));
      }
  PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(VecAssemblyBegin(rhs));
  PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
  PetscCall(VecAssemblyEnd(rhs));
  PetscFunctionReturn(0);
}

static PetscErrorCode set_rigid_body_modes(const Box *box, Mat matrix, Vec like) {
  PetscFunctionBeginUser;
  Vec coords;
  double *x;
  PetscCall(VecDuplicate(like, &coords));
  PetscCall(VecGetArray(coords, &x));
  for (PetscInt i = box->first, m = 0; i < box->last; i++)
    for (PetscInt k = 0; k <= box->cells[2]; k++)
      for (PetscInt j = 0; j <= box->cells[1]; j++, m++) {
        x[3 * m] = i * box->h;
        x[3 * m + 1] = j * box->h;
        x[3 * m + 2] = k * box->h;
      }
  PetscCall(VecRestoreArray(coords, &x));
  MatNullSpace modes;
  PetscCall(MatNullSpaceCreateRigidBody(coords, &modes));
  PetscCall(MatSetNearNullSpace(matrix, modes));
  PetscCall(MatNullSpaceDestroy(&modes));
  PetscCall(VecDestroy(&coords));
  PetscFunctionReturn(0);
}

static PetscErrorCode set_up(Mat matrix, KSP *ksp) {
  PC pc;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, matrix, matrix));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, 1e-50, 1e10, 20000));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscCall(PCSetUpOnBlocks(pc));
  PetscFunctionReturn(0);
}

// What was reached, judged by the matrix: |b-Ax|/|b| and |b-Ax|/(|A||x|+|b|) with the largest row sum of A.
static PetscErrorCode residuals(Mat matrix, Vec rhs, Vec x, double *relative, double *backward) {
  PetscFunctionBeginUser;
  Vec r;
  double norm_r, norm_b, norm_x, norm_a;
  PetscCall(VecDuplicate(rhs, &r));
  PetscCall(MatMult(matrix, x, r));
  PetscCall(VecAYPX(r, -1, rhs));
  PetscCall(VecNorm(r, NORM_2, &norm_r));
  PetscCall(VecNorm(rhs, NORM_2, &norm_b));
  PetscCall(VecNorm(x, NORM_2, &norm_x));
  PetscCall(MatNorm(matrix, NORM_INFINITY, &norm_a));
  *relative = norm_r / norm_b;
  *backward = norm_r / (norm_a * norm_x + norm_b);
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(0);
}

// Seconds since `*since`, when all ranks have come here; starts anew.
static double lap(PetscLogDouble *since) {
  PetscLogDouble now;
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&now);
  double seconds = now - *since;
  *since = now;
  return seconds;
}

// Sum over the ranks of the largest resident memory, MiB.
static double memory(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double mine = usage.ru_maxrss / 1024.0, sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD);
  return sum;
}

int main(int argc, char **argv) {
  PetscCall(PetscInitialize(&argc, &argv, 0, 0));
  PetscMPIInt rank, size;
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &size);
  char problem[16] = "y1";
  PetscInt n = 32, its;
  PetscCall(PetscOptionsGetString(0, 0, "-prob", problem, 16, 0));
  PetscCall(PetscOptionsGetInt(0, 0, "-n", &n, 0));
  Box box = make_box(!strcmp(problem, "y3") ? PETSC_TRUE : PETSC_FALSE, n, rank, size);
  tabulate();
  Mat matrix;
  Vec rhs, x;
  KSP ksp;
  PetscLogDouble clock = 0;
  lap(&clock);
  PetscCall(create_matrix(&box, &matrix));
  PetscCall(MatCreateVecs(matrix, &x, &rhs));
  PetscCall(VecSetOption(rhs, VEC_IGNORE_NEGATIVE_INDICES, PETSC_TRUE));
  PetscCall(assemble(&box, matrix, rhs));
  double assembly = lap(&clock);
  PetscCall(set_rigid_body_modes(&box, matrix, rhs));
  PetscCall(set_up(matrix, &ksp));
  double setup = lap(&clock);
  PetscCall(KSPSolve(ksp, rhs, x));
  double solve = lap(&clock), mib = memory(), relative = 0, backward = 0, largest = 0;
  KSPConvergedReason reason;
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(residuals(matrix, rhs, x, &relative, &backward));
  PetscCall(VecNorm(x, NORM_INFINITY, &largest));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "RESULT dofs=%d assembly=%.4f setup=%.4f solve=%.4f iterations=%d converged=%d residual=%.3e "
                        "backward=%.3e u=%.9e memory=%.1f version=%d.%d.%d\n",
                        (int)(3 * (box.cells[0] + 1) * box.plane), assembly, setup, solve, (int)its, reason > 0,
                        relative, backward, largest, mib, PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR,
                        PETSC_VERSION_SUBMINOR));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&matrix));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&rhs));
  PetscCall(PetscFinalize());
  return 0;
}
