#!/usr/bin/env python3
"""Makes a picture of a result file: the part warped by its displacement, colored by a field.

With Debian's ParaView, off screen (`-noreset`: without it the X server may end between two clients):
    xvfb-run -a -s "-screen 0 1280x1024x24 -noreset" pvbatch --force-offscreen-rendering \
        scripts/render.py results/results.hdf.series picture.png
With the `vtk` wheel:
    python3 scripts/render.py results/results.vtkhdf picture.png

The edges of the part as it was before loading are drawn in gray.
"""

import argparse
import json
import os
import sys
import warnings

try:
    import numpy
    from vtkmodules.util.numpy_support import vtk_to_numpy
except ImportError as error:
    sys.exit(f"render.py: {error.name} is missing; run it with .venv/bin/python (see `make setup-test`) or with pvbatch")

warnings.filterwarnings("ignore", category=DeprecationWarning)

# Size of the largest displacement in the picture, as a part of the diagonal of the bounding box.
SHOWN_DISPLACEMENT = 0.08
# How often each face of a second-order cell is divided.
SUBDIVISION = 2
# Parts of the picture: filled by the part, and given to the legend on the right.
FILLED, LEGEND = 0.86, 0.12
# Light from all sides and from the eye: faces turned away keep their color readable.
AMBIENT, DIFFUSE = 0.35, 0.7
# Blue to red over light gray: position, red, green, blue.
COLORS = [
    (0.0, 0.17, 0.25, 0.65),
    (0.25, 0.36, 0.63, 0.80),
    (0.5, 0.88, 0.88, 0.82),
    (0.75, 0.93, 0.58, 0.35),
    (1.0, 0.70, 0.09, 0.13),
]
# Lengths that differ by less than this part are the same but for rounding.
CONSTANT = 1e-9
DARK = (0.1, 0.1, 0.1)
GRAY = (0.55, 0.55, 0.55)


def length_range(array):
    """Smallest and largest length of the rows; of a scalar, smallest and largest value."""
    values = vtk_to_numpy(array)
    if values.ndim > 1:
        values = numpy.linalg.norm(values, axis=1)
    return float(values.min()), float(values.max())


def color_range(array):
    """The range of colors: that of the lengths, but a field that is constant but for rounding is shown as one color."""
    low, high = length_range(array)
    if high - low <= CONSTANT * high:
        return 0.0, 2.0 * high if high > 0.0 else 1.0
    return low, high


def warp_factor(data, wanted):
    """The factor asked for, else one that makes the displacement visible."""
    if wanted is not None:
        return wanted
    largest = length_range(data.GetPointData().GetArray("displacement"))[1]
    return SHOWN_DISPLACEMENT * data.GetLength() / largest if largest > 0.0 else 0.0


class Frame:
    """A camera with parallel projection that shows the part before and after loading, left of the legend."""

    def __init__(self, data, factor, arguments):
        points = vtk_to_numpy(data.GetPoints().GetData())
        if factor:
            displacement = vtk_to_numpy(data.GetPointData().GetArray("displacement"))
            points = numpy.vstack([points, points + factor * displacement])
        back = numpy.array(arguments.view) / numpy.linalg.norm(arguments.view)
        right = numpy.cross(arguments.up, back)
        right /= numpy.linalg.norm(right)
        axes = numpy.array([right, numpy.cross(back, right), back])
        shown = points @ axes.T
        low, high = shown.min(axis=0), shown.max(axis=0)
        aspect = arguments.size[0] / arguments.size[1]
        width, height, depth = high - low
        self.scale = max(height / 2 / FILLED, width / 2 / aspect / (FILLED - LEGEND)) / arguments.zoom
        middle = (low + high) / 2 + numpy.array([LEGEND * self.scale * aspect, 0.0, 0.0])
        self.focus = (middle @ axes).tolist()
        self.position = ((middle + numpy.array([0.0, 0.0, depth + self.scale])) @ axes).tolist()


def check_fields(data, arguments):
    """Ends with a message if the file lacks what the picture shows."""
    for name in ("displacement", arguments.field):
        if data.GetPointData().GetArray(name) is None:
            sys.exit(f"render.py: {arguments.file} has no point field {name}")


def caption(arguments, factor):
    """Title of the picture and the scale of the displacement."""
    scale = f"displacement x {factor:.3g}" if factor else "not deformed"
    return f"{arguments.title}   ({scale})" if arguments.title else scale


