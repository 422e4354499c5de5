"""Small structured meshes in numpy, written as Gmsh .msh 4.1 files.

A mesh is made with linear elements in a reference space (the unit cube), raised to second order there if wanted, and
then mapped: middle nodes of edges lie on the curved shape, not on its chords. Node order inside an element is VTK's.
"""

import numpy as np

# Edges carry the middle nodes of second-order elements, in VTK's order.
EDGES = {
    "tet4": [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)],
    "hex8": [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)],
}
# Faces seen from outside, counterclockwise.
FACES = {
    "tet4": [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)],
    "wedge6": [(0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (0, 3, 5, 2)],
    "hex8": [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (0, 4, 7, 3)],
}
SECOND_ORDER = {"tet10": "tet4", "hex20": "hex8"}
# Gmsh's number of an element type and the place of Gmsh's k-th node in our order.
GMSH_TYPE = {"tri3": 2, "quad4": 3, "tet4": 4, "hex8": 5, "wedge6": 6, "tri6": 9, "tet10": 11, "quad8": 16, "hex20": 17}
GMSH_ORDER = {
    "tet10": [0, 1, 2, 3, 4, 5, 6, 7, 9, 8],
    "hex20": [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 9, 17, 10, 18, 19, 12, 15, 13, 14],
}
FACE_TYPE = {(3, False): "tri3", (3, True): "tri6", (4, False): "quad4", (4, True): "quad8"}


class Mesh:
    """Points, cells of one type, named faces on the boundary (each a row of node numbers, from 0), named points."""

    def __init__(self, kind, points, cells):
        self.kind = kind
        self.points = np.asarray(points, dtype=float)
        self.cells = np.asarray(cells, dtype=int)
        self.face_sets = {}
        self.node_sets = {}

    def elevate(self):
        """Adds a node in the middle of each edge."""
        numbers = {}
        points = list(self.points)
        rows = []
        for cell in self.cells:
            row = list(cell)
            for a, b in EDGES[self.kind]:
                key = tuple(sorted((int(cell[a]), int(cell[b]))))
                if key not in numbers:
                    numbers[key] = len(points)
                    points.append((self.points[key[0]] + self.points[key[1]]) / 2)
                row.append(numbers[key])
            rows.append(row)
        self.kind = next(high for high, low in SECOND_ORDER.items() if low == self.kind)
        self.points = np.array(points)
        self.cells = np.array(rows)

    def boundary(self):
        """Faces that belong to one cell only; middle nodes of the edges follow the corners."""
        low = SECOND_ORDER.get(self.kind, self.kind)
        seen = {}
        for cell in self.cells:
            middle = {}
            if self.kind != low:
                corners = len(cell) - len(EDGES[low])
                for k, (a, b) in enumerate(EDGES[low]):
                    middle[frozenset((int(cell[a]), int(cell[b])))] = int(cell[corners + k])
            for face in FACES[low]:
                nodes = [int(cell[i]) for i in face]
                ring = list(zip(nodes, nodes[1:] + nodes[:1]))
                full = nodes + [middle[frozenset(edge)] for edge in ring if middle]
                seen.setdefault(frozenset(nodes), []).append((len(nodes), full))
        return [faces[0] for faces in seen.values() if len(faces) == 1]

    def name_faces(self, **predicates):
        """Names boundary faces: `name = f(points) -> bool per point`, true at all nodes of the face."""
        boundary = self.boundary()
        for name, predicate in predicates.items():
            inside = predicate(self.points)
            self.face_sets[name] = [face for face in boundary if all(inside[n] for n in face[1])]
            if not self.face_sets[name]:
                raise ValueError(f"no face of the mesh is in {name!r}")

    def name_nodes(self, **predicates):
        """Names nodes: `name = f(points) -> bool per point`."""
        used = np.zeros(len(self.points), dtype=bool)
        used[self.cells] = True
        for name, predicate in predicates.items():
            self.node_sets[name] = np.flatnonzero(used & predicate(self.points))

    def name_box_faces(self):
        """xmin ... zmax for a mesh of the unit cube."""
        near = lambda axis, at: lambda p: np.abs(p[:, axis] - at) < 1e-9
        names = [
            (f"{letter}{end}", axis, at) for axis, letter in enumerate("xyz") for end, at in (("min", 0), ("max", 1))
        ]
        self.name_faces(**{name: near(axis, at) for name, axis, at in names})

    def map(self, f):
        """Moves every node from (r, s, t) to f(r, s, t)."""
        self.points = np.stack(np.broadcast_arrays(*f(*self.points.T)), axis=1).astype(float)


