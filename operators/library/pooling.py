"""Pooling: the maximum, sum or average over sliding windows or over all space."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.region import Shape
from ...errors import ShapeError
from ..attributes import Attributes, choice, flag, ignored, shape
from ..definition import ByShape, Variant, variant
from ..operator import Example, Operator
from ..shape_solver import PartialShape
from .arguments import arguments
from .convolution import per_dimension
from .texts import joined, names, product_of_extents


def _pooling(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return _over_space(attributes, shapes["data"]) if attributes.flag("global_pool") else _windows(attributes)


def _over_space(attributes: Attributes, data: Shape) -> Variant:
    axes = range(2, len(data))
    ones = joined([f"x{d}=1" for d in range(len(axes))])
    space = joined(names("k", len(axes)))
    reducer = "Max" if attributes.text("pool_type") == "max" else "Sum"
    average = f" / ({product_of_extents('data', axes)})" if attributes.text("pool_type") == "avg" else ""
    return variant(
        "def Pooling(data):\n"
        f"    return lambda n, c, {ones}: {reducer}(lambda {space}: data[n, c, {space}]){average}"
    )


def _windows(attributes: Attributes) -> Variant:
    """Averages divide by the window's part that lies in the tensor and its padding, as MXNet does."""
    kernel, padding = attributes.shape("kernel"), per_dimension("Pooling", attributes, "pad", 0)
    dimensions = range(len(kernel))
    full = attributes.text("pooling_convention") == "full"
    slack = " + stride[{d}] - 1" if full else ""
    extent = "(data.shape[{axis}] + 2 * padding[{d}] - kernel[{d}]" + slack + ") // stride[{d}] + 1"
    places = joined([f"x{d}={extent.format(d=d, axis=d + 2)}" for d in dimensions])
    taps = joined([f"k{d}=kernel[{d}]" for d in dimensions])
    element = f"data[n, c, {joined([f'x{d} * stride[{d}] + k{d} - padding[{d}]' for d in dimensions])}]"
    pooled = attributes.text("pool_type")
    if full or any(padding):
        element = f"pad({element}, {'-inf' if pooled == 'max' else 0})"
    body = f"{'Max' if pooled == 'max' else 'Sum'}(lambda {taps}: {element})"
    if pooled == "avg":
        body += f" / ({' * '.join(_window_size(d, full) for d in dimensions)})"
    return variant(
        f"def Pooling(data, *, kernel, stride, padding):\n    return lambda n, c, {places}: {body}",
        {"kernel": kernel, "stride": per_dimension("Pooling", attributes, "stride", 1), "padding": padding},
    )


def _window_size(d: int, full: bool) -> str:
    if not full:
        return f"kernel[{d}]"
    return f"minimum(kernel[{d}], data.shape[{d + 2}] + 2 * padding[{d}] - x{d} * stride[{d}])"


def _check_rank(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data, kernel = shapes["data"], attributes.shape("kernel")
    if data is not None and not attributes.flag("global_pool") and len(data) != len(kernel) + 2:
        raise ShapeError(
            f"Pooling: data has {len(data)} dimensions {data}, but kernel={kernel} needs {len(kernel) + 2}: "
            f"batch, channel and {len(kernel)} of space"
        )
    return {}


OPERATORS = (
    Operator(
        name="Pooling",
        definition=ByShape(_pooling, lambda a: ("data",) if a.flag("global_pool") else ()),
        argument_names=arguments("data"),
        specs=(
            flag("global_pool", False),
            shape("kernel", ()),
            choice("pool_type", "max", "avg", "sum"),
            choice("pooling_convention", "valid", "full", default="valid"),
            shape("stride", ()),
            shape("pad", ()),
            ignored("cudnn_off"),
        ),
        hints=_check_rank,
        example=Example({"data": (2, 3, 6, 6)}, {"kernel": (2, 2), "stride": (2, 2), "pool_type": "max"}),
    ),
)
