"""The yardsticks: what is solved, the files that each program reads, and the answer that it has to give.

All have Poisson's ratio 0.3 and the face x = 0 held.

- Y1(n): unit cube of n^3 hex8, E = 1, body force (0, 0, -1).
- Y2(h): plate 10 x 6 x 1 with two holes, tet10 with edges of length h, E = 1, traction (0, 0, -1e-3) on x = 10.
- Y3(n): beam 40 x 1 x 1 of hex8 with edges 1/n, E = 1, 1000, 1, ... in slabs of length 5, body force (0, 0, -1).
"""

import dataclasses
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Y1 and Y2 are solved to this |b-Ax|/|b|. Rounding of the exact solution of Y3 alone gives 1e-5: what counts there is
# |b-Ax|/(|A||x|+|b|), which has to be at the level of rounding.
RESIDUAL = 1e-8
BACKWARD = 1e-15
# Relative error of the largest displacement that passes. In Y3 rounding of the matrix alone, by another order of the sums over
# the elements, moves the answer of a direct solver by 1e-5.
ANSWER = {"Y1": 1e-5, "Y2": 1e-5, "Y3": 3e-5}
# Gmsh's nodes of a tet10 in the order of Abaqus and CalculiX.
GMSH_TO_ABAQUS = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]


@dataclasses.dataclass(frozen=True)
class Problem:
    """A yardstick. `expected`: largest component of the displacement, found by at least two independent programs."""

    kind: str
    size: float
    dofs: int
    expected: float

    @property
    def name(self):
        return f"{self.kind}({self.size:g})"

    @property
    def is_box(self):
        return self.kind != "Y2"

    @property
    def cells(self):
        n = int(self.size)
        return [40 * n if self.kind == "Y3" else n, n, n]

    @property
    def lengths(self):
        return [40.0 if self.kind == "Y3" else 1.0, 1.0, 1.0]

    @property
    def arguments(self):
        """What the programs of this folder take."""
        return ["plate", "plate.bin"] if self.kind == "Y2" else [self.kind.lower(), f"{self.size:g}"]


FULL = [
    Problem("Y1", 32, 107_811, 2.93450789),
    Problem("Y1", 64, 823_875, 2.94025813),
    Problem("Y2", 0.239, 101_925, 4.74508582),
    Problem("Y2", 0.144, 394_632, 4.74829484),
    Problem("Y3", 8, 78_003, 2.352870e6),
    Problem("Y3", 16, 555_747, 2.37048e6),
]
QUICK = [
    Problem("Y1", 16, 14_739, 2.91853282),
    Problem("Y2", 0.5, 15_657, 4.72518483),
    Problem("Y3", 4, 12_075, 2.28929e6),
]


