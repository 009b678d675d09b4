"""Deconvolution: a convolution run backwards."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, ignored, integer, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import of_data, with_bias
from .convolution import check_space, per_dimension
from .texts import joined, names, sized

DECONVOLUTION = """
def {name}(data, weight, *, stride, dilate, padding):
    return lambda n, f={filters}, {places}: Sum(lambda {channel}, {taps}: {item})
"""

DECONVOLUTION_BIAS = """
def {name}(data, weight, bias, *, stride, dilate, padding):
    product = lambda n, f={filters}, {places}: Sum(lambda {channel}, {taps}: {item})
    return lambda n, f, {place}: product[n, f, {place}] + bias[f]
"""

NUMERATOR = "(x{d} + padding[{d}] - k{d} * dilate[{d}])"


def deconvolution(name: str, attributes: Attributes, data: Shape, *, biased: bool) -> Variant:
    """Return a deconvolution. Output `x` sums data at `(x + pad - k * dilate) / stride` wherever that is
    whole.

    With groups, output channel `f` belongs to group `f // (outputs per group)` and reads that group's data.
    """
    kernel, groups = attributes.shape("kernel"), attributes.integer("num_group")
    filters, rank = attributes.integer("num_filter"), len(kernel)
    check_space(name, attributes, data)
    if filters % groups or data[1] % groups:
        raise OperatorError(
            f"{name}: num_filter={filters} and the {data[1]} channels of data must be multiples of "
            f"num_group={groups}"
        )
    stride = per_dimension(name, attributes, "stride", 1)
    padding, extents = _padding_and_extents(name, attributes, data[2:])
    channel, inner = "c", "f"
    if groups > 1:
        channel = f"f // {filters // groups} * {data[1] // groups} + c"
        inner = f"f % {filters // groups}"
    dimensions = range(rank)
    numerators = [NUMERATOR.format(d=d) for d in dimensions]
    source = joined([f"{numerators[d]} // stride[{d}]" for d in dimensions])
    item = f"pad(data[n, {channel}, {source}], 0)"
    if meets := [f"{numerators[d]} % stride[{d}] == 0" for d in dimensions if stride[d] != 1]:
        item = f"where({' and '.join(meets)}, {item}, 0)"
    taps, places = names("k", rank), names("x", rank)
    return variant(
        (DECONVOLUTION_BIAS if biased else DECONVOLUTION).format(
            name=name,
            filters=filters,
            places=sized(places, extents),
            place=joined(places),
            channel=f"c={data[1] // groups}",
            taps=sized(taps, kernel),
            item=f"{item} * weight[{channel}, {inner}, {joined(taps)}]",
        ),
        {
            "stride": stride,
            "dilate": per_dimension(name, attributes, "dilate", 1),
            "padding": padding,
        },
    )


def _padding_and_extents(
    name: str, attributes: Attributes, space: Shape
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what is cut off in front, and the output's extents; `target_shape` overrides `pad` and `adj`."""
    kernel, target = attributes.shape("kernel"), attributes.shape("target_shape")
    stride, dilate = (per_dimension(name, attributes, each, 1) for each in ("stride", "dilate"))
    full = tuple(
        s * (extent - 1) + d * (k - 1) + 1
        for s, d, k, extent in zip(stride, dilate, kernel, space, strict=True)
    )
    if not any(target):
        pad, adj = (per_dimension(name, attributes, each, 0) for each in ("pad", "adj"))
        return pad, tuple(size - 2 * p + a for size, p, a in zip(full, pad, adj, strict=True))
    if len(target) != len(full) or any(t > size for t, size in zip(target, full, strict=True)):
        raise ShapeError(f"{name}: target_shape={target} does not fit into {full}, the size without padding")
    return tuple((size - t + 1) // 2 for size, t in zip(full, target, strict=True)), target


def _deconvolution(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return deconvolution("Deconvolution", attributes, shapes["data"], biased=not attributes.flag("no_bias"))


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    kernel, groups = attributes.shape("kernel"), attributes.integer("num_group")
    data = shapes["data"]
    check_space("Deconvolution", attributes, data)
    channels = None if data is None else data[1]
    hints: dict[str, PartialShape] = {
        "weight": (channels, attributes.integer("num_filter") // groups, *kernel)
    }
    if not attributes.flag("no_bias"):
        hints["bias"] = (attributes.integer("num_filter"),)
    return hints


OPERATORS = (
    Operator(
        name="Deconvolution",
        definition=ByShape(_deconvolution, of_data),
        argument_names=with_bias("data", "weight"),
        specs=(
            shape("kernel"),
            shape("stride", ()),
            shape("dilate", ()),
            shape("pad", ()),
            shape("adj", ()),
            shape("target_shape", ()),
            integer("num_filter"),
            integer("num_group", 1, least=1),
            flag("no_bias", True),
            choice("layout", "NCW", "NCHW", "NCDHW", "None", default="None"),
            ignored("workspace"),
            ignored("cudnn_tune"),
            ignored("cudnn_off"),
        ),
        hints=_hints,
        example=Example(
            {"data": (2, 3, 4, 4), "weight": (3, 2, 3, 3)},
            {"kernel": (3, 3), "num_filter": 2, "stride": (2, 2), "pad": (1, 1), "adj": (1, 1)},
        ),
    ),
)
