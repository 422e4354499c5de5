// Yardsticks Y1(n), Y3(nx) with PETSc: hex8 elasticity, AIJ/BAIJ bs=3, rigid body near-null space, CG.
// usage: elas -prob y1|y3 -n N [-mat_type aij|baij|sbaij] [PETSc options]
#include <petscksp.h>
#include <petsctime.h>
#include <sys/resource.h>
typedef double real;
static void shape_grad(real xi, real et, real ze, real dN[8][3]) {
  static const int s[8][3] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                              {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};
  for (int a = 0; a < 8; a++) {
    real x = 1 + s[a][0] * xi, y = 1 + s[a][1] * et, z = 1 + s[a][2] * ze;
    dN[a][0] = 0.125 * s[a][0] * y * z;
    dN[a][1] = 0.125 * s[a][1] * x * z;
    dN[a][2] = 0.125 * s[a][2] * x * y;
  }
}
static real DN[8][8][3], NN[8][8];
static void init_tables(void) {
  static const int s[8][3] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                              {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};
  real g = 1 / PetscSqrtReal(3.0);
  int q = 0;
  for (int k = -1; k < 2; k += 2)
    for (int j = -1; j < 2; j += 2)
      for (int i = -1; i < 2; i += 2, q++) {
        shape_grad(i * g, j * g, k * g, DN[q]);
        for (int a = 0; a < 8; a++)
          NN[q][a] = 0.125 * (1 + s[a][0] * i * g) * (1 + s[a][1] * j * g) * (1 + s[a][2] * k * g);
      }
}
// isotropic element stiffness by node-pair blocks: K_ab = sum_q w [lam ga gb^T + mu gb ga^T + mu (ga.gb) I]; upper
// pairs then mirrored
static void elem(const real X[8][3], real E, real nu, real K[24][24], real F[24], const real f[3]) {
  real lam = E * nu / ((1 + nu) * (1 - 2 * nu)), mu = E / (2 * (1 + nu));
  memset(K, 0, sizeof(real) * 576);
  memset(F, 0, sizeof(real) * 24);
  for (int q = 0; q < 8; q++) {
    real J[3][3] = {{0}};
    for (int a = 0; a < 8; a++)
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
          J[i][j] += DN[q][a][i] * X[a][j];
    real c00 = J[1][1] * J[2][2] - J[1][2] * J[2][1], c01 = J[1][2] * J[2][0] - J[1][0] * J[2][2],
         c02 = J[1][0] * J[2][1] - J[1][1] * J[2][0];
    real det = J[0][0] * c00 + J[0][1] * c01 + J[0][2] * c02, id = 1 / det;
    real Ji[3][3] = {
        {c00 * id, (J[0][2] * J[2][1] - J[0][1] * J[2][2]) * id, (J[0][1] * J[1][2] - J[0][2] * J[1][1]) * id},
        {c01 * id, (J[0][0] * J[2][2] - J[0][2] * J[2][0]) * id, (J[0][2] * J[1][0] - J[0][0] * J[1][2]) * id},
        {c02 * id, (J[0][1] * J[2][0] - J[0][0] * J[2][1]) * id, (J[0][0] * J[1][1] - J[0][1] * J[1][0]) * id}};
    real G[8][3];
    for (int a = 0; a < 8; a++)
      for (int i = 0; i < 3; i++)
        G[a][i] = Ji[i][0] * DN[q][a][0] + Ji[i][1] * DN[q][a][1] + Ji[i][2] * DN[q][a][2];
    real wl = det * lam, wm = det * mu;
    for (int a = 0; a < 8; a++) {
      for (int b = a; b < 8; b++) {
        real d = wm * (G[a][0] * G[b][0] + G[a][1] * G[b][1] + G[a][2] * G[b][2]);
        for (int i = 0; i < 3; i++) {
          for (int j = 0; j < 3; j++)
            K[3 * a + i][3 * b + j] += wl * G[a][i] * G[b][j] + wm * G[a][j] * G[b][i];
          K[3 * a + i][3 * b + i] += d;
        }
      }
      for (int i = 0; i < 3; i++)
        F[3 * a + i] += det * NN[q][a] * f[i];
    }
  }
  for (int a = 0; a < 8; a++)
    for (int b = 0; b < a; b++)
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
          K[3 * a + i][3 * b + j] = K[3 * b + j][3 * a + i];
}
int main(int argc, char **argv) {
  PetscLogDouble T0, t0, t1, tker = 0, tasm, tset, tsol, tmm, tpre;
  PetscCall(PetscInitialize(&argc, &argv, 0, 0));
  PetscCall(PetscTime(&T0));
  PetscMPIInt rank, size;
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &size);
  char prob[16] = "y1", tag[128] = "-";
  PetscInt n = 32;
  PetscBool kerneltest = PETSC_FALSE, flg;
  PetscInt el = 0;
  PetscOptionsGetInt(0, 0, "-elim", &el, 0);
  PetscCall(PetscOptionsGetString(0, 0, "-prob", prob, 16, 0));
  PetscCall(PetscOptionsGetInt(0, 0, "-n", &n, 0));
  PetscCall(PetscOptionsGetString(0, 0, "-tag", tag, 128, 0));
  PetscCall(PetscOptionsGetBool(0, 0, "-kernel_test", &kerneltest, 0));
  PetscInt ex, ey, ez;
  real h;
  int y3 = !strcmp(prob, "y3");
  if (y3) {
    ex = 40 * n;
    ey = ez = n;
    h = 1.0 / n;
  } else {
    ex = ey = ez = n;
    h = 1.0 / n;
  }
  PetscInt ni = ex + 1, nj = ey + 1, nk = ez + 1, plane = nj * nk;
  // rank owns node planes [p0,p1) in x; elements with left plane owned (last rank: up to ex)
  /* el=1: fixed plane x=0 eliminated, unknown planes 1..ex */ PetscInt p0 = el + (ni - el) * rank / size,
                                                                        p1 = el + (ni - el) * (rank + 1) / size,
                                                                        nloc = (p1 - p0) * plane;
  PetscInt e0 = (rank == 0) ? 0 : p0,
           e1 = PetscMin(p1, ex); // element column e uses planes e,e+1; assigned to the owner of plane e
  init_tables();
  Mat A;
  Vec b, x, r, coords;
  PetscLogStage sA, sS, sK, sM;
  PetscLogStageRegister("Assembly", &sA);
  PetscLogStageRegister("PCSetUp", &sS);
  PetscLogStageRegister("KSPSolve", &sK);
  PetscLogStageRegister("SpMV", &sM);
  if (kerneltest) {
    real K[24][24], F[24], X[8][3], f[3] = {0, 0, -1}, s = 0;
    PetscTime(&t0);
    long cnt = 0;
    for (PetscInt e = e0; e < e1; e++)
      for (PetscInt k = 0; k < ez; k++)
        for (PetscInt j = 0; j < ey; j++) {
          static const int o[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                      {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
          for (int a = 0; a < 8; a++) {
            X[a][0] = (e + o[a][0]) * h;
            X[a][1] = (j + o[a][1]) * h;
            X[a][2] = (k + o[a][2]) * h;
          }
          elem(X, 1, 0.3, K, F, f);
          s += K[3][5] + F[2];
          cnt++;
        }
    PetscTime(&t1);
    tker = t1 - t0;
    PetscPrintf(PETSC_COMM_WORLD, "kernel only: %g s for %ld elements (%g us/elem) %g\n", tker, cnt, tker / cnt * 1e6,
                s);
  }
  PetscLogStagePush(sA);
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t0);
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 3 * nloc, 3 * nloc, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSize(A, 3));
  PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatSetFromOptions(A));
  PetscInt *dn, *on, *dnu, *onu;
  PetscMalloc4(nloc, &dn, nloc, &on, nloc, &dnu, nloc, &onu);
  for (PetscInt i = p0, m = 0; i < p1; i++)
    for (PetscInt k = 0; k < nk; k++)
      for (PetscInt j = 0; j < nj; j++, m++) {
        int cj = 1 + (j > 0) + (j < ey), ck = 1 + (k > 0) + (k < ez),
            ci = 1 + (i > el && i - 1 >= p0) + (i < ex && i + 1 < p1),
            co = (i > el && i - 1 < p0) + (i < ex && i + 1 >= p1);
        dn[m] = ci * cj * ck;
        on[m] = co * cj * ck;
        dnu[m] = dn[m];
        onu[m] = on[m];
      }
  PetscCall(MatXAIJSetPreallocation(A, 3, dn, on, dnu, onu));
  PetscFree4(dn, on, dnu, onu);
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_TRUE));
  PetscBool issb;
  PetscObjectTypeCompareAny((PetscObject)A, &issb, MATSEQSBAIJ, MATMPISBAIJ, "");
  if (issb)
    PetscCall(MatSetOption(A, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &b));
  PetscCall(VecSetSizes(b, 3 * nloc, PETSC_DETERMINE));
  PetscCall(VecSetBlockSize(b, 3));
  PetscCall(VecSetFromOptions(b));
  PetscCall(VecSetOption(b, VEC_IGNORE_NEGATIVE_INDICES, PETSC_TRUE));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecDuplicate(b, &coords));
  PetscTime(&t1);
  tpre = t1 - t0;
  real *xc;
  VecGetArray(coords, &xc);
  for (PetscInt i = p0, m = 0; i < p1; i++)
    for (PetscInt k = 0; k < nk; k++)
      for (PetscInt j = 0; j < nj; j++, m++) {
        xc[3 * m] = i * h;
        xc[3 * m + 1] = j * h;
        xc[3 * m + 2] = k * h;
      }
  VecRestoreArray(coords, &xc);
  {
    real K[24][24], F[24], X[8][3], f[3] = {0, 0, -1};
    PetscInt id[8];
    for (PetscInt e = e0; e < e1; e++)
      for (PetscInt k = 0; k < ez; k++)
        for (PetscInt j = 0; j < ey; j++) {
          static const int o[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                      {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
          for (int a = 0; a < 8; a++) {
            X[a][0] = (e + o[a][0]) * h;
            X[a][1] = (j + o[a][1]) * h;
            X[a][2] = (k + o[a][2]) * h;
            id[a] = (e + o[a][0] - el) * plane + (k + o[a][2]) * nj + (j + o[a][1]);
          }
          real E = 1;
          if (y3) {
            int slab = (int)((e + 0.5) * h / 5.0);
            E = (slab & 1) ? 1e3 : 1;
          }
          elem(X, E, 0.3, K, F, f);
          if (e == 0 && el) {
            for (int a = 0; a < 8; a++)
              if (!o[a][0])
                id[a] = -1;
          } else if (e == 0)
            for (int a = 0; a < 8; a++)
              if (!o[a][0])
                for (int i = 0; i < 3; i++) {
                  int p = 3 * a + i;
                  real d = K[p][p];
                  for (int c = 0; c < 24; c++)
                    K[p][c] = K[c][p] = 0;
                  K[p][p] = d;
                  F[p] = 0;
                }
          PetscCall(MatSetValuesBlocked(A, 8, id, 8, id, &K[0][0], ADD_VALUES));
          PetscCall(VecSetValuesBlocked(b, 8, id, F, ADD_VALUES));
        }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(VecAssemblyEnd(b));
  }
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t1);
  tasm = t1 - t0;
  PetscLogStagePop();
  MatNullSpace ns;
  PetscCall(MatNullSpaceCreateRigidBody(coords, &ns));
  PetscCall(MatSetNearNullSpace(A, ns));
  PetscCall(MatNullSpaceDestroy(&ns));
  // SpMV timing (best and mean of 20)
  PetscLogStagePush(sM);
  real best = 1e9;
  MatInfo info;
  MatGetInfo(A, MAT_GLOBAL_SUM, &info);
  VecSet(x, 1);
  PetscCall(MatMult(A, x, r));
  double mean = 0;
  for (int it = 0; it < 20; it++) {
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t0);
    PetscCall(MatMult(A, x, r));
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t1);
    best = PetscMin(best, t1 - t0);
    mean += (t1 - t0) / 20;
  }
  tmm = best;
  PetscLogStagePop();
  KSP ksp;
  PC pc;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-50, 1e10, 20000));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(ksp));
  PCType pct;
  PetscCall(PCGetType(pc, &pct));
  {
    PetscBool h, g;
    PetscStrcmp(pct, "hypre", &h);
    PetscStrcmp(pct, "ml", &g);
    if (h) {
      PetscCall(PCSetCoordinates(pc, 3, nloc, ({
                                   real *q;
                                   VecGetArray(coords, &q);
                                   q;
                                 })));
    }
  }
  PetscLogStagePush(sS);
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t0);
  PetscCall(KSPSetUp(ksp));
  PetscCall(PCSetUpOnBlocks(pc));
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t1);
  tset = t1 - t0;
  PetscLogStagePop();
  PetscLogStagePush(sK);
  PetscCall(VecSet(x, 0));
  PetscTime(&t0);
  PetscCall(KSPSolve(ksp, b, x));
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t1);
  tsol = t1 - t0;
  PetscLogStagePop();
  PetscInt its;
  KSPConvergedReason why;
  KSPGetIterationNumber(ksp, &its);
  KSPGetConvergedReason(ksp, &why);
  real rn, bn, xm;
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  VecNorm(r, NORM_2, &rn);
  VecNorm(b, NORM_2, &bn);
  VecNorm(x, NORM_INFINITY, &xm);
  // re-solve with new setup: reuse
  PetscBool reuse = PETSC_FALSE;
  PetscOptionsGetBool(0, 0, "-time_reuse", &reuse, 0);
  double treuse = -1;
  if (reuse) {
    PetscCall(MatScale(A, 1.0000001));
    PetscTime(&t0);
    PetscCall(KSPSetUp(ksp));
    PetscTime(&t1);
    treuse = t1 - t0;
  }
  double oc = 0, gc = 0;
  flg = PETSC_FALSE;
  PetscStrcmp(pct, "gamg", &flg);
  PetscInt nlev = 0;
  if (flg) {
    PetscCall(PCMGGetLevels(pc, &nlev));
    double nf = 0;
    for (PetscInt l = nlev - 1; l >= 0; l--) {
      KSP s;
      Mat M;
      PCMGGetSmoother(pc, l, &s);
      KSPGetOperators(s, &M, 0);
      MatInfo in;
      PetscInt gm;
      MatGetSize(M, &gm, 0);
      MatGetInfo(M, MAT_GLOBAL_SUM, &in);
      if (l == nlev - 1)
        nf = in.nz_used;
      oc += in.nz_used / nf;
      PetscPrintf(PETSC_COMM_WORLD, "  level %d rows %d nnz %g (%.1f/row)\n", (int)l, (int)gm, in.nz_used,
                  in.nz_used / gm);
    }
  }
  struct rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  double rss = ru.ru_maxrss / 1024.0, rs;
  MPI_Reduce(&rss, &rs, 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD);
  PetscTime(&t1);
  PetscPrintf(PETSC_COMM_WORLD,
              "RESULT tag=%s prob=%s n=%d ranks=%d dof=%d nnz=%.0f prealloc=%.3f assembly=%.3f setup=%.3f solve=%.3f "
              "its=%d why=%d relres=%.3e uinf=%.8e spmv_best=%.5f spmv_mean=%.5f spmv_gflops=%.3f opcomp=%.3f "
              "levels=%d inner_wall=%.2f rss_sum=%.0f treuse=%.3f\n",
              tag, prob, (int)n, size, (int)(3 * ni * plane), info.nz_used, tpre, tasm, tset, tsol, (int)its, (int)why,
              rn / bn, xm, tmm, mean, 2 * info.nz_used / tmm / 1e9, oc, (int)nlev, t1 - T0, rs, treuse);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  VecDestroy(&x);
  VecDestroy(&b);
  VecDestroy(&r);
  VecDestroy(&coords);
  PetscCall(PetscFinalize());
  return 0;
}
