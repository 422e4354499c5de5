#!/usr/bin/env python3
"""Opens a result file as a viewer does, checks it, and prints what it found as JSON.

    python3 scripts/check_vtkhdf.py results.vtkhdf          with the `vtk` wheel
    pvpython scripts/check_vtkhdf.py results.hdf.series     with ParaView (5.11 opens the series, newer ones both)

Options: --cells N, --points N and --volume V hold the totals against expected values, --require NAME:COMPONENTS
(repeatable) a field. Points on the border of two partitions count once in each. Ends with 1 if a check fails.
"""

import argparse
import json
import os
import sys
import warnings

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter

# VTK 9.6 renames methods that ParaView 5.11 knows by their old names only.
warnings.filterwarnings("ignore", category=DeprecationWarning)

# Edges in the order of their mid-nodes, by VTK's cell type number.
MID_NODES = {  # tet10, hex20, wedge15
    24: [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)],
    25: [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)],
    26: [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)],
}
# A mid-node may leave the middle of its chord by this part of the chord's length; on the wrong edge it is at least
# half a chord away.
MID_NODE_LIMIT = 0.3


def open_with_paraview(path):
    """The data as ParaView's own choice of reader gives it, with the name of the reader."""
    from paraview import servermanager, simple

    source = simple.OpenDataFile(path)
    if source is None:
        sys.exit(f"ParaView has no reader for {path}")
    source.UpdatePipeline()
    data = servermanager.Fetch(source)
    # A reader still alive at the end of the program finds its HDF5 library closed.
    simple.Delete(source)
    version = simple.GetParaViewVersion()
    return data, f"ParaView {version.major}.{version.minor}"


def open_with_vtk(path):
    """The data as VTK's reader gives it; a series stands for its first frame."""
    from vtkmodules.vtkCommonCore import vtkVersion
    from vtkmodules.vtkIOHDF import vtkHDFReader

    if path.endswith(".series"):
        with open(path, encoding="utf-8") as series:
            path = os.path.join(os.path.dirname(path), json.load(series)["files"][0]["name"])
    reader = vtkHDFReader()
    if not reader.CanReadFile(path):
        sys.exit(f"VTK cannot read {path}")
    reader.SetFileName(path)
    reader.Update()
    return reader.GetOutputDataObject(0), "VTK " + vtkVersion.GetVTKVersion()


def grids_of(data):
    """The unstructured grids of any kind of data set."""
    if data.IsA("vtkUnstructuredGrid"):
        return [data]
    if data.IsA("vtkPartitionedDataSet"):
        parts = [data.GetPartition(k) for k in range(data.GetNumberOfPartitions())]
    elif data.IsA("vtkPartitionedDataSetCollection"):
        parts = [data.GetPartitionedDataSet(k) for k in range(data.GetNumberOfPartitionedDataSets())]
    elif data.IsA("vtkMultiBlockDataSet"):
        parts = [data.GetBlock(k) for k in range(data.GetNumberOfBlocks())]
    else:
        sys.exit(f"unexpected kind of data: {data.GetClassName()}")
    return [grid for part in parts if part is not None for grid in grids_of(part)]


def volume_of(grid):
    """Sum of the absolute volumes of the cells."""
    sizes = vtkCellSizeFilter()
    sizes.SetInputData(grid)
    sizes.Update()
    return float(numpy.abs(vtk_to_numpy(sizes.GetOutput().GetCellData().GetArray("Volume"))).sum())


