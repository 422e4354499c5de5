#!/usr/bin/env python3
"""Solves a case with CalculiX on the same mesh and prints its probes beside the expected values.

Usage: `python3 scripts/calculix_reference.py CASE.toml ... [--set mesh.box.cells=[80,8,8]]` (needs `ccx` and
scripts/requirements-meshes.txt). Tractions, pressures and forces are turned into consistent nodal forces here, so that
the two programs share nothing but the mesh and the case file. CalculiX prints 6 to 7 digits, and so does this script.
Stresses are CalculiX's nodal ones, averaged over all elements of a node, also over an interface of materials.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import gmsh
import numpy as np

import meshing

CCX_TYPE = {4: "C3D4", 5: "C3D8", 6: "C3D6", 11: "C3D10", 17: "C3D20"}
# Place of our (VTK's, and Abaqus's) k-th node in Gmsh's order.
TO_VTK = {
    meshing.GMSH_TYPE[kind]: np.argsort(meshing.GMSH_ORDER.get(kind, range(count)))
    for kind, count in (("tet4", 4), ("hex8", 8), ("wedge6", 6), ("tet10", 10), ("hex20", 20))
}


class Model:
    """The case and its mesh, sets as sets of node tags."""

    def __init__(self, path, overrides):
        self.path = pathlib.Path(path)
        self.case = tomllib.loads(self.path.read_text())
        for override in overrides:
            key, text = override.split("=", 1)
            table = self.case
            *parents, last = key.split(".")
            for parent in parents:
                table = table[parent]
            table[last] = tomllib.loads(f"v = {text}")["v"]
        self.open_mesh()
        self.read_mesh()
        self.read_sets()

    def open_mesh(self):
        entry = self.case["mesh"]
        if "file" in entry:
            gmsh.open(str(self.path.parent / entry["file"]))
            return
        box = entry["box"]
        mesh = meshing.structured(box.get("element", "hex8"), box["cells"])
        mesh.name_box_faces()
        size, origin = np.array(box["size"]), np.array(box.get("origin", [0, 0, 0]))
        mesh.points = origin + mesh.points * size
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "box.msh"
            # write_msh closes Gmsh's session.
            gmsh.finalize()
            meshing.write_msh(mesh, file, "all")
            gmsh.initialize()
            gmsh.option.setNumber("General.Terminal", 0)
            gmsh.open(str(file))

    def read_mesh(self):
        tags, points, _ = gmsh.model.mesh.getNodes()
        self.points = dict(zip(tags.tolist(), points.reshape(-1, 3)))
        types, tags, nodes = gmsh.model.mesh.getElements(3)
        self.cells = {}
        for kind, cell_tags, cell_nodes in zip(types, tags, nodes):
            rows = cell_nodes.reshape(len(cell_tags), -1)[:, TO_VTK[kind]]
            self.cells.update({tag: (kind, row) for tag, row in zip(cell_tags.tolist(), rows.tolist())})

    def read_sets(self):
        self.nodes, self.elements, self.faces = {}, {"all": list(self.cells)}, {}
        for dim, group in gmsh.model.getPhysicalGroups():
            name = gmsh.model.getPhysicalName(dim, group)
            self.nodes[name] = set(gmsh.model.mesh.getNodesForPhysicalGroup(dim, group)[0].tolist())
            for entity in gmsh.model.getEntitiesForPhysicalGroup(dim, group):
                types, tags, nodes = gmsh.model.mesh.getElements(dim, entity)
                for kind, element_tags, element_nodes in zip(types, tags, nodes):
                    if dim == 3:
                        self.elements.setdefault(name, []).extend(element_tags.tolist())
                    if dim == 2:
                        rows = element_nodes.reshape(len(element_tags), -1).tolist()
                        self.faces.setdefault(name, []).extend(rows)
        for entry in self.case.get("set", []):
            ((kind, bounds),) = [(k, v) for k, v in entry.items() if k != "name"]
            low = np.array(bounds.get("min", [-np.inf] * 3)) - 1e-9
            high = np.array(bounds.get("max", [np.inf] * 3)) + 1e-9
            inside = {tag for tag, p in self.points.items() if np.all(p >= low) and np.all(p <= high)}
            if kind == "nodes_in_box":
                self.nodes[entry["name"]] = inside
            elif kind == "elements_in_box":
                chosen = [tag for tag, (_, row) in self.cells.items() if set(row) <= inside]
                self.elements[entry["name"]] = chosen
                self.nodes[entry["name"]] = {node for tag in chosen for node in self.cells[tag][1]}
            else:
                raise ValueError(f"{kind}: not supported here")


def face_shape(count, xi, eta):
    """Shape functions of a facet and their derivatives; corners first, then the middles of edges 01, 12, ..."""
    if count in (3, 6):
        bary = np.array([1 - xi - eta, xi, eta])
        grad = np.array([[-1, -1], [1, 0], [0, 1]], dtype=float)
        if count == 3:
            return bary, grad
        n = [b * (2 * b - 1) for b in bary] + [4 * bary[i] * bary[(i + 1) % 3] for i in range(3)]
        d = [(4 * bary[i] - 1) * grad[i] for i in range(3)]
        d += [4 * (bary[i] * grad[(i + 1) % 3] + bary[(i + 1) % 3] * grad[i]) for i in range(3)]
        return np.array(n), np.array(d)
    signs = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    n, d = [], []
    for a, b in signs:
        if count == 4:
            n.append((1 + a * xi) * (1 + b * eta) / 4)
            d.append((a * (1 + b * eta) / 4, b * (1 + a * xi) / 4))
        else:
            n.append((1 + a * xi) * (1 + b * eta) * (a * xi + b * eta - 1) / 4)
            d.append((a * (1 + b * eta) * (2 * a * xi + b * eta) / 4, b * (1 + a * xi) * (a * xi + 2 * b * eta) / 4))
    if count == 8:
        for a, b in [(0, -1), (1, 0), (0, 1), (-1, 0)]:
            if a == 0:
                n.append((1 - xi * xi) * (1 + b * eta) / 2)
                d.append((-xi * (1 + b * eta), b * (1 - xi * xi) / 2))
            else:
                n.append((1 + a * xi) * (1 - eta * eta) / 2)
                d.append((a * (1 - eta * eta) / 2, -eta * (1 + a * xi)))
    return np.array(n), np.array(d)


def facet_rule(count):
    """Points and weights: 4 x 4 Gauss on quadrilaterals, the same collapsed on triangles."""
    x, w = np.polynomial.legendre.leggauss(4)
    for (a, wa), (b, wb) in itertools.product(zip(x, w), repeat=2):
        if count in (4, 8):
            yield a, b, wa * wb
        else:
            r, s = (1 + a) / 2, (1 + b) / 2
            yield r, s * (1 - r), wa * wb / 4 * (1 - r)


def surface_forces(model, name, traction, pressure):
    """Consistent nodal forces and the area of a face set."""
    forces, area = {}, 0.0
    inside = interior_points(model)
    for row in model.faces[name]:
        points = np.array([model.points[node] for node in row])
        outward = np.mean(points, axis=0) - inside[frozenset(row)]
        for xi, eta, weight in facet_rule(len(row)):
            n, d = face_shape(len(row), xi, eta)
            a, b = d.T @ points
            normal = np.cross(a, b)
            normal *= np.sign(normal @ outward) * weight
            density = traction * np.linalg.norm(normal) - pressure * normal
            area += np.linalg.norm(normal)
            for node, value in zip(row, n):
                forces[node] = forces.get(node, 0) + value * density
    return forces, area


def interior_points(model):
    """Center of the cell behind each boundary face, by the face's nodes."""
    if not hasattr(model, "_interior"):
        wanted = {frozenset(row) for rows in model.faces.values() for row in rows}
        corners_wanted = {}
        for nodes in wanted:
            corners_wanted.setdefault(min(nodes), []).append(nodes)
        model._interior = {}
        for _, row in model.cells.values():
            have = set(row)
            for node in row:
                for nodes in corners_wanted.get(node, ()):
                    if nodes <= have:
                        model._interior[nodes] = np.mean([model.points[n] for n in row], axis=0)
    return model._interior