def render_with_paraview(arguments):
    """The picture as ParaView makes it, from the reader it chooses itself."""
    from paraview import servermanager, simple

    source = simple.OpenDataFile(arguments.file)
    if source is None:
        sys.exit(f"render.py: ParaView does not open {arguments.file}; 5.11 and older open results.hdf.series")
    source.UpdatePipeline()
    data = servermanager.Fetch(source)
    check_fields(data, arguments)
    factor = warp_factor(data, arguments.warp)
    view = simple.CreateView("RenderView")
    view.UseColorPaletteForBackground = 0
    view.Background = (1.0, 1.0, 1.0)
    view.OrientationAxesLabelColor = DARK
    view.ViewSize = arguments.size

    warp = simple.WarpByVector(Input=source, Vectors=["POINTS", "displacement"], ScaleFactor=factor)
    part = simple.Show(warp, view)
    part.NonlinearSubdivisionLevel = SUBDIVISION
    part.Ambient, part.Diffuse = AMBIENT, DIFFUSE
    simple.ColorBy(part, ("POINTS", arguments.field))
    table = simple.GetColorTransferFunction(arguments.field)
    table.RGBPoints = [value for color in COLORS for value in color]
    table.ColorSpace = "Lab"
    table.RescaleTransferFunction(*color_range(data.GetPointData().GetArray(arguments.field)))
    bar = simple.GetScalarBar(table, view)
    bar.Title, bar.ComponentTitle = arguments.field, ""
    bar.TitleColor = bar.LabelColor = DARK
    bar.WindowLocation, bar.Position, bar.ScalarBarLength = "Any Location", (0.9, 0.25), 0.5
    part.SetScalarBarVisibility(view, True)

    # Partitions share no points: without merging, their borders would be edges.
    before = simple.FeatureEdges(Input=simple.ExtractSurface(Input=simple.CleantoGrid(Input=source)))
    edges = simple.Show(before, view)
    edges.ColorArrayName = ["POINTS", ""]
    edges.AmbientColor = edges.DiffuseColor = GRAY
    text = simple.Show(simple.Text(Text=caption(arguments, factor)), view)
    text.Color, text.FontSize, text.WindowLocation = DARK, 16, "Upper Center"

    frame = Frame(data, factor, arguments)
    view.CameraParallelProjection = 1
    view.CameraFocalPoint, view.CameraPosition = frame.focus, frame.position
    view.CameraViewUp, view.CameraParallelScale = arguments.up, frame.scale
    simple.SaveScreenshot(arguments.picture, view, ImageResolution=arguments.size)


def read_with_vtk(path):
    """All partitions as one unstructured grid."""
    from vtkmodules.vtkFiltersCore import vtkAppendFilter
    from vtkmodules.vtkIOHDF import vtkHDFReader

    if path.endswith(".series"):
        try:
            with open(path, encoding="utf-8") as series:
                path = os.path.join(os.path.dirname(path), json.load(series)["files"][0]["name"])
        except (ValueError, KeyError, IndexError):
            sys.exit(f"render.py: {path} is not a series file")
        if not os.path.isfile(path):
            sys.exit(f"render.py: there is no file {path}")
    reader = vtkHDFReader()
    if not reader.CanReadFile(path):
        sys.exit(f"render.py: {path} is not a VTKHDF file")
    reader.SetFileName(path)
    reader.Update()
    data = reader.GetOutputDataObject(0)
    if data.IsA("vtkUnstructuredGrid"):
        return data
    append = vtkAppendFilter()
    for k in range(data.GetNumberOfPartitions()):
        if data.GetPartition(k).GetNumberOfCells() > 0:
            append.AddInputData(data.GetPartition(k))
    append.Update()
    return append.GetOutput()


def color_bar(table, title):
    """The legend."""
    from vtkmodules.vtkRenderingAnnotation import vtkScalarBarActor

    bar = vtkScalarBarActor()
    bar.SetLookupTable(table)
    bar.SetTitle(title)
    bar.SetNumberOfLabels(5)
    bar.SetPosition(0.88, 0.2)
    bar.SetVerticalTitleSeparation(12)
    bar.SetWidth(0.09)
    bar.SetHeight(0.6)
    bar.UnconstrainedFontSizeOn()
    for property_, size in ((bar.GetTitleTextProperty(), 18), (bar.GetLabelTextProperty(), 15)):
        property_.SetColor(DARK)
        property_.SetFontSize(size)
        property_.ItalicOff()
        property_.BoldOff()
        property_.ShadowOff()
    return bar


def surface_actor(data, field, factor):
    """The deformed surface in colors, and its color table."""
    from vtkmodules.vtkFiltersGeneral import vtkWarpVector
    from vtkmodules.vtkFiltersGeometry import vtkDataSetSurfaceFilter
    from vtkmodules.vtkRenderingCore import vtkActor, vtkColorTransferFunction, vtkDataSetMapper

    array = data.GetPointData().GetArray(field)
    low, high = color_range(array)
    table = vtkColorTransferFunction()
    table.SetColorSpaceToLab()
    for position, *color in COLORS:
        table.AddRGBPoint(low + position * ((high - low) or 1.0), *color)
    if array.GetNumberOfComponents() > 1:
        table.SetVectorModeToMagnitude()
    warp = vtkWarpVector()
    warp.SetInputData(data)
    warp.SetInputArrayToProcess(0, 0, 0, 0, "displacement")
    warp.SetScaleFactor(factor)
    surface = vtkDataSetSurfaceFilter()
    surface.SetInputConnection(warp.GetOutputPort())
    surface.SetNonlinearSubdivisionLevel(SUBDIVISION)
    mapper = vtkDataSetMapper()
    mapper.SetInputConnection(surface.GetOutputPort())
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray(field)
    mapper.SetLookupTable(table)
    mapper.InterpolateScalarsBeforeMappingOn()
    actor = vtkActor()
    actor.SetMapper(mapper)
    actor.GetProperty().SetAmbient(AMBIENT)
    actor.GetProperty().SetDiffuse(DIFFUSE)
    return actor, table


