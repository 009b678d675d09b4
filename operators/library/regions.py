"""Operators on windows that data places or compares: ROIPooling, Correlation."""

from __future__ import annotations

from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, flag, integer, number, shape
from ..stages.definition import Fixed, Variant, variant
from .arguments import arguments

ROI_POOLING = """
def ROIPooling(data, rois, *, height, width, spatial_scale):
    corner = lambda r, k=4: sign(rois[r, k + 1]) * floor(abs(rois[r, k + 1] * spatial_scale) + 0.5)
    rows = lambda r: maximum(corner[r, 3] - corner[r, 1] + 1, 1)
    columns = lambda r: maximum(corner[r, 2] - corner[r, 0] + 1, 1)
    bands = lambda r, c, p=height, x: Max(lambda y: where(
        y >= corner[r, 1] + floor(p * rows[r] / height)
            and y < corner[r, 1] + ceil((p + 1) * rows[r] / height),
        data[rois[r, 0], c, y, x], -inf))
    cells = lambda r, c, p=height, q=width: Max(lambda x: where(
        x >= corner[r, 0] + floor(q * columns[r] / width)
            and x < corner[r, 0] + ceil((q + 1) * columns[r] / width),
        bands[r, c, p, x], -inf))
    return lambda r, c, p, q: where(cells[r, c, p, q] == -inf, 0, cells[r, c, p, q])
"""

CORRELATION = """
def Correlation(data1, data2, *, kernel_size, max_displacement, stride1, stride2, pad_size, radius, border):
    return (lambda n, d=(2 * radius + 1) ** 2,
        y=(data1.shape[2] + 2 * pad_size - 2 * border + stride1 - 1) // stride1,
        x=(data1.shape[3] + 2 * pad_size - 2 * border + stride1 - 1) // stride1:
        Sum(lambda c=data1.shape[1], u=kernel_size, v=kernel_size: {compared})
            / (kernel_size * kernel_size * data1.shape[1]))
"""

FIRST = "pad(data1[n, c, {row}, {column}], 0)"
SECOND = (
    "pad(data2[n, c, {row} + (d // (2 * radius + 1) - radius) * stride2, "
    "{column} + (d % (2 * radius + 1) - radius) * stride2], 0)"
)
PLACE = {
    "row": "y * stride1 + max_displacement + u - pad_size",
    "column": "x * stride1 + max_displacement + v - pad_size",
}


def _roi_pooling(attributes: Attributes) -> Variant:
    """Return maxima over a region's cells, first by row, then by column; an empty cell is zero."""
    size = attributes.shape("pooled_size")
    if len(size) != 2:
        raise OperatorError(f"ROIPooling: pooled_size={size} must be (height, width)")
    constants = {"height": size[0], "width": size[1], "spatial_scale": attributes.number("spatial_scale")}
    return variant(ROI_POOLING, constants)


def _correlation(attributes: Attributes) -> Variant:
    """Return a correlation. Channel `d` compares every place with the one at displacement `d`, row-major."""
    first, second = FIRST.format(**PLACE), SECOND.format(**PLACE)
    compared = f"{first} * {second}" if attributes.flag("is_multiply") else f"abs({first} - {second})"
    constants = {
        name: attributes.integer(name)
        for name in ("kernel_size", "max_displacement", "stride1", "stride2", "pad_size")
    }
    radius = constants["max_displacement"] // constants["stride2"]
    border = constants["max_displacement"] + (constants["kernel_size"] - 1) // 2
    return variant(CORRELATION.format(compared=compared), {**constants, "radius": radius, "border": border})


OPERATORS = (
    Operator(
        name="ROIPooling",
        definition=Fixed(_roi_pooling),
        argument_names=arguments("data", "rois"),
        specs=(shape("pooled_size"), number("spatial_scale")),
        example=Example(
            {"data": (2, 2, 5, 5), "rois": (3, 5)},
            {"pooled_size": (2, 2), "spatial_scale": 1.0},
            {"rois": (0, 2)},
        ),
    ),
    Operator(
        name="Correlation",
        definition=Fixed(_correlation),
        argument_names=arguments("data1", "data2"),
        specs=(
            integer("kernel_size", 1, least=1),
            integer("max_displacement", 1, least=0),
            integer("stride1", 1, least=1),
            integer("stride2", 1, least=1),
            integer("pad_size", 0),
            flag("is_multiply", True),
        ),
        example=Example({"data1": (1, 2, 5, 5), "data2": (1, 2, 5, 5)}, {"kernel_size": 1, "pad_size": 1}),
    ),
)
