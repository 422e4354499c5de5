#!/usr/bin/env python3
"""Plays a result of several frames as a viewer does and prints time and largest displacement of each as JSON.

    python3 scripts/check_frames.py results.vtkhdf          with the `vtk` wheel
    pvpython scripts/check_frames.py results.hdf.series     with ParaView
"""

import json
import sys

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy


def largest(data):
    """Largest length of the displacement in all parts."""
    parts = [data]
    if hasattr(data, "NewIterator"):
        iterator = data.NewIterator()
        parts = []
        while not iterator.IsDoneWithTraversal():
            parts.append(iterator.GetCurrentDataObject())
            iterator.GoToNextItem()
    sizes = [0.0]
    for part in parts:
        array = part.GetPointData().GetArray("displacement") if part else None
        if array is not None and array.GetNumberOfTuples():
            sizes.append(float(numpy.linalg.norm(vtk_to_numpy(array), axis=1).max()))
    return max(sizes)


def play_with_paraview(path):
    """Frames as ParaView's own choice of reader gives them."""
    from paraview import servermanager, simple

    source = simple.OpenDataFile(path)
    if source is None:
        sys.exit(f"ParaView has no reader for {path}")
    source.UpdatePipelineInformation()
    times = list(source.TimestepValues)
    sizes = []
    for time in times:
        source.UpdatePipeline(time)
        sizes.append(largest(servermanager.Fetch(source)))
    # A reader still alive at the end of the program finds its HDF5 library closed.
    simple.Delete(source)
    return times, sizes


def play_with_vtk(path):
    """Frames as VTK's reader gives them."""
    from vtkmodules.vtkIOHDF import vtkHDFReader

    reader = vtkHDFReader()
    reader.SetFileName(path)
    reader.UpdateInformation()
    times, sizes = [], []
    for step in range(reader.GetNumberOfSteps()):
        reader.SetStep(step)
        reader.Update()
        times.append(reader.GetTimeValue())
        sizes.append(largest(reader.GetOutputDataObject(0)))
    return times, sizes


def main():
    path = sys.argv[1]
    try:
        import paraview  # noqa: F401

        play = play_with_paraview
    except ImportError:
        play = play_with_vtk
    times, sizes = play(path)
    print(json.dumps({"times": times, "largest": sizes}))


if __name__ == "__main__":
    main()
