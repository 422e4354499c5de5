"""The bracket: geometry by Gmsh's OpenCASCADE kernel, second-order tetrahedra; written as .msh and as .inp.

Units of the geometry: mm. An angle bracket: a wall plate with two bolt holes, an arm, a rib between them, fillets.
"""

import numpy as np

WIDTH = 80.0  # along y, centered
WALL = (10.0, 90.0)  # thickness along x, height along z
ARM = (110.0, 10.0)  # length along x measured from the wall's back, thickness along z
RIB = (8.0, 60.0, 60.0)  # thickness along y, reach along x and z
HOLE = (5.5, 27.0, 62.0)  # radius, distance from the middle plane along y, height z
INNER_FILLET = 6.0
CORNER = 12.0
LARGEST_EDGE = 4.4  # of the elements
PER_TURN = 14  # elements around a full circle


def solid(occ):
    """The volume: plates and rib fused, holes cut, edges rounded."""
    wall = occ.addBox(0, -WIDTH / 2, 0, WALL[0], WIDTH, WALL[1])
    arm = occ.addBox(0, -WIDTH / 2, 0, ARM[0], WIDTH, ARM[1])
    x, z = WALL[0], ARM[1]
    points = [occ.addPoint(a, -RIB[0] / 2, b) for a, b in ((x, z), (RIB[1], z), (x, RIB[2]))]
    lines = [occ.addLine(points[i], points[(i + 1) % 3]) for i in range(3)]
    triangle = occ.addPlaneSurface([occ.addCurveLoop(lines)])
    rib = next(tag for dim, tag in occ.extrude([(2, triangle)], 0, RIB[0], 0) if dim == 3)
    (body,), _ = occ.fuse([(3, wall)], [(3, arm), (3, rib)])
    holes = [(3, occ.addCylinder(-1, side * HOLE[1], HOLE[2], WALL[0] + 2, 0, 0, HOLE[0])) for side in (-1, 1)]
    (body,), _ = occ.cut([body], holes)
    occ.synchronize()
    return body[1]


def edges_where(gmsh, condition):
    """Edges whose two end points (rows of an array) satisfy `condition`."""
    found = []
    for _, edge in gmsh.model.getEntities(1):
        ends = gmsh.model.getBoundary([(1, edge)], combined=False)
        if len(ends) == 2:
            corners = np.array([gmsh.model.getValue(0, abs(tag), []) for _, tag in ends])
            if condition(corners):
                found.append(edge)
    return found


def round_edges(gmsh, body):
    """Fillets at the inner corners, round free corners of both plates."""
    occ = gmsh.model.occ
    near = lambda values, at: bool(np.all(np.abs(values - at) < 1e-6))

    def free_corner(c):
        top = near(c[:, 2], WALL[1]) and np.ptp(c[:, 0]) > 1
        tip = near(c[:, 0], ARM[0]) and np.ptp(c[:, 2]) > 1
        return (top or tip) and near(np.abs(c[:, 1]), WIDTH / 2)

    def inner(c):
        wall_arm = near(c[:, 0], WALL[0]) and near(c[:, 2], ARM[1])
        on_rib = near(np.abs(c[:, 1]), RIB[0] / 2) and np.ptp(c[:, 1]) < 1e-6
        rib_arm = on_rib and near(c[:, 2], ARM[1])
        rib_wall = on_rib and near(c[:, 0], WALL[0])
        ends = np.ptp(c[:, 1]) > 1 and np.all(np.abs(c[:, 1]) < RIB[0] / 2 + 1e-6)
        rib_end = ends and (near(c[:, 0], RIB[1]) or near(c[:, 2], RIB[2]))
        return wall_arm or rib_arm or rib_wall or rib_end

    corners = edges_where(gmsh, free_corner)
    inside = edges_where(gmsh, inner)
    (rounded,) = occ.fillet([body], corners, [CORNER])
    occ.synchronize()
    inside = edges_where(gmsh, inner)
    (rounded,) = occ.fillet([rounded[1]], inside, [INNER_FILLET])
    occ.synchronize()
    return rounded[1]


