"""Nodes of symbols as nodes of ONNX: a function for each operator that has a plain counterpart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.node import Node
from . import writing_layers
from .elementwise import BINARY, UNARY
from .writer import Write, Writer, refused

FAR = 1 << 62
"""A bound of a slice that lies behind every tensor."""


def _plain(kind: str, count: int | None = None, **attributes: Any) -> Write:
    """Return a node with the same inputs, or the first `count` of them."""
    return lambda writer, node, inputs, shapes, made: writer.add(
        kind, inputs[:count], node.name, **attributes
    )


def _nothing(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    return writer.add("Identity", inputs[:1], node.name)


def _scalar(kind: str, swapped: bool = False) -> Write:
    """Return a node whose second input is a number, or its first."""

    def write(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
        number = writer.constant(node.attributes.number("scalar"), f"{node.name}.scalar", np.float32)
        both = (number, inputs[0]) if swapped else (inputs[0], number)
        return writer.add(kind, both, node.name)

    return write


def _compared(write: Write) -> Write:
    """Return truth values as numbers."""

    def cast(writer: Writer, node: Node, *rest: Any) -> Sequence[str]:
        made = write(writer, node, *rest)
        return writer.add("Cast", made, f"{node.name}.number", to=1)

    return cast


def _axis(kind: str, axis: str = "axis", outputs: str | None = None) -> Write:
    """Return a node with an axis."""

    def write(writer: Writer, node: Node, inputs: Sequence[str], *_: Any) -> Sequence[str]:
        count = 1 if outputs is None else node.attributes.integer(outputs)
        return writer.add(kind, inputs, node.name, count, axis=node.attributes.integer(axis))

    return write


def _softmax(kind: str) -> Write:
    plain = _axis(kind)

    def write(writer: Writer, node: Node, *rest: Any) -> Sequence[str]:
        if node.attributes["temperature"] not in (None, 1.0):
            raise refused(node, "temperature")
        return plain(writer, node, *rest)

    return write


def _softmax_output(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    if node.attributes.flag("multi_output"):
        return writer.add("Softmax", inputs[:1], node.name, axis=1)
    if len(shapes[0]) != 2 and not node.attributes.flag("preserve_shape"):
        raise refused(node, f"data of {len(shapes[0])} dimensions")
    return writer.add("Softmax", inputs[:1], node.name, axis=-1)


def _split(writer: Writer, node: Node, inputs: Sequence[str], *_: Any) -> Sequence[str]:
    if node.attributes.flag("squeeze_axis"):
        raise refused(node, "squeeze_axis")
    return _axis("Split", "axis", "num_outputs")(writer, node, inputs, (), ())


def _reshaped(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    """Write the shape that it has. The batch stays open if it is the first dimension of both."""
    shape = made[0]
    if shape and shapes[0] and shape[0] == shapes[0][0]:
        shape = (0, *shape[1:])
    return writer.add("Reshape", [inputs[0], writer.constant(shape, f"{node.name}.shape")], node.name)


def _permuted(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    order = list(range(len(shapes[0])))
    if "axes" in node.attributes:
        order = list(node.attributes.shape("axes")) or order[::-1]
    else:
        one, other = node.attributes.integer("dim1"), node.attributes.integer("dim2")
        order[one], order[other] = order[other], order[one]
    return writer.add("Transpose", inputs, node.name, perm=order)


def _product(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    tensors = []
    for name, shape, flag in zip(inputs, shapes, ("transpose_a", "transpose_b"), strict=True):
        if not node.attributes.flag(flag):
            tensors.append(name)
            continue
        rank = len(shape)
        perm = [*range(rank - 2), rank - 1, rank - 2]
        tensors += writer.add("Transpose", [name], f"{node.name}.{flag}", perm=perm)
    assert node.operator is not None
    if node.operator.name == "dot" and len(shapes[1]) > 2:
        raise refused(node, f"a second input of {len(shapes[1])} dimensions")
    return writer.add("MatMul", tensors, node.name)


def _reduction(kind: str) -> Write:
    def write(
        writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
    ) -> Sequence[str]:
        if node.attributes.flag("exclude"):
            raise refused(node, "exclude")
        axes = node.attributes.shape("axis") or tuple(range(len(shapes[0])))
        given = {"keepdims": int(node.attributes.flag("keepdims"))}
        if kind == "ReduceSum":
            tensors = [*inputs, writer.constant(axes, f"{node.name}.axes")]
            (found,) = writer.add(kind, tensors, f"{node.name}.total", **given)
        else:
            (found,) = writer.add(kind, inputs, f"{node.name}.total", axes=axes, **given)
        shape = writer.constant(made[0], f"{node.name}.shape")
        return writer.add("Reshape", [found, shape], node.name)

    return write


def _sliced(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    if "axis" in node.attributes:
        ends = node.attributes["end"]
        axes = [node.attributes.integer("axis")]
        cuts = [(node.attributes.integer("begin"), shapes[0][axes[0]] if ends is None else ends, 1)]
    else:
        begin, end = node.attributes.bounds("begin"), node.attributes.bounds("end")
        steps = [step or 1 for step in node.attributes.bounds("step")] or [1] * len(begin)
        axes = list(range(len(begin)))
        cuts = [
            (_bound(first, 0 if step > 0 else FAR), _bound(last, FAR if step > 0 else -FAR), step)
            for first, last, step in zip(begin, end, steps, strict=True)
        ]
    columns = [list(column) for column in zip(*cuts, strict=True)]
    given = zip(("starts", "ends", "axes", "steps"), (*columns[:2], axes, columns[2]), strict=True)
    extra = [writer.constant(values, f"{node.name}.{name}") for name, values in given]
    return writer.add("Slice", [inputs[0], *extra], node.name)


def _bound(bound: int | None, edge: int) -> int:
    return edge if bound is None else bound


def _indexed(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    """Pick rows; indices become whole numbers."""
    assert node.operator is not None
    embedding = node.operator.name == "Embedding"
    table, rows = (inputs[1], inputs[0]) if embedding else (inputs[0], inputs[1])
    if not embedding and node.attributes.text("mode") == "clip":
        raise refused(node, "mode clip")
    whole = writer.add("Cast", [rows], f"{node.name}.rows", to=7)
    axis = 0 if embedding else node.attributes.integer("axis")
    return writer.add("Gather", [table, *whole], node.name, axis=axis)


def _clip(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    bounds = [
        writer.constant(node.attributes.number(name), f"{node.name}.{name}", np.float32)
        for name in ("a_min", "a_max")
    ]
    return writer.add("Clip", [*inputs, *bounds], node.name)


def _padded(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    width = node.attributes.shape("pad_width")
    pads = writer.constant((*width[::2], *width[1::2]), f"{node.name}.pads")
    value = writer.constant(node.attributes.number("constant_value"), f"{node.name}.value", np.float32)
    return writer.add("Pad", [*inputs, pads, value], node.name, mode=node.attributes.text("mode"))


def _expanded(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    return writer.add("Expand", [*inputs, writer.constant(made[0], f"{node.name}.shape")], node.name)


TRUTHS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
ARITHMETIC = {kind: BINARY[kind] for kind in ("Add", "Sub", "Mul", "Div", "Pow", *sorted(TRUTHS))}
BROADCAST = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "power", "Equal": "equal",
    "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "lesser", "LessOrEqual": "lesser_equal",
}  # fmt: skip


def _truth(kind: str, write: Write) -> Write:
    return _compared(write) if kind in TRUTHS else write


WRITERS: Mapping[str, Write] = {
    **writing_layers.WRITERS,
    **{name: _plain(kind) for kind, name in UNARY.items()},
    **{function.same: _truth(kind, _plain(kind)) for kind, function in ARITHMETIC.items()},
    **{f"broadcast_{name}": _truth(kind, _plain(kind)) for kind, name in BROADCAST.items()},
    **{
        function.right: _truth(kind, _scalar(kind))
        for kind, function in ARITHMETIC.items()
        if kind not in TRUTHS
    },
    **{f"_{name}_scalar": _truth(kind, _scalar(kind)) for kind, name in BROADCAST.items() if kind in TRUTHS},
    "_rminus_scalar": _scalar("Sub", swapped=True),
    "_rdiv_scalar": _scalar("Div", swapped=True),
    "_rpower_scalar": _scalar("Pow", swapped=True),
    "_maximum_scalar": _scalar("Max"),
    "_minimum_scalar": _scalar("Min"),
    "_maximum": _plain("Max"),
    "_minimum": _plain("Min"),
    "broadcast_maximum": _plain("Max"),
    "broadcast_minimum": _plain("Min"),
    "add_n": _plain("Sum"),
    "_copy": _nothing,
    "BlockGrad": _nothing,
    "Dropout": _nothing,
    "MakeLoss": _nothing,
    "make_loss": _nothing,
    "LinearRegressionOutput": _nothing,
    "MAERegressionOutput": _nothing,
    "LogisticRegressionOutput": _plain("Sigmoid", 1),
    "SoftmaxOutput": _softmax_output,
    "softmax": _softmax("Softmax"),
    "log_softmax": _softmax("LogSoftmax"),
    "Concat": _axis("Concat", "dim"),
    "SliceChannel": _split,
    "Reshape": _reshaped,
    "Flatten": _reshaped,
    "expand_dims": _reshaped,
    "transpose": _permuted,
    "SwapAxis": _permuted,
    "dot": _product,
    "batch_dot": _product,
    "sum": _reduction("ReduceSum"),
    "mean": _reduction("ReduceMean"),
    "max": _reduction("ReduceMax"),
    "min": _reduction("ReduceMin"),
    "slice": _sliced,
    "slice_axis": _sliced,
    "Embedding": _indexed,
    "take": _indexed,
    "clip": _clip,
    "Pad": _padded,
    "broadcast_to": _expanded,
}
"""By an operator's name in the library, the function that writes it."""
