#!/usr/bin/env python3
"""Makes a picture of a result file: the part warped by its displacement, colored by a field.

With Debian's ParaView, off screen (`-noreset`: without it the X server may end between two clients):
    xvfb-run -a -s "-screen 0 1280x1024x24 -noreset" pvbatch --force-offscreen-rendering \\
        scripts/render.py results/results.hdf.series picture.png
With the `vtk` wheel:
    python3 scripts/render.py results/results.vtkhdf picture.png

Options: --field von_mises (a vector or tensor is shown by its length), --warp FACTOR (default: the largest
displacement becomes 8 % of the size of the part; 0 for none), --view X,Y,Z (where the eye is, seen from the part),
--up X,Y,Z, --size WIDTHxHEIGHT, --title TEXT.
"""

import argparse
import json
import os
import sys

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy

# Size of the largest displacement in the picture, as a part of the part's diagonal.
SHOWN_DISPLACEMENT = 0.08
# Second-order cells are drawn with each face divided this many times.
SUBDIVISION = 2


def read(path):
    """All partitions as one unstructured grid, by the reader of ParaView or of VTK."""
    try:
        from paraview import servermanager, simple

        source = simple.OpenDataFile(path)
        source.UpdatePipeline()
        data = servermanager.Fetch(source)
    except ImportError:
        from vtkmodules.vtkIOHDF import vtkHDFReader

        if path.endswith(".series"):
            with open(path, encoding="utf-8") as series:
                path = os.path.join(os.path.dirname(path), json.load(series)["files"][0]["name"])
        reader = vtkHDFReader()
        reader.SetFileName(path)
        reader.Update()
        data = reader.GetOutputDataObject(0)
    if data.IsA("vtkUnstructuredGrid"):
        return data
    from vtkmodules.vtkFiltersCore import vtkAppendFilter

    append = vtkAppendFilter()
    for k in range(data.GetNumberOfPartitions()):
        if data.GetPartition(k).GetNumberOfCells() > 0:
            append.AddInputData(data.GetPartition(k))
    append.Update()
    return append.GetOutput()