def deck(model):
    """The CalculiX input."""
    out = ["*NODE, NSET=Nall"]
    used = {node for _, row in model.cells.values() for node in row}
    out += [f"{tag}, " + ", ".join(short(v) for v in model.points[tag]) for tag in sorted(used)]
    for kind in sorted({kind for kind, _ in model.cells.values()}):
        out.append(f"*ELEMENT, TYPE={CCX_TYPE[kind]}, ELSET=Eall")
        for tag, (this, row) in model.cells.items():
            if this == kind:
                items = [str(v) for v in [tag] + row]
                out += [
                    ", ".join(items[i : i + 15]) + ("," if i + 15 < len(items) else "")
                    for i in range(0, len(items), 15)
                ]
    loads, forces, density = [], {}, {}
    for entry in model.case.get("load", []):
        add_load(model, entry, loads, forces, density)
    heat = sum(e.get("temperature_change", 0) for e in model.case.get("load", []))
    for material in model.case["material"]:
        sets = material.get("elements", "all")
        for name in [sets] if isinstance(sets, str) else sets:
            out += [f"*ELSET, ELSET=E{name}"] + [f"{tag}," for tag in model.elements[name]]
            out += [f"*SOLID SECTION, ELSET=E{name}, MATERIAL={material['name']}"]
        out += [f"*MATERIAL, NAME={material['name']}", "*ELASTIC", f"{material['young']}, {material['poisson']}"]
        out += ["*DENSITY", str(density.get("forced", material.get("density", 1.0)))]
        out += ["*EXPANSION", str(material.get("expansion", 0.0))]
    out += ["*BOUNDARY"]
    fixed = {}
    for entry in model.case["constraint"]:
        for name in [entry["on"]] if isinstance(entry["on"], str) else entry["on"]:
            for k, value in enumerate(entry["displacement"], start=1):
                if value != "free":
                    fixed.update({(node, k): value for node in model.nodes[name]})
    values = {key: value for key, value in fixed.items() if value != 0}
    out += [f"{node}, {k}" for node, k in sorted(fixed)]
    if heat:
        out += ["*INITIAL CONDITIONS, TYPE=TEMPERATURE", "Nall, 0."]
    out += ["*STEP", "*STATIC"] + loads
    if heat:
        out += ["*TEMPERATURE", f"Nall, {heat}"]
    if values:
        out += ["*BOUNDARY"] + [f"{node}, {k}, {k}, {value}" for (node, k), value in values.items()]
    if forces:
        out.append("*CLOAD")
        out += [f"{node}, {k + 1}, {short(v)}" for node, f in sorted(forces.items()) for k, v in enumerate(f) if v != 0]
    out += ["*NODE PRINT, NSET=Nall", "U", "*NODE FILE", "U", "*EL FILE", "S", "*END STEP"]
    return "\n".join(out) + "\n"


