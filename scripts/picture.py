#!/usr/bin/env python3
"""Draws a result: the deformed surface colored by a point field.

Usage: `python3 scripts/picture.py results/results.vtkhdf picture.png [--color von_mises] [--component 2] [--warp 100]
[--from x,y,z] [--label "von Mises stress, MPa"]` (needs scripts/requirements.txt, no display). Without --warp the largest
displacement is drawn as 8 % of the size of the model; `--from` is the direction the eye looks from.
"""

import argparse

import numpy as np
import vtk
from vtk.util import numpy_support

SIZE = (1400, 950)


def read(path):
    """The mesh with its fields, partitions merged into one grid without doubled points."""
    reader = vtk.vtkHDFReader()
    reader.SetFileName(path)
    reader.Update()
    output = reader.GetOutputDataObject(0)
    append = vtk.vtkAppendFilter()
    if output.IsA("vtkPartitionedDataSet"):
        for k in range(output.GetNumberOfPartitions()):
            append.AddInputData(output.GetPartition(k))
    else:
        append.AddInputData(output)
    merge = vtk.vtkStaticCleanUnstructuredGrid()
    merge.SetInputConnection(append.GetOutputPort())
    merge.Update()
    return merge.GetOutput()


def point_field(grid, name):
    array = grid.GetPointData().GetArray(name)
    if array is None:
        names = [grid.GetPointData().GetArrayName(i) for i in range(grid.GetPointData().GetNumberOfArrays())]
        raise SystemExit(f"no point field {name!r}; there are: {', '.join(names)}")
    return numpy_support.vtk_to_numpy(array)


def surface(grid, factor):
    """The deformed surface, curved faces cut finely enough to look curved."""
    warp = vtk.vtkWarpVector()
    warp.SetInputData(grid)
    warp.SetInputArrayToProcess(0, 0, 0, vtk.vtkDataObject.FIELD_ASSOCIATION_POINTS, "displacement")
    warp.SetScaleFactor(factor)
    skin = vtk.vtkDataSetSurfaceFilter()
    skin.SetInputConnection(warp.GetOutputPort())
    skin.SetNonlinearSubdivisionLevel(2)
    normals = vtk.vtkPolyDataNormals()
    normals.SetInputConnection(skin.GetOutputPort())
    normals.SetFeatureAngle(35)
    normals.Update()
    return normals.GetOutput()


def outline(grid, black):
    """Sharp edges of the undeformed body."""
    skin = vtk.vtkDataSetSurfaceFilter()
    skin.SetInputData(grid)
    edges = vtk.vtkFeatureEdges()
    edges.SetInputConnection(skin.GetOutputPort())
    edges.SetFeatureAngle(35)
    edges.ColoringOff()
    mapper = vtk.vtkPolyDataMapper()
    mapper.SetInputConnection(edges.GetOutputPort())
    actor = vtk.vtkActor()
    actor.SetMapper(mapper)
    actor.GetProperty().SetColor(*black)
    actor.GetProperty().SetOpacity(0.35)
    return actor


def color_table():
    """Blue, cyan, green, yellow, red, all of them light enough to show the shape."""
    points = [(0.27, 0.36, 0.82), (0.20, 0.72, 0.92), (0.42, 0.93, 0.47), (0.97, 0.83, 0.25), (0.86, 0.24, 0.08)]
    function = vtk.vtkColorTransferFunction()
    for k, color in enumerate(points):
        function.AddRGBPoint(k / (len(points) - 1), *color)
    table = vtk.vtkLookupTable()
    table.SetNumberOfTableValues(256)
    for k in range(256):
        table.SetTableValue(k, *function.GetColor(k / 255), 1)
    return table