def structured(kind, counts):
    """The unit cube cut into counts = (n_r, n_s, n_t) bricks of the wanted kind."""
    low = SECOND_ORDER.get(kind, kind)
    nr, ns, nt = counts
    axes = [np.linspace(0, 1, n + 1) for n in counts]
    points = np.array([(r, s, t) for t in axes[2] for s in axes[1] for r in axes[0]])
    number = lambda i, j, k: i + (nr + 1) * (j + (ns + 1) * k)
    cells = []
    for k in range(nt):
        for j in range(ns):
            for i in range(nr):
                corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
                brick = [number(i + a, j + b, k + c) for a, b, c in corners]
                cells.extend([brick[v] for v in part] for part in PARTS[low])
    mesh = Mesh(low, points, cells)
    if kind != low:
        mesh.elevate()
    return mesh


# How a brick is cut; the tetrahedra are Kuhn's six around the diagonal 0-6, so that neighbors fit.
PARTS = {
    "hex8": [range(8)],
    "wedge6": [(0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7)],
    "tet4": [(0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6), (0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6)],
}


def write_msh(mesh, path, element_set="solid"):
    """Writes binary .msh 4.1: the cells as physical volume, face sets as physical surfaces, node sets as physical points."""
    import gmsh

    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.option.setNumber("Mesh.Binary", 1)
    gmsh.model.addDiscreteEntity(3, 1)
    used = np.unique(mesh.cells)
    gmsh.model.mesh.addNodes(3, 1, used + 1, mesh.points[used].ravel())
    order = GMSH_ORDER.get(mesh.kind, range(mesh.cells.shape[1]))
    tags = np.arange(1, len(mesh.cells) + 1)
    gmsh.model.mesh.addElements(3, 1, [GMSH_TYPE[mesh.kind]], [tags], [(mesh.cells[:, order] + 1).ravel()])
    gmsh.model.addPhysicalGroup(3, [1], 1, element_set)
    next_tag = len(mesh.cells) + 1
    second = mesh.kind in SECOND_ORDER
    for surface, (name, faces) in enumerate(mesh.face_sets.items(), start=1):
        gmsh.model.addDiscreteEntity(2, surface)
        for corners in (3, 4):
            rows = [nodes for n, nodes in faces if n == corners]
            if rows:
                tags = np.arange(next_tag, next_tag + len(rows))
                next_tag += len(rows)
                kind = GMSH_TYPE[FACE_TYPE[corners, second]]
                gmsh.model.mesh.addElements(2, surface, [kind], [tags], [(np.array(rows) + 1).ravel()])
        gmsh.model.addPhysicalGroup(2, [surface], surface + 1, name)
    point = 0
    for group, (name, nodes) in enumerate(mesh.node_sets.items(), start=1):
        tags = np.arange(next_tag, next_tag + len(nodes))
        next_tag += len(nodes)
        points = []
        for tag, node in zip(tags, nodes):
            point += 1
            points.append(point)
            gmsh.model.addDiscreteEntity(0, point)
            gmsh.model.mesh.addElements(0, point, [15], [[tag]], [[node + 1]])
        gmsh.model.addPhysicalGroup(0, points, group, name)
    gmsh.write(str(path))
    gmsh.finalize()