def name_groups(gmsh, body):
    """Physical groups: `bracket` (volume), `bolts` (walls of the holes), `load` (end of the arm)."""
    bolts, load = [], []
    for _, surface in gmsh.model.getEntities(2):
        low, high = np.array(gmsh.model.getBoundingBox(2, surface)).reshape(2, 3)
        size = high - low
        if np.allclose(size, [WALL[0], 2 * HOLE[0], 2 * HOLE[0]], atol=1e-4):
            bolts.append(surface)
        if low[0] > ARM[0] - 1e-4:
            load.append(surface)
    if len(bolts) != 2 or len(load) != 1:
        raise RuntimeError(f"expected 2 holes and 1 end of the arm, found {bolts} and {load}")
    gmsh.model.addPhysicalGroup(3, [body], 1, "bracket")
    gmsh.model.addPhysicalGroup(2, bolts, 2, "bolts")
    gmsh.model.addPhysicalGroup(2, load, 3, "load")


def mesh(gmsh, largest_edge):
    """Second-order tetrahedra; refuses a mesh with an inverted element."""
    gmsh.option.setNumber("Mesh.MeshSizeMax", largest_edge)
    gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", PER_TURN)
    gmsh.option.setNumber("Mesh.Algorithm3D", 1)
    gmsh.option.setNumber("Mesh.ElementOrder", 2)
    gmsh.option.setNumber("Mesh.HighOrderOptimize", 1)
    gmsh.option.setNumber("General.NumThreads", 1)
    gmsh.model.mesh.generate(3)
    for rule in ("Gauss2", "Gauss4"):
        points, _ = gmsh.model.mesh.getIntegrationPoints(11, rule)
        _, det_jac, _ = gmsh.model.mesh.getJacobians(11, points)
        if min(det_jac) <= 0:
            raise RuntimeError(f"inverted element: smallest det J {min(det_jac)} at the points of {rule}")


def make(msh_path, inp_path, largest_edge=LARGEST_EDGE):
    """Writes the mesh in both formats."""
    import gmsh

    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    body = round_edges(gmsh, solid(gmsh.model.occ))
    name_groups(gmsh, body)
    mesh(gmsh, largest_edge)
    gmsh.option.setNumber("Mesh.Binary", 1)
    gmsh.write(str(msh_path))
    inp_path.parent.mkdir(parents=True, exist_ok=True)
    inp_path.write_text(abaqus(gmsh))
    gmsh.finalize()


# Abaqus numbers the faces of a tetrahedron S1 to S4 by these corners.
ABAQUS_FACES = [(0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)]


def abaqus(gmsh):
    """The mesh part of an Abaqus input file, with the node and element numbers of the .msh file."""
    tags, points, _ = gmsh.model.mesh.getNodes()
    cell_tags, cells = gmsh.model.mesh.getElementsByType(11)
    cells = cells.reshape(-1, 10)
    used = set(cells.ravel().tolist())
    lines = ["** Bracket, mm. Made by scripts/make_meshes.py; do not edit.", "*NODE, NSET=nall"]
    for tag, (x, y, z) in sorted(zip(tags.tolist(), points.reshape(-1, 3).tolist())):
        if tag in used:
            lines.append(f"{tag},{number(x)},{number(y)},{number(z)}")
    lines.append("*ELEMENT, TYPE=C3D10")
    for tag, row in zip(cell_tags.tolist(), cells[:, [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]].tolist()):
        lines.append(",".join(map(str, [tag] + row)))
    first, last = int(cell_tags.min()), int(cell_tags.max())
    if last - first + 1 != len(cell_tags):
        raise RuntimeError("element numbers with gaps")
    lines += ["*ELSET, ELSET=bracket, GENERATE", f"{first}, {last}, 1"]
    faces = {}
    for tag, row in zip(cell_tags.tolist(), cells.tolist()):
        for k, face in enumerate(ABAQUS_FACES):
            faces[frozenset(row[i] for i in face)] = f"{tag}, S{k + 1}"
    for name, group in (("bolts", 2), ("load", 3)):
        triangles = [
            row
            for surface in gmsh.model.getEntitiesForPhysicalGroup(2, group)
            for row in gmsh.model.mesh.getElementsByType(9, surface)[1].reshape(-1, 6).tolist()
        ]
        if name == "bolts":
            nodes = sorted({node for row in triangles for node in row})
            lines.append("*NSET, NSET=bolts")
            lines += [",".join(map(str, nodes[i : i + 12])) for i in range(0, len(nodes), 12)]
        else:
            lines.append(f"*SURFACE, NAME={name}, TYPE=ELEMENT")
            lines += [faces[frozenset(row[:3])] for row in triangles]
    return "\n".join(lines) + "\n"


def number(value):
    """Shortest text with 7 decimals at most."""
    text = f"{value:.7f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