def legend(table, label):
    bar = vtk.vtkScalarBarActor()
    bar.SetLookupTable(table)
    bar.SetTitle(label + "\n ")
    bar.SetNumberOfLabels(5)
    # VTK 9.6 went over from printf's formats to std::format's.
    version = (vtk.vtkVersion.GetVTKMajorVersion(), vtk.vtkVersion.GetVTKMinorVersion())
    bar.SetLabelFormat("{:.3g}" if version >= (9, 6) else "%.3g")
    bar.UnconstrainedFontSizeOn()
    for text, size in ((bar.GetTitleTextProperty(), 22), (bar.GetLabelTextProperty(), 20)):
        text.SetColor(0.1, 0.1, 0.1)
        text.SetFontSize(size)
        text.BoldOff()
        text.ItalicOff()
        text.ShadowOff()
    bar.SetPosition(0.85, 0.15)
    bar.SetWidth(0.13)
    bar.SetHeight(0.7)
    return bar


def draw(arguments):
    grid = read(arguments.results)
    displacement = point_field(grid, "displacement")
    low, high = np.array(grid.GetBounds()).reshape(3, 2).T
    largest = np.linalg.norm(displacement, axis=1).max()
    factor = arguments.warp
    if factor is None:
        factor = 0.08 * np.linalg.norm(high - low) / largest if largest > 0 else 0
    values = point_field(grid, arguments.color)
    if values.ndim == 2:
        values = np.linalg.norm(values, axis=1) if arguments.component is None else values[:, arguments.component]
    shown = numpy_support.numpy_to_vtk(np.ascontiguousarray(values, dtype=float), deep=True)
    shown.SetName("shown")
    grid.GetPointData().AddArray(shown)

    table = color_table()
    mapper = vtk.vtkPolyDataMapper()
    mapper.SetInputData(surface(grid, factor))
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("shown")
    mapper.SetLookupTable(table)
    mapper.SetScalarRange(values.min(), values.max())
    mapper.InterpolateScalarsBeforeMappingOn()
    body = vtk.vtkActor()
    body.SetMapper(mapper)
    body.GetProperty().SetAmbient(0.3)
    body.GetProperty().SetDiffuse(0.75)

    renderer = vtk.vtkRenderer()
    renderer.SetBackground(1, 1, 1)
    renderer.AddActor(body)
    renderer.AddActor(outline(grid, (0.1, 0.1, 0.1)))
    renderer.AddViewProp(legend(table, arguments.label or arguments.color))
    note = vtk.vtkTextActor()
    note.SetInput(f"displacements drawn {factor:.3g} times")
    note.GetTextProperty().SetColor(0.3, 0.3, 0.3)
    note.GetTextProperty().SetFontSize(20)
    note.SetPosition(20, 15)
    renderer.AddViewProp(note)
    camera = renderer.GetActiveCamera()
    direction = np.array(arguments.eye, dtype=float)
    camera.SetPosition(*direction)
    camera.SetFocalPoint(0, 0, 0)
    camera.SetViewUp(*((0, 1, 0) if abs(direction[2]) > 0.99 * np.linalg.norm(direction) else (0, 0, 1)))
    camera.ParallelProjectionOn()
    renderer.ResetCamera()
    camera.Zoom(1.05)
    # The legend stands on the right.
    camera.SetWindowCenter(0.1, 0)
    return renderer


def save(renderer, path):
    window = vtk.vtkRenderWindow()
    window.SetOffScreenRendering(True)
    window.SetSize(*SIZE)
    window.SetMultiSamples(8)
    window.AddRenderer(renderer)
    window.Render()
    grab = vtk.vtkWindowToImageFilter()
    grab.SetInput(window)
    writer = vtk.vtkPNGWriter()
    writer.SetFileName(path)
    writer.SetInputConnection(grab.GetOutputPort())
    writer.Write()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results")
    parser.add_argument("picture")
    parser.add_argument("--color", default="von_mises")
    parser.add_argument("--component", type=int)
    parser.add_argument("--warp", type=float)
    parser.add_argument("--label")
    parser.add_argument(
        "--from", dest="eye", default=(1.0, -1.2, 0.7), type=lambda text: [float(v) for v in text.split(",")]
    )
    arguments = parser.parse_args()
    save(draw(arguments), arguments.picture)


if __name__ == "__main__":
    main()
