"""Images sampled at positions between pixels: GridGenerator, BilinearSampler, SpatialTransformer.

Positions run from -1 to 1 over the image; pixels outside it are zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, ignored, shape
from ..stages.definition import ByShape, Fixed, Variant, variant
from .arguments import arguments, of_data
from .texts import check_rank

IMAGES = "batch, channel, height, width"
AFFINE = (
    "lambda n, d=2, y={height}, x={width}: {matrix}[n, 3 * d] * (2 * x / ({width} - 1) - 1) "
    "+ {matrix}[n, 3 * d + 1] * (2 * y / ({height} - 1) - 1) + {matrix}[n, 3 * d + 2]"
)
"""A pixel's position under one affine map per image: `matrix` is [batch, 6]."""

WARP = (
    "lambda n, d=2, y, x: (data[n, d, y, x] + where(d == 0, x, y)) "
    "* 2 / where(d == 0, data.shape[3] - 1, data.shape[2] - 1) - 1"
)
"""A pixel's own position moved by a flow `[batch, 2, height, width]` in pixels."""

SAMPLE = """
    column = lambda n, y, x: ({grid}[n, 0, y, x] + 1) * (data.shape[3] - 1) / 2
    row = lambda n, y, x: ({grid}[n, 1, y, x] + 1) * (data.shape[2] - 1) / 2
    return lambda n, c, y, x: Sum(lambda a=2, b=2:
        pad(data[n, c, floor(row[n, y, x]) + a, floor(column[n, y, x]) + b], 0)
        * where(a == 0, 1 - (row[n, y, x] - floor(row[n, y, x])), row[n, y, x] - floor(row[n, y, x]))
        * where(b == 0, 1 - (column[n, y, x] - floor(column[n, y, x])),
            column[n, y, x] - floor(column[n, y, x])))
"""
"""The mean of the four pixels around a position, weighted by how close they are."""


def _affine(name: str, matrix: str, target: tuple[int, ...]) -> str:
    if len(target) != 2 or min(target) < 2:
        raise OperatorError(f"{name}: target_shape={target} must be (height, width), each at least 2")
    return AFFINE.format(matrix=matrix, height=target[0], width=target[1])


def _grid(attributes: Attributes) -> Variant:
    if attributes.text("transform_type") == "warp":
        return variant(f"def GridGenerator(data):\n    return {WARP}")
    grid = _affine("GridGenerator", "data", attributes.shape("target_shape"))
    return variant(f"def GridGenerator(data):\n    return {grid}")


def _grid_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None:
        return {}
    if attributes.text("transform_type") == "affine":
        check_rank("GridGenerator", "data", len(data), "batch, 6")
        return {"data": (data[0], 6)}
    check_rank("GridGenerator", "data", len(data), "batch, 2, height, width")
    return {"data": (data[0], 2, *data[2:])}


def _transformer(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data, target = shapes["data"], attributes.shape("target_shape")
    check_rank("SpatialTransformer", "data", len(data), IMAGES)
    if len(target) == 2:
        target = tuple(t or extent for t, extent in zip(target, data[2:], strict=True))
    grid = _affine("SpatialTransformer", "loc", target)
    return variant(f"def SpatialTransformer(data, loc):\n    grid = {grid}{SAMPLE.format(grid='grid')}")


def _transformer_hints(
    attributes: Attributes, shapes: Mapping[str, PartialShape]
) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None:
        return {}
    check_rank("SpatialTransformer", "data", len(data), IMAGES)
    return {"loc": (data[0], 6)}


OPERATORS = (
    Operator(
        name="GridGenerator",
        definition=Fixed(_grid),
        argument_names=arguments("data"),
        specs=(choice("transform_type", "affine", "warp"), shape("target_shape", (0, 0))),
        hints=_grid_hints,
        example=Example({"data": (2, 6)}, {"transform_type": "affine", "target_shape": (3, 4)}),
    ),
    Operator(
        name="BilinearSampler",
        definition=Fixed(
            lambda attributes: variant(f"def BilinearSampler(data, grid):{SAMPLE.format(grid='grid')}")
        ),
        argument_names=arguments("data", "grid"),
        specs=(ignored("cudnn_off"),),
        example=Example({"data": (2, 2, 4, 4), "grid": (2, 2, 3, 3)}),
    ),
    Operator(
        name="SpatialTransformer",
        definition=ByShape(_transformer, of_data),
        argument_names=arguments("data", "loc"),
        specs=(
            shape("target_shape", (0, 0)),
            choice("transform_type", "affine"),
            choice("sampler_type", "bilinear"),
            ignored("cudnn_off"),
        ),
        hints=_transformer_hints,
        example=Example(
            {"data": (2, 2, 4, 4), "loc": (2, 6)},
            {"target_shape": (3, 3), "transform_type": "affine", "sampler_type": "bilinear"},
        ),
    ),
)
