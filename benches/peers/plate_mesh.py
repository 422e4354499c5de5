#!/usr/bin/env python3
"""Meshes the plate with two holes for benches/peers/run.py: second-order tetrahedra by Gmsh.

    python3 benches/peers/plate_mesh.py SIZE NAME

A plate 10 x 6 x 1 with through holes of radius 1 about (3, 3) and (7, 3), edges of length SIZE. Writes NAME.msh with the
groups `solid`, `held` (x = 0) and `loaded` (x = 10), and NAME.bin for programs without a reader: int32 number of nodes,
tetrahedra and loaded triangles; f64 coordinates; int32 nodes of each tetrahedron (10) and triangle (6) in Gmsh's order,
counted from 0. Needs Gmsh and numpy.
"""

import sys

import gmsh
import numpy as np

TET10, TRI6 = 11, 9


def build(size):
    """The meshed model; returns the faces at x = 10."""
    occ = gmsh.model.occ
    plate = occ.addBox(0, 0, 0, 10, 6, 1)
    holes = [occ.addCylinder(x, 3, 0, 0, 0, 1, 1) for x in (3, 7)]
    occ.cut([(3, plate)], [(3, hole) for hole in holes])
    occ.synchronize()
    held, loaded = [], []
    for _, face in gmsh.model.getEntities(2):
        bounds = gmsh.model.getBoundingBox(2, face)
        if bounds[0] > 9.99:
            loaded.append(face)
        if bounds[3] < 0.01:
            held.append(face)
    solids = [solid for _, solid in gmsh.model.getEntities(3)]
    for dim, entities, name in ((3, solids, "solid"), (2, held, "held"), (2, loaded, "loaded")):
        gmsh.model.setPhysicalName(dim, gmsh.model.addPhysicalGroup(dim, entities), name)
    for option, value in (("MeshSizeMax", size), ("MeshSizeMin", size), ("Algorithm3D", 1), ("RandomSeed", 1)):
        gmsh.option.setNumber(f"Mesh.{option}", value)
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.setOrder(2)
    return loaded


def write_plain(loaded, path):
    tags, coords, _ = gmsh.model.mesh.getNodes()
    _, tets = gmsh.model.mesh.getElementsByType(TET10)
    triangles = [gmsh.model.mesh.getElementsByType(TRI6, face)[1] for face in loaded]
    used = np.unique(tets)
    number = np.full(int(tags.max()) + 1, -1, dtype=np.int32)
    number[used] = np.arange(len(used))
    place = np.zeros(int(tags.max()) + 1, dtype=np.int64)
    place[tags] = np.arange(len(tags))
    tets, triangles = number[tets].reshape(-1, 10), number[np.concatenate(triangles)].reshape(-1, 6)
    with open(path, "wb") as file:
        np.array([len(used), len(tets), len(triangles)], dtype=np.int32).tofile(file)
        coords.reshape(-1, 3)[place[used]].astype(np.float64).tofile(file)
        tets.tofile(file)
        triangles.tofile(file)
    return len(used), len(tets)


def main():
    size, name = float(sys.argv[1]), sys.argv[2]
    gmsh.initialize()
    gmsh.option.setNumber("General.Verbosity", 2)
    gmsh.option.setNumber("Mesh.Binary", 1)
    loaded = build(size)
    gmsh.write(f"{name}.msh")
    nodes, tets = write_plain(loaded, f"{name}.bin")
    print(f"{nodes} nodes, {3 * nodes} degrees of freedom, {tets} tetrahedra")
    gmsh.finalize()


if __name__ == "__main__":
    main()