def add_load(model, entry, loads, forces, density):
    """Adds a load: to `loads` as cards, or to the nodal `forces`."""
    names = [entry["on"]] if isinstance(entry["on"], str) else entry["on"]
    for name in names:
        if "body_force" in entry or "gravity" in entry:
            vector = np.array(entry.get("body_force", entry.get("gravity")), dtype=float)
            if "body_force" in entry:
                # CalculiX knows no force per volume: it is gravity on a density of one.
                density["forced"] = 1.0
            size = np.linalg.norm(vector)
            loads += ["*DLOAD", f"Eall, GRAV, {size}, " + ", ".join(str(v) for v in vector / size)]
        elif "centrifugal" in entry:
            spin = entry["centrifugal"]
            line = [spin["omega"] ** 2] + list(spin["origin"]) + list(spin["axis"])
            loads += ["*DLOAD", "Eall, CENTRIF, " + ", ".join(str(float(v)) for v in line)]
        elif "temperature_change" not in entry:
            add_surface_load(model, entry, name, forces)


def add_surface_load(model, entry, name, forces):
    zero = np.zeros(3)
    if "force" in entry:
        shares, area = surface_forces(model, name, np.array(entry["force"], dtype=float), 0)
        shares = {node: value / area for node, value in shares.items()}
    else:
        traction = np.array(entry.get("traction", zero), dtype=float)
        shares, _ = surface_forces(model, name, traction, entry.get("pressure", 0))
    for node, value in shares.items():
        forces[node] = forces.get(node, zero) + value


