#!/usr/bin/env python3
"""Makes the mesh files of cases/: `python3 scripts/make_meshes.py [CASE ...]` (needs scripts/requirements-meshes.txt).

One function a case, named like its folder. Running it again gives the same files.
"""

import pathlib
import sys

import numpy as np

import bracket
import meshing

CASES = pathlib.Path(__file__).resolve().parent.parent / "cases"


def write(mesh, case, name=None):
    """Writes cases/CASE/NAME.msh."""
    meshing.write_msh(mesh, CASES / case / f"{name or case}.msh")


def seven_hexes():
    """The unit cube in seven distorted hexahedra of MacNeal and Harder (1985)."""
    inner = [
        (0.249, 0.342, 0.192),
        (0.826, 0.288, 0.288),
        (0.850, 0.649, 0.263),
        (0.273, 0.750, 0.230),
        (0.320, 0.186, 0.643),
        (0.677, 0.305, 0.683),
        (0.788, 0.693, 0.644),
        (0.165, 0.745, 0.702),
    ]
    outer = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    cells = [range(8)]
    for a, b, c, d in meshing.FACES["hex8"]:
        # From an inner face outwards: its outward normal is the local axis of the element around it.
        cells.append([a, b, c, d, a + 8, b + 8, c + 8, d + 8])
    return meshing.Mesh("hex8", inner + outer, [list(cell) for cell in cells])


def shaken_cube(kind):
    """The unit cube in 3 x 3 x 3 bricks whose nodes are moved, those on faces inside their face only."""
    mesh = meshing.structured(meshing.SECOND_ORDER.get(kind, kind), (3, 3, 3))
    random = np.random.Generator(np.random.PCG64(20))
    shift = random.uniform(-0.07, 0.07, mesh.points.shape)
    on_boundary = (np.abs(mesh.points) < 1e-9) | (np.abs(mesh.points - 1) < 1e-9)
    mesh.points += np.where(on_boundary, 0, np.round(shift, 3))
    if kind != mesh.kind:
        mesh.elevate()
    return mesh


def patch(kind, mesh):
    """Names the sides and writes one of the patch tests."""
    mesh.name_box_faces()
    write(mesh, f"patch-{kind}")


def patch_hex8():
    patch("hex8", seven_hexes())


def patch_hex20():
    """As patch-hex8; middle nodes of the edges inside are moved too, so that these edges are curved."""
    mesh = seven_hexes()
    mesh.elevate()
    inside = np.all((mesh.points > 1e-9) & (mesh.points < 1 - 1e-9), axis=1)
    middle = np.arange(len(mesh.points)) >= 16
    random = np.random.Generator(np.random.PCG64(20))
    shift = np.round(random.uniform(-0.02, 0.02, mesh.points.shape), 3)
    mesh.points += np.where((inside & middle)[:, None], shift, 0)
    patch("hex20", mesh)


def patch_tet4():
    patch("tet4", shaken_cube("tet4"))


def patch_tet10():
    patch("tet10", shaken_cube("tet10"))


def patch_wedge6():
    patch("wedge6", shaken_cube("wedge6"))


def thermal_expansion():
    """The distorted cube of the patch tests, of second-order tetrahedra."""
    mesh = shaken_cube("tet10")
    mesh.name_box_faces()
    write(mesh, "thermal-expansion")


def ring(inner, outer, thickness, counts):
    """A quarter of a ring around z: r outwards, s from the x axis to the y axis, t along z."""
    mesh = meshing.structured("hex20", counts)
    mesh.name_faces(
        inside=lambda p: p[:, 0] < 1e-9,
        outside=lambda p: p[:, 0] > 1 - 1e-9,
        y0=lambda p: p[:, 1] < 1e-9,
        x0=lambda p: p[:, 1] > 1 - 1e-9,
        bottom=lambda p: p[:, 2] < 1e-9,
        top=lambda p: p[:, 2] > 1 - 1e-9,
    )

    def shape(r, s, t):
        radius = inner + (outer - inner) * r
        angle = s * np.pi / 2
        return radius * np.cos(angle), radius * np.sin(angle), thickness * t

    mesh.map(shape)
    exact_axes(mesh)
    return mesh


def exact_axes(mesh):
    """Sets coordinates that are zero but for rounding to zero, so that symmetry planes are planes."""
    mesh.points[np.abs(mesh.points) < 1e-12] = 0


