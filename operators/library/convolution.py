"""Convolution over one, two or three spatial dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ...support.wording import counted
from ..kernels import convolution as kernels
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, ignored, integer, shape
from ..stages.definition import Attachment, ByShape, Constant, Variant, variant
from .arguments import with_bias
from .texts import check_rank, joined, names

CONVOLUTION = """
def Convolution(data, weight, *, num_filter, kernel, stride, dilate, padding):
    return lambda n, f=num_filter, {places}: Sum(lambda c, {taps}: {window} * weight[f, c, {tap}])
"""

CONVOLUTION_BIAS = """
def Convolution(data, weight, bias, *, num_filter, kernel, stride, dilate, padding):
    product = lambda n, f=num_filter, {places}: Sum(lambda c, {taps}: {window} * weight[f, c, {tap}])
    return lambda n, f, {place}: product[n, f, {place}] + bias[f]
"""

EXTENT = "(data.shape[{axis}] + 2 * padding[{d}] - dilate[{d}] * (kernel[{d}] - 1) - 1) // stride[{d}] + 1"
INDEX = "x{d} * stride[{d}] + k{d} * dilate[{d}] - padding[{d}]"


def per_dimension(operator: str, attributes: Attributes, name: str, default: int) -> tuple[int, ...]:
    """Return an attribute with one value for each dimension of `kernel`.

    `default` everywhere if it is empty.

    Raises OperatorError for another number of values.
    """
    count = len(attributes.shape("kernel"))
    values = attributes.shape(name) or (default,) * count
    if len(values) != count:
        raise OperatorError(
            f"{operator}: {name}={values} has {len(values)} values, kernel={attributes['kernel']} has {count}"
        )
    return values


def check_space(operator: str, attributes: Attributes, data: PartialShape) -> None:
    """Raise ShapeError for data that is not batch, channel and the dimensions of `kernel`."""
    kernel = attributes.shape("kernel")
    if data is not None and len(data) != len(kernel) + 2:
        raise ShapeError(
            f"{operator}: data has {counted(len(data), 'dimension')} {data}, but kernel={kernel} needs "
            f"{len(kernel) + 2}: batch, channel and {len(kernel)} of space"
        )


def _geometry(attributes: Attributes) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return stride, dilation and padding of every dimension of `kernel`."""
    stride, dilate = (per_dimension("Convolution", attributes, name, 1) for name in ("stride", "dilate"))
    return stride, dilate, per_dimension("Convolution", attributes, "pad", 0)


def _constants(attributes: Attributes) -> dict[str, Constant]:
    stride, dilate, padding = _geometry(attributes)
    return {
        "num_filter": attributes.integer("num_filter"),
        "kernel": attributes.shape("kernel"),
        "stride": stride,
        "dilate": dilate,
        "padding": padding,
    }


def _text(attributes: Attributes, channel: str) -> str:
    """Return the description; `channel` is the index of the data channel that meets `weight[f, c, ...]`."""
    dimensions = range(len(attributes.shape("kernel")))
    _, _, padding = _geometry(attributes)
    element = f"data[n, {channel}, {joined([INDEX.format(d=d) for d in dimensions])}]"
    return (CONVOLUTION if attributes.flag("no_bias") else CONVOLUTION_BIAS).format(
        places=joined([f"x{d}={EXTENT.format(d=d, axis=d + 2)}" for d in dimensions]),
        taps=joined(names("k", len(dimensions))),
        window=f"pad({element}, 0)" if any(padding) else element,
        place=joined(names("x", len(dimensions))),
        tap=joined(names("k", len(dimensions))),
    )


def _kernels(attributes: Attributes, depthwise: bool = False) -> Mapping[str, Attachment]:
    """Return matrix products over gathered windows, for the stage without the bias and for its gradients.

    A `depthwise` convolution, one channel and one filter in each group, has products too small to be worth
    gathering for, save those over all places that make its weight's gradient.
    """
    geometry = (*_geometry(attributes), attributes.integer("num_group"))
    weight = kernels.ConvolutionWeightGradient(*geometry)
    if depthwise:
        attachment = Attachment(adjoints={"weight": weight})
    else:
        attachment = Attachment(
            kernels.ConvolutionOutput(*geometry),
            {"data": kernels.ConvolutionDataGradient(*geometry), "weight": weight},
        )
    return {"output_0" if attributes.flag("no_bias") else "product": attachment}


def _convolution(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return a convolution. Filter `f` is in group `f // (filters per group)` and reads its channels."""
    groups, filters = attributes.integer("num_group"), attributes.integer("num_filter")
    if groups == 1:
        return variant(_text(attributes, "c"), _constants(attributes), _kernels(attributes))
    if filters % groups:
        raise OperatorError(f"Convolution: num_filter={filters} is not a multiple of num_group={groups}")
    check_rank("Convolution", "weight", len(shapes["weight"]), "filter, channel, ...")
    channels = shapes["weight"][1]
    attached = _kernels(attributes, depthwise=channels == 1 and filters == groups)
    return variant(
        _text(attributes, f"f // {filters // groups} * {channels} + c"), _constants(attributes), attached
    )


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    kernel, groups = attributes.shape("kernel"), attributes.integer("num_group")
    data = shapes["data"]
    check_space("Convolution", attributes, data)
    channels = None if data is None else data[1]
    if channels is not None:
        if channels % groups:
            raise ShapeError(f"Convolution: {channels} channels are not a multiple of num_group={groups}")
        channels //= groups
    return {"weight": (attributes.integer("num_filter"), channels, *kernel)}


OPERATORS = (
    Operator(
        name="Convolution",
        definition=ByShape(_convolution, lambda a: () if a.integer("num_group") == 1 else ("weight",)),
        argument_names=with_bias("data", "weight"),
        specs=(
            shape("kernel"),
            shape("stride", ()),
            shape("dilate", ()),
            shape("pad", ()),
            integer("num_filter"),
            integer("num_group", 1, least=1),
            flag("no_bias", False),
            choice("layout", "NCW", "NCHW", "NCDHW", "None", default="None"),
            ignored("workspace"),
            ignored("cudnn_tune"),
            ignored("cudnn_off"),
        ),
        hints=_hints,
        example=Example(
            {"data": (2, 3, 6, 6), "weight": (4, 3, 3, 3), "bias": (4,)},
            {"kernel": (3, 3), "num_filter": 4, "pad": (1, 1)},
        ),
    ),
)
