#!/usr/bin/python3
"""Elasticity with dolfinx and PETSc's GAMG: what benches/peers/run.py measures fem-solve against.

    dolfinx_elasticity.py y1 N | plate FILE.bin   [-- PETSc options]

y1: unit cube of N x N x N hex8, body force (0, 0, -1). plate: the tet10 mesh of plate_mesh.py, traction (0, 0, -1e-3) on
x = 10. E = 1, nu = 0.3, face x = 0 held; conjugate gradients on the unpreconditioned residual to 1e-8. Written for dolfinx
0.5, Debian 12's. Prints one line: RESULT key=value ...
"""

import resource
import sys
import time

import petsc4py

split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
petsc4py.init(sys.argv[:1] + sys.argv[split + 1 :])

import dolfinx
import dolfinx.fem.petsc
import numpy as np
import ufl
from dolfinx import cpp, fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

COMM = MPI.COMM_WORLD


def read_plate(path):
    """The mesh, from the tetrahedra that rank 0 reads."""
    points, cells = np.empty((0, 3)), np.empty((0, 10), dtype=np.int64)
    if COMM.rank == 0:
        with open(path, "rb") as file:
            n_points, n_cells, _ = np.fromfile(file, dtype=np.int32, count=3)
            points = np.fromfile(file, dtype=np.float64, count=3 * n_points).reshape(-1, 3)
            cells = np.fromfile(file, dtype=np.int32, count=10 * n_cells).reshape(-1, 10).astype(np.int64)
        cells = np.ascontiguousarray(cells[:, cpp.io.perm_gmsh(mesh.CellType.tetrahedron, 10)])
    domain = ufl.Mesh(ufl.VectorElement("Lagrange", ufl.Cell("tetrahedron", geometric_dimension=3), 2))
    return mesh.create_mesh(COMM, cells, points, domain)


def forms(problem, domain, space):
    """Stiffness and load, compiled."""
    young, nu = 1.0, 0.3
    mu, lam = young / (2 * (1 + nu)), young * nu / ((1 + nu) * (1 - 2 * nu))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    strain = lambda w: ufl.sym(ufl.grad(w))
    stress = lambda w: 2 * mu * strain(w) + lam * ufl.tr(strain(w)) * ufl.Identity(3)
    degree = 3 if problem == "y1" else 2  # 2 x 2 x 2 points in a hexahedron, 4 in a tetrahedron
    dx = ufl.Measure("dx", domain, metadata={"quadrature_degree": degree})
    vector = lambda z: fem.Constant(domain, PETSc.ScalarType((0.0, 0.0, z)))
    if problem == "y1":
        load = ufl.dot(vector(-1.0), v) * dx
    else:
        end = np.sort(mesh.locate_entities_boundary(domain, 2, lambda x: np.isclose(x[0], 10)))
        tags = mesh.meshtags(domain, 2, end, np.full(len(end), 1, dtype=np.int32))
        load = ufl.dot(vector(-1e-3), v) * ufl.Measure("ds", domain, subdomain_data=tags)(1)
    native = {"cffi_extra_compile_args": ["-O3", "-march=native"]}
    return fem.form(ufl.inner(stress(u), strain(v)) * dx, jit_params=native), fem.form(load)


def assemble(stiffness, load, held):
    matrix = fem.petsc.create_matrix(stiffness)
    fem.petsc.assemble_matrix(matrix, stiffness, bcs=[held])
    matrix.assemble()
    rhs = fem.petsc.assemble_vector(load)
    fem.petsc.apply_lifting(rhs, [stiffness], bcs=[[held]])
    rhs.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
    fem.petsc.set_bc(rhs, [held])
    return matrix, rhs


def set_rigid_body_modes(matrix, space):
    n = space.dofmap.index_map.size_local
    x = space.tabulate_dof_coordinates()[:n]
    center = COMM.allreduce(x.sum(0)) / COMM.allreduce(n)
    x, y, z = (x - center).T
    modes = np.zeros((6, n, 3))
    for i in range(3):
        modes[i, :, i] = 1
    modes[3, :, 0], modes[3, :, 1] = -y, x
    modes[4, :, 1], modes[4, :, 2] = -z, y
    modes[5, :, 0], modes[5, :, 2] = z, -x
    vectors = [matrix.createVecLeft() for _ in modes]
    for k, vector in enumerate(vectors):
        vector.array[:] = modes[k].ravel()
        for other in vectors[:k]:
            vector.axpy(-vector.dot(other), other)
        vector.normalize()
    matrix.setNearNullSpace(PETSc.NullSpace().create(vectors=vectors, comm=COMM))


def set_up(matrix, space):
    matrix.setOption(PETSc.Mat.Option.SPD, True)
    set_rigid_body_modes(matrix, space)
    ksp = PETSc.KSP().create(COMM)
    ksp.setOperators(matrix)
    ksp.setType("cg")
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=1e-8, max_it=5000)
    ksp.getPC().setType("gamg")
    ksp.setFromOptions()
    ksp.setUp()
    ksp.getPC().setUpOnBlocks()
    return ksp


def lap(since):
    """Seconds since then, when all ranks have come here, and now."""
    COMM.barrier()
    now = time.perf_counter()
    return now - since, now


def main():
    problem, size = sys.argv[1:3]
    if problem == "y1":
        n = int(size)
        domain, order = mesh.create_unit_cube(COMM, n, n, n, mesh.CellType.hexahedron), 1
    else:
        domain, order = read_plate(size), 2
    space = fem.VectorFunctionSpace(domain, ("Lagrange", order))
    stiffness, load = forms(problem, domain, space)
    face = mesh.locate_entities_boundary(domain, 2, lambda x: np.isclose(x[0], 0))
    held = fem.dirichletbc(np.zeros(3, PETSc.ScalarType), fem.locate_dofs_topological(space, 2, face), space)
    _, clock = lap(0.0)
    matrix, rhs = assemble(stiffness, load, held)
    assembly, clock = lap(clock)
    ksp = set_up(matrix, space)
    setup, clock = lap(clock)
    x = matrix.createVecRight()
    ksp.solve(rhs, x)
    solve, _ = lap(clock)
    memory = COMM.allreduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    r = rhs.duplicate()
    matrix.mult(x, r)
    r.aypx(-1, rhs)
    backward = r.norm() / (matrix.norm(PETSc.NormType.INFINITY) * x.norm() + rhs.norm())
    residual, largest = r.norm() / rhs.norm(), x.norm(PETSc.NormType.INFINITY)
    if COMM.rank == 0:
        print(
            f"RESULT dofs={3 * space.dofmap.index_map.size_global} assembly={assembly:.4f} setup={setup:.4f} "
            f"solve={solve:.4f} iterations={ksp.getIterationNumber()} converged={int(ksp.getConvergedReason() > 0)} "
            f"residual={residual:.3e} backward={backward:.3e} u={largest:.9e} memory={memory:.1f} "
            f"version={dolfinx.__version__}"
        )


if __name__ == "__main__":
    main()