def thick_cylinder():
    write(ring(0.01, 0.02, 0.002, (10, 20, 1)), "thick-cylinder")


def rotating_disk():
    write(ring(0.05, 0.2, 0.005, (14, 16, 1)), "rotating-disk")


def plate_with_hole():
    """A quarter of a square plate, 40 hole radii to each side, cells growing from the hole outwards."""
    size, thickness, growth = 40.0, 1.0, 100.0
    mesh = meshing.structured("hex20", (24, 24, 1))
    mesh.name_faces(
        hole=lambda p: p[:, 0] < 1e-9,
        right=lambda p: (p[:, 0] > 1 - 1e-9) & (p[:, 1] < 0.5 + 1e-9),
        y0=lambda p: p[:, 1] < 1e-9,
        x0=lambda p: p[:, 1] > 1 - 1e-9,
        bottom=lambda p: p[:, 2] < 1e-9,
        top=lambda p: p[:, 2] > 1 - 1e-9,
    )

    def shape(r, s, t):
        angle = s * np.pi / 2
        x, y = np.cos(angle), np.sin(angle)
        far = size / np.maximum(x, y)
        grown = (growth**r - 1) / (growth - 1)
        radius = 1 + (far - 1) * grown
        return radius * x, radius * y, thickness * t

    mesh.map(shape)
    exact_axes(mesh)
    write(mesh, "plate-with-hole")


def ellipse_plate(kind, counts, thickness, grading):
    """A quarter of the NAFEMS membrane: between the ellipses 2 x 1 and 3.25 x 2.75, s from D (x axis) to the y axis.

    The last cell of a row is about `grading` times as long as the first, at D.
    """
    mesh = meshing.structured(kind, counts)
    mesh.name_faces(
        inside=lambda p: p[:, 0] < 1e-9,
        outside=lambda p: p[:, 0] > 1 - 1e-9,
        y0=lambda p: p[:, 1] < 1e-9,
        x0=lambda p: p[:, 1] > 1 - 1e-9,
        bottom=lambda p: p[:, 2] < 1e-9,
        top=lambda p: p[:, 2] > 1 - 1e-9,
    )
    grow = lambda v: (grading**v - 1) / (grading - 1)

    def shape(r, s, t):
        angle = grow(s) * np.pi / 2
        axis_x = 2.0 + 1.25 * grow(r)
        axis_y = 1.0 + 1.75 * grow(r)
        return axis_x * np.cos(angle), axis_y * np.sin(angle), thickness * t

    mesh.map(shape)
    exact_axes(mesh)
    return mesh


def nafems_le1():
    write(ellipse_plate("hex20", (16, 24, 1), 0.02, 6.0), "nafems-le1")


def nafems_le10():
    mesh = ellipse_plate("hex20", (10, 20, 6), 0.6, 5.0)
    ellipse = lambda p: (p[:, 0] / 3.25) ** 2 + (p[:, 1] / 2.75) ** 2
    mesh.name_nodes(middle=lambda p: (np.abs(ellipse(p) - 1) < 1e-9) & (np.abs(p[:, 2] - 0.3) < 1e-9))
    write(mesh, "nafems-le10")


def bracket_msh():
    """Also writes the same mesh as cases/bracket-inp/bracket.inp."""
    bracket.make(CASES / "bracket" / "bracket.msh", CASES / "bracket-inp" / "bracket.inp")


MAKERS = {
    "patch-hex8": patch_hex8,
    "patch-hex20": patch_hex20,
    "patch-tet4": patch_tet4,
    "patch-tet10": patch_tet10,
    "patch-wedge6": patch_wedge6,
    "thermal-expansion": thermal_expansion,
    "thick-cylinder": thick_cylinder,
    "rotating-disk": rotating_disk,
    "plate-with-hole": plate_with_hole,
    "nafems-le1": nafems_le1,
    "nafems-le10": nafems_le10,
    "bracket": bracket_msh,
}


def main():
    for name in sys.argv[1:] or MAKERS:
        if name not in MAKERS:
            sys.exit(f"no mesh script for {name!r}; there are: {', '.join(MAKERS)}")
        (CASES / name).mkdir(parents=True, exist_ok=True)
        MAKERS[name]()
        print(f"made the mesh of {name}")


if __name__ == "__main__":
    main()