def mid_node_deviation(grid):
    """Largest distance of a mid-node from the middle of its edge, as a part of the edge's length."""
    points = vtk_to_numpy(grid.GetPoints().GetData())
    types = vtk_to_numpy(grid.GetCellTypesArray())
    connectivity = vtk_to_numpy(grid.GetCells().GetConnectivityArray())
    offsets = vtk_to_numpy(grid.GetCells().GetOffsetsArray())
    largest = 0.0
    for cell_type, edges in MID_NODES.items():
        starts = offsets[:-1][types == cell_type]
        n_corners = 1 + max(max(edge) for edge in edges)
        for k, (a, b) in enumerate(edges):
            ends = [points[connectivity[starts + corner]] for corner in (a, b)]
            middle = points[connectivity[starts + n_corners + k]]
            length = numpy.linalg.norm(ends[1] - ends[0], axis=1)
            deviation = numpy.linalg.norm(middle - (ends[0] + ends[1]) / 2, axis=1)
            if len(length):
                largest = max(largest, float((deviation / length).max()))
    return largest


def fields_of(grids, attributes):
    """Components and range of each field, over all grids."""
    fields = {}
    for grid in grids:
        arrays = attributes(grid)
        for k in range(arrays.GetNumberOfArrays()):
            array = arrays.GetArray(k)
            if array is None:
                continue
            values = vtk_to_numpy(array)
            field = fields.setdefault(
                array.GetName(), {"components": array.GetNumberOfComponents(), "min": None, "max": None, "finite": True}
            )
            if values.size:
                low, high = values.min().item(), values.max().item()
                field["min"] = low if field["min"] is None else min(field["min"], low)
                field["max"] = high if field["max"] is None else max(field["max"], high)
                field["finite"] = field["finite"] and bool(numpy.isfinite(values).all())
    return fields


def describe(grids):
    """What the grids hold."""
    grids = [grid for grid in grids if grid.GetNumberOfCells() > 0]
    types = numpy.concatenate([vtk_to_numpy(grid.GetCellTypesArray()) for grid in grids] or [numpy.zeros(0, int)])
    return {
        "partitions_with_cells": len(grids),
        "cells": int(sum(grid.GetNumberOfCells() for grid in grids)),
        "points": int(sum(grid.GetNumberOfPoints() for grid in grids)),
        "types": {str(t): int((types == t).sum()) for t in numpy.unique(types)},
        "volume": sum(volume_of(grid) for grid in grids),
        "mid_node_deviation": max([mid_node_deviation(grid) for grid in grids] or [0.0]),
        "point_fields": fields_of(grids, lambda grid: grid.GetPointData()),
        "cell_fields": fields_of(grids, lambda grid: grid.GetCellData()),
    }


def problems_of(found, arguments):
    """What is wrong, in words."""
    problems = []
    if found["cells"] == 0:
        problems.append("no cells")
    for name in ("cells", "points"):
        expected = getattr(arguments, name)
        if expected is not None and found[name] != expected:
            problems.append(f"{found[name]} {name}, expected {expected}")
    if arguments.volume is not None and abs(found["volume"] - arguments.volume) > 1e-6 * abs(arguments.volume):
        problems.append(f"volume {found['volume']}, expected {arguments.volume}")
    if found["mid_node_deviation"] > MID_NODE_LIMIT:
        problems.append(f"a mid-node is {found['mid_node_deviation']:.2f} edges away from its place")
    fields = {**found["cell_fields"], **found["point_fields"]}
    for required in arguments.require:
        name, _, components = required.partition(":")
        if name not in fields:
            problems.append(f"no field {name}")
        elif components and fields[name]["components"] != int(components):
            problems.append(f"{name} has {fields[name]['components']} components, expected {components}")
    problems += [f"{name} is not finite" for name, field in fields.items() if not field["finite"]]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--cells", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--volume", type=float)
    parser.add_argument("--require", action="append", default=[], metavar="NAME:COMPONENTS")
    arguments = parser.parse_args()
    try:
        import paraview.servermanager  # noqa: F401

        data, reader = open_with_paraview(arguments.file)
    except ImportError:
        data, reader = open_with_vtk(arguments.file)
    found = {"reader": reader, **describe(grids_of(data))}
    found["problems"] = problems_of(found, arguments)
    print(json.dumps(found, indent=2))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