def short(value):
    """A real in at most 20 characters, all that CalculiX reads."""
    return f"{float(value):.12e}" if value else "0."


def run(text):
    """Runs CalculiX; displacements and stresses (xx yy zz xy yz zx) by node tag."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "case.inp").write_text(text)
        environment = dict(os.environ, OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"))
        log = subprocess.run(["ccx", "case"], cwd=folder, capture_output=True, text=True, env=environment).stdout
        if "Job finished" not in log:
            sys.exit(log[-3000:])
        dat = (pathlib.Path(folder) / "case.dat").read_text()
        frd = (pathlib.Path(folder) / "case.frd").read_text()
    displacement = {}
    for line in dat.splitlines():
        words = line.split()
        if len(words) == 4 and words[0].isdigit():
            displacement[int(words[0])] = np.array([float(w) for w in words[1:]])
    stress, inside = {}, False
    for line in frd.splitlines():
        if line.startswith(" -4"):
            inside = "STRESS" in line
        elif inside and line.startswith(" -1"):
            values = [float(v) for v in re.findall(r".{12}", line[13:])]
            stress[int(line[3:13])] = np.array(values)
    return displacement, stress


def derived(field, displacement, stress):
    if field == "displacement":
        return displacement
    if field == "stress":
        return stress
    if field == "von_mises":
        return {
            n: np.sqrt(max(0, ((s[0] - s[1]) ** 2 + (s[1] - s[2]) ** 2 + (s[2] - s[0]) ** 2) / 2 + 3 * (s[3:] @ s[3:])))
            for n, s in stress.items()
        }
    return None


def value_at(model, probe, field):
    """Mean over a node set, the value at a node, or interpolated inside an element."""
    if "set" in probe:
        return np.mean([field[node] for node in model.nodes[probe["set"]]], axis=0)
    at = np.array(probe["at"], dtype=float)
    nearest = min(model.points, key=lambda tag: np.linalg.norm(model.points[tag] - at))
    if np.linalg.norm(model.points[nearest] - at) < 1e-6 * np.linalg.norm(np.ptp(list(model.points.values()), axis=0)):
        return field[nearest]
    _, kind, nodes, u, v, w = gmsh.model.mesh.getElementByCoordinates(*at, 3)
    _, shape, _ = gmsh.model.mesh.getBasisFunctions(kind, [u, v, w], "Lagrange")
    return sum(n * field[int(tag)] for n, tag in zip(shape, nodes))


def main():
    arguments, overrides = sys.argv[1:], []
    while "--set" in arguments:
        k = arguments.index("--set")
        overrides.append(arguments[k + 1])
        del arguments[k : k + 2]
    for path in arguments:
        gmsh.initialize()
        gmsh.option.setNumber("General.Terminal", 0)
        model = Model(path, overrides)
        print(f"{path}: {len(model.points)} nodes, {len(model.cells)} elements")
        displacement, stress = run(deck(model))
        print(f"  max |u| = {max(np.linalg.norm(u) for u in displacement.values()):.6e}")
        for probe in model.case.get("probe", []):
            field = derived(probe["field"], displacement, stress)
            if field is None:
                continue
            value = value_at(model, probe, field)
            print(f"  {probe['name']}: {np.array2string(np.atleast_1d(value), precision=7)}")
            for check in model.case.get("check", []):
                if check["probe"] == probe["name"]:
                    got = np.atleast_1d(value)[check.get("component", 0)]
                    error = abs(got - check["expected"]) / (abs(check["expected"]) or 1)
                    verdict = "ok" if error <= check["tolerance"] else "OFF"
                    print(
                        f"    [{check.get('component', 0)}] {got:.7g}, expected {check['expected']:.7g}: "
                        f"{error:.1e} of {check['tolerance']:.0e} {verdict}"
                    )
        gmsh.finalize()


if __name__ == "__main__":
    main()
