"""Drawings as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, assert_never

from ...errors import TofuError
from .marks import Area, Drawing, Label, Lines, Mark, Rectangle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIXELS_PER_INCH = 100
SCALE = 2
"""Pixels of the picture for one of the drawing."""

POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH


def png(drawing: Drawing) -> bytes:
    """Return the picture's file. Raises TofuError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TofuError(
            "PNG is drawn by matplotlib, which is not installed: pip install matplotlib, or name a .svg file"
        ) from None
    figure = Figure((drawing.width / PIXELS_PER_INCH, drawing.height / PIXELS_PER_INCH), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for mark in drawing.marks:
        _draw(axes, mark)
    file = BytesIO()
    metadata = {"Title": drawing.title, "Software": None}
    figure.savefig(file, format="png", dpi=PIXELS_PER_INCH * SCALE, metadata=metadata)
    return file.getvalue()


def _draw(axes: Axes, mark: Mark) -> None:
    match mark:
        case Rectangle(x, y, width, height, fill):
            from matplotlib.patches import Rectangle as Patch

            paint = {"facecolor": fill, "linewidth": 0} if fill else {"fill": False, "linewidth": 0.5}
            axes.add_patch(Patch((x, y), width, height, **paint))
        case Lines(lines, colour, width):
            from matplotlib.collections import LineCollection

            pairs = [((x1, y1), (x2, y2)) for x1, y1, x2, y2 in lines]
            axes.add_collection(
                LineCollection(pairs, colors=[colour], linewidths=width * POINTS_PER_PIXEL, capstyle="butt")
            )
        case Area(polygons, fill):
            from matplotlib.collections import PolyCollection

            axes.add_collection(PolyCollection(polygons, facecolors=[fill], linewidths=0))
        case Label(x, y, text, size, anchor, colour, bold):
            axes.text(
                x,
                y,
                text,
                size=size * POINTS_PER_PIXEL,
                color=colour or "black",
                ha={"start": "left", "middle": "center", "end": "right"}[anchor],
                va="center_baseline",
                weight="bold" if bold else "normal",
                parse_math=False,
            )
        case _:
            assert_never(mark)
