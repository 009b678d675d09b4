"""UpSampling: images enlarged by a whole factor, by repetition or by a learned interpolation."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, count, ignored, integer
from ..stages.definition import ByShape, Variant, variant
from .arguments import numbered
from .deconvolution import deconvolution
from .texts import check_rank, joined


def _arguments(attributes: Attributes) -> tuple[str, ...]:
    if attributes.text("sample_type") == "bilinear":
        return ("data", "weight")
    return numbered("num_args", "arg")(attributes)


def _upsampling(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    if attributes.text("sample_type") == "bilinear":
        return deconvolution("UpSampling", _interpolation(attributes), shapes["data"], biased=False)
    return _nearest(attributes, shapes)


def _interpolation(attributes: Attributes) -> Attributes:
    """Return the deconvolution, channel by channel, that MXNet interpolates with."""
    scale, channels = attributes.integer("scale"), attributes.integer("num_filter")
    if channels < 1:
        raise OperatorError("UpSampling: sample_type=bilinear needs num_filter, the number of channels")
    return Attributes(
        {
            "kernel": (2 * scale - scale % 2,) * 2,
            "stride": (scale, scale),
            "dilate": (),
            "pad": (scale // 2, scale // 2),
            "adj": (),
            "target_shape": (),
            "num_filter": channels,
            "num_group": channels,
        }
    )


def _nearest(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return inputs enlarged to `scale` times the first one's size, with channels joined or added."""
    inputs = numbered("num_args", "arg")(attributes)
    for name in inputs:
        check_rank("UpSampling", name, len(shapes[name]), "batch, channel, height, width")
    first = shapes[inputs[0]]
    height, width = (attributes.integer("scale") * extent for extent in first[2:])
    joins = attributes.text("multi_input_mode") == "concat"
    terms, start = [], 0
    for name in inputs:
        data = shapes[name]
        if data[0] != first[0] or 0 in data[2:] or height % data[2] or width % data[3]:
            raise ShapeError(
                f"UpSampling: {name} has shape {data}; it needs batch {first[0]}, and height and width that "
                f"divide {height} and {width}"
            )
        if not joins and data[1] != first[1]:
            raise ShapeError(f"UpSampling: {name} has {data[1]} channels, {inputs[0]} has {first[1]}")
        place = f"y // {height // data[2]}, x // {width // data[3]}"
        joined_in = joins and len(inputs) > 1
        channel = f"c - {start}" if joined_in and start else "c"
        item = f"{name}[n, {channel}, {place}]"
        terms.append(f"pad({item}, 0)" if joined_in else item)
        start += data[1] if joins else 0
    channels = f"c={start}" if joins else "c"
    return variant(
        f"def UpSampling({joined(inputs)}):\n"
        f"    return lambda n, {channels}, y={height}, x={width}: {' + '.join(terms)}"
    )


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    if attributes.text("sample_type") == "nearest":
        return {}
    inner = _interpolation(attributes)
    return {"weight": (inner.integer("num_filter"), 1, *inner.shape("kernel"))}


OPERATORS = (
    Operator(
        name="UpSampling",
        definition=ByShape(
            _upsampling, lambda a: _arguments(a) if a.text("sample_type") == "nearest" else ("data",)
        ),
        argument_names=_arguments,
        specs=(
            integer("scale", least=1),
            integer("num_filter", 0),
            choice("sample_type", "bilinear", "nearest"),
            choice("multi_input_mode", "concat", "sum", default="concat"),
            count("num_args", 1),
            ignored("workspace"),
        ),
        count_attribute="num_args",
        hints=_hints,
        example=Example(
            {"arg0": (2, 2, 2, 3), "arg1": (2, 3, 4, 6)},
            {"scale": 2, "sample_type": "nearest", "num_args": 2},
        ),
    ),
)