def write_files(problem, folder):
    """The files of all programs, made once: case.toml, and plate.msh, plate.bin where a mesh is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    if problem.kind == "Y2" and not (folder / "plate.bin").exists():
        mesher = [sys.executable, HERE / "plate_mesh.py", f"{problem.size:g}", folder / "plate"]
        subprocess.run([str(a) for a in mesher], check=True, stdout=sys.stderr)
    (folder / "case.toml").write_text(case_text(problem), encoding="utf-8")


def case_text(problem):
    """The case file of fem-solve."""
    lines = [f'title = "{problem.name}"', "", "[mesh]"]
    if problem.is_box:
        lines.append(f'box = {{ size = {problem.lengths}, cells = {problem.cells}, element = "hex8" }}')
    else:
        lines.append('file = "plate.msh"')
    materials = [("unit", ["all"], 1.0)]
    if problem.kind == "Y3":
        slabs = [f"slab{k}" for k in range(8)]
        for k, name in enumerate(slabs):
            low, high = [5.0 * k, "inf", "inf"], [5.0 * (k + 1), "inf", "inf"]
            lines += ["", "[[set]]", f'name = "{name}"', f"elements_in_box = {{ min = {low}, max = {high} }}"]
        materials = [("soft", slabs[::2], 1.0), ("stiff", slabs[1::2], 1000.0)]
    for name, elements, young in materials:
        lines += ["", "[[material]]", f'name = "{name}"', f"elements = {elements}", f"young = {young}", "poisson = 0.3"]
    held = "xmin" if problem.is_box else "held"
    lines += ["", "[[constraint]]", f'on = "{held}"', "displacement = [0.0, 0.0, 0.0]", "", "[[load]]"]
    if problem.is_box:
        lines += ['on = "all"', "body_force = [0.0, 0.0, -1.0]"]
    else:
        lines += ['on = "loaded"', "traction = [0.0, 0.0, -1e-3]"]
    # What the others compute: no strains, no stresses.
    lines += ["", "[solver]", 'method = "cg"', f"tolerance = {RESIDUAL}", "", "[output]", 'fields = ["displacement"]']
    return "\n".join(lines) + "\n"


def read_plate(path):
    """Points, tetrahedra and loaded triangles of a file of plate_mesh.py."""
    with open(path, "rb") as file:
        n_points, n_tets, n_triangles = np.fromfile(file, dtype=np.int32, count=3)
        points = np.fromfile(file, dtype=np.float64, count=3 * n_points).reshape(-1, 3)
        tets = np.fromfile(file, dtype=np.int32, count=10 * n_tets).reshape(-1, 10)
        triangles = np.fromfile(file, dtype=np.int32, count=6 * n_triangles).reshape(-1, 6)
    return points, tets, triangles


def box_mesh(cells, lengths):
    """Points and hexahedra of a box, x fastest, and the number of each cell along x."""
    axes = [np.linspace(0, length, n + 1) for n, length in zip(cells, lengths)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    k, j, i = np.meshgrid(*[np.arange(n) for n in cells[::-1]], indexing="ij")
    row, plane = cells[0] + 1, (cells[0] + 1) * (cells[1] + 1)
    first = (i + row * j + plane * k).ravel()
    offsets = [0, 1, 1 + row, row]
    corners = [first + o for o in offsets] + [first + plane + o for o in offsets]
    return points, np.stack(corners, axis=1), i.ravel()


def deck_lines(keyword, rows):
    return [keyword] + [",".join(map(str, row)) for row in rows]


def node_lines(points):
    return ["*NODE,NSET=NALL"] + [f"{k + 1},{x:.14g},{y:.14g},{z:.14g}" for k, (x, y, z) in enumerate(points)]


def material_lines(name, elements, young):
    section = f"*SOLID SECTION,ELSET={elements},MATERIAL={name}"
    return [f"*MATERIAL,NAME={name}", "*ELASTIC", f"{young},0.3", "*DENSITY", "1.", section]


def step_lines(solver, loads, output):
    static = "*STATIC" + (f",SOLVER={solver}" if solver else "")
    return ["*BOUNDARY", "HELD,1,3", "*STEP", static, *loads, *output, "*END STEP"]


def write_deck(problem, folder, path, solver):
    """The deck of CalculiX; `solver`: its name of an equation solver, empty for the default."""
    if problem.is_box:
        points, cells, along = box_mesh(problem.cells, problem.lengths)
        slab = along // (5 * problem.cells[1]) % 2 if problem.kind == "Y3" else np.zeros(len(cells), dtype=int)
        kind, loads = "C3D8", ["*DLOAD"]
    else:
        points, cells, triangles = read_plate(folder / "plate.bin")
        cells, slab, kind = cells[:, GMSH_TO_ABAQUS], np.zeros(len(cells), dtype=int), "C3D10"
        loads = cload_lines(points, triangles)
    lines = ["*HEADING", problem.name, *node_lines(points)]
    materials = []
    for value, young in ((0, 1.0), (1, 1000.0)):
        chosen = np.flatnonzero(slab == value)
        if len(chosen):
            numbered = np.column_stack([chosen + 1, cells[chosen] + 1]).tolist()
            lines += deck_lines(f"*ELEMENT,TYPE={kind},ELSET=E{value}", numbered)
            materials += material_lines(f"M{value}", f"E{value}", young)
            if problem.is_box:
                loads.append(f"E{value},GRAV,1.,0.,0.,-1.")
    held = np.flatnonzero(np.abs(points[:, 0]) < 1e-9) + 1
    lines += deck_lines("*NSET,NSET=HELD", held[:, None].tolist()) + materials
    lines += step_lines(solver, loads, ["*NODE FILE", "U"])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cload_lines(points, triangles):
    """Traction (0, 0, -1e-3) as forces: a third of it at each mid-side node of plane triangles with straight edges."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    force = np.zeros(len(points))
    for k in range(3, 6):
        np.add.at(force, triangles[:, k], -1e-3 * area / 3)
    return ["*CLOAD"] + [f"{k + 1},3,{force[k]:.12g}" for k in np.flatnonzero(force)]
