"""A small cantilever through fem-solve and CalculiX, from the same mesh file: what a run costs a user with a small model.

A bar 10 x 1 x 1 of 40 x 4 x 4 hex20 (10,995 degrees of freedom), steel in SI units, held at x = 0, traction (0, 0, -1e6) on
x = 10. Both read the same deck, solve with what they choose by themselves, and write displacements and stresses; whole
processes are timed.
"""

import dataclasses
import sys

import numpy as np

import problems
import programs

sys.path.insert(0, str(programs.ROOT / "scripts"))
import meshing

CELLS, LENGTHS = (40, 4, 4), (10.0, 1.0, 1.0)
# Largest component of the displacement, in which both programs agree.
EXPECTED = 0.0190427
CASE = """title = "Cantilever"

[mesh]
file = "deck.inp"

[[material]]
name = "steel"
elements = "BAR"
young = 210e9
poisson = 0.3

[[constraint]]
on = "HELD"
displacement = [0.0, 0.0, 0.0]

[[load]]
on = "TIP"
traction = [0.0, 0.0, -1e6]
"""


def write_deck(path):
    """One deck for both: fem-solve takes the mesh and the sets of it, CalculiX everything."""
    mesh = meshing.structured("hex20", CELLS)
    mesh.name_box_faces()
    points = mesh.points * LENGTHS
    numbered = np.column_stack([np.arange(len(mesh.cells)), mesh.cells]) + 1
    lines = ["*HEADING", "Cantilever", *problems.node_lines(points)]
    # A line of a deck holds 16 entries.
    lines.append("*ELEMENT,TYPE=C3D20,ELSET=BAR")
    for row in numbered.tolist():
        lines += [",".join(map(str, row[:11])) + ",", ",".join(map(str, row[11:]))]
    held = np.flatnonzero(np.abs(points[:, 0]) < 1e-9) + 1
    lines += problems.deck_lines("*NSET,NSET=HELD", held[:, None].tolist())
    at_end = points[mesh.cells[:, :8]][:, :, 0].max(axis=1) > LENGTHS[0] - 1e-9
    # Face S4 of a brick has the corners 2, 3, 7, 6: the one towards larger x.
    lines += ["*SURFACE,NAME=TIP,TYPE=ELEMENT", *(f"{k + 1},S4" for k in np.flatnonzero(at_end))]
    lines += ["*MATERIAL,NAME=STEEL", "*ELASTIC", "210e9,0.3", "*SOLID SECTION,ELSET=BAR,MATERIAL=STEEL"]
    force = np.zeros(len(points))
    area = LENGTHS[1] * LENGTHS[2] / (CELLS[1] * CELLS[2])
    for _, face in mesh.face_sets["xmax"]:
        # Consistent with a uniform traction on a face of eight nodes.
        force[face[:4]] += 1e6 * area / 12
        force[face[4:]] -= 1e6 * area / 3
    loads = ["*CLOAD"] + [f"{k + 1},3,{force[k]:.12g}" for k in np.flatnonzero(force)]
    lines += problems.step_lines("", loads, ["*NODE FILE", "U", "*EL FILE", "S"])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def compare(rounds):
    """Runs of each program by label."""
    shared = programs.BUILD / "cantilever"
    shared.mkdir(parents=True, exist_ok=True)
    write_deck(shared / "deck.inp")
    (shared / "case.toml").write_text(CASE, encoding="utf-8")
    problem = problems.Problem("cantilever", 40, 10_995, EXPECTED)
    link = lambda problem, shared, folder: (folder / "deck.inp").symlink_to(shared / "deck.inp")
    entered = [p for p in programs.fem_solve() + programs.calculix() if "CG" not in p.name]
    runs = {p.label: [] for p in entered}
    for _ in range(rounds):
        for program in entered:
            files = link if "CalculiX" in program.name else program.files
            run = programs.execute(dataclasses.replace(program, files=files), problem, shared)
            why = programs.verdict(problem, run)
            runs[program.label].append({**run, "error": why} if why else run)
    return runs