def edge_actor(data):
    """The edges of the part before loading."""
    from vtkmodules.vtkFiltersCore import vtkFeatureEdges, vtkStaticCleanUnstructuredGrid
    from vtkmodules.vtkFiltersGeometry import vtkDataSetSurfaceFilter
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    # Partitions share no points: without merging, their borders would be edges.
    merged = vtkStaticCleanUnstructuredGrid()
    merged.SetInputData(data)
    surface = vtkDataSetSurfaceFilter()
    surface.SetInputConnection(merged.GetOutputPort())
    edges = vtkFeatureEdges()
    edges.SetInputConnection(surface.GetOutputPort())
    edges.ColoringOff()
    mapper = vtkPolyDataMapper()
    mapper.SetInputConnection(edges.GetOutputPort())
    mapper.ScalarVisibilityOff()
    actor = vtkActor()
    actor.SetMapper(mapper)
    actor.GetProperty().SetColor(GRAY)
    actor.GetProperty().LightingOff()
    return actor


def render_with_vtk(arguments):
    """The picture without ParaView."""
    import vtkmodules.vtkRenderingFreeType  # noqa: F401
    import vtkmodules.vtkRenderingOpenGL2  # noqa: F401
    from vtkmodules.vtkIOImage import vtkPNGWriter
    from vtkmodules.vtkRenderingCore import vtkRenderer, vtkRenderWindow, vtkTextActor, vtkWindowToImageFilter

    data = read_with_vtk(arguments.file)
    check_fields(data, arguments)
    factor = warp_factor(data, arguments.warp)
    actor, table = surface_actor(data, arguments.field, factor)
    text = vtkTextActor()
    text.SetInput(caption(arguments, factor))
    text.GetTextProperty().SetColor(DARK)
    text.GetTextProperty().SetFontSize(20)
    text.GetTextProperty().SetJustificationToCentered()
    text.SetPosition(arguments.size[0] // 2, arguments.size[1] - 40)
    renderer = vtkRenderer()
    renderer.SetBackground(1.0, 1.0, 1.0)
    for prop in (actor, edge_actor(data), color_bar(table, arguments.field), text):
        renderer.AddViewProp(prop)
    camera = renderer.GetActiveCamera()
    frame = Frame(data, factor, arguments)
    camera.ParallelProjectionOn()
    camera.SetFocalPoint(frame.focus)
    camera.SetPosition(frame.position)
    camera.SetViewUp(arguments.up)
    camera.SetParallelScale(frame.scale)
    renderer.ResetCameraClippingRange()
    window = vtkRenderWindow()
    window.SetOffScreenRendering(1)
    window.SetMultiSamples(8)
    window.SetSize(*arguments.size)
    window.AddRenderer(renderer)
    window.Render()
    image = vtkWindowToImageFilter()
    image.SetInput(window)
    image.SetInputBufferTypeToRGB()
    image.ReadFrontBufferOff()
    writer = vtkPNGWriter()
    writer.SetFileName(arguments.picture)
    writer.SetInputConnection(image.GetOutputPort())
    writer.Write()


def numbers(text):
    """Three numbers between commas."""
    values = [float(x) for x in text.split(",")]
    if len(values) != 3:
        raise argparse.ArgumentTypeError("three numbers between commas are expected")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="results.vtkhdf, or results.hdf.series for ParaView 5.11 and older")
    parser.add_argument("picture", help="PNG file to write")
    parser.add_argument("--field", default="von_mises", help="point field; of vectors and tensors the length is shown")
    parser.add_argument("--warp", type=float, help="factor of the displacement; default: what makes it visible")
    parser.add_argument("--view", type=numbers, default=[1.0, -1.6, 0.9], help="X,Y,Z: from the part to the eye")
    parser.add_argument("--up", type=numbers, default=[0.0, 0.0, 1.0], help="X,Y,Z: up in the picture")
    parser.add_argument("--zoom", type=float, default=1.0)
    parser.add_argument("--size", type=lambda s: [int(x) for x in s.split("x")], default=[1200, 800], metavar="WxH")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.file):
        sys.exit(f"render.py: there is no file {arguments.file}")
    folder = os.path.dirname(os.path.abspath(arguments.picture))
    if not os.path.isdir(folder):
        sys.exit(f"render.py: there is no directory {folder} for the picture")
    try:
        import paraview.servermanager  # noqa: F401
    except ImportError:
        render_with_vtk(arguments)
    else:
        render_with_paraview(arguments)


if __name__ == "__main__":
    main()
