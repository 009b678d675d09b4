"""Layers of symbols as nodes of ONNX: products, windows, normalisation, activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.node import Node
from .elementwise import ACTIVATIONS
from .writer import Write, Writer, refused


def _fully_connected(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    data = inputs[0]
    if node.attributes.flag("flatten") or len(shapes[0]) == 2:
        if len(shapes[0]) != 2:
            (data,) = writer.add("Flatten", [data], f"{node.name}.flatten", axis=1)
        return writer.add("Gemm", [data, *inputs[1:]], node.name, transB=1)
    (weight,) = writer.add("Transpose", [inputs[1]], f"{node.name}.transpose", perm=[1, 0])
    if node.attributes.flag("no_bias"):
        return writer.add("MatMul", [data, weight], node.name)
    product = writer.add("MatMul", [data, weight], f"{node.name}.product")
    return writer.add("Add", [*product, inputs[2]], node.name)


def _windows(node: Node, rank: int) -> dict[str, Any]:
    """Return the attributes of windows as ONNX has them."""
    pads = node.attributes.shape("pad") or (0,) * rank
    found: dict[str, Any] = {"kernel_shape": node.attributes.shape("kernel"), "pads": (*pads, *pads)}
    found["strides"] = node.attributes.shape("stride") or (1,) * rank
    if "dilate" in node.attributes:
        found["dilations"] = node.attributes.shape("dilate") or (1,) * rank
        found["group"] = node.attributes.integer("num_group")
    return found


def _convolution(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    return writer.add("Conv", inputs, node.name, **_windows(node, len(shapes[0]) - 2))


def _transposed(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    if node.attributes.shape("target_shape"):
        raise refused(node, "target_shape")
    rank = len(shapes[0]) - 2
    extra = node.attributes.shape("adj") or (0,) * rank
    return writer.add("ConvTranspose", inputs, node.name, output_padding=extra, **_windows(node, rank))


def _pooling(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    kinds = {"max": "MaxPool", "avg": "AveragePool"}
    kind = kinds.get(node.attributes.text("pool_type"))
    if kind is None or node.attributes.text("pooling_convention") != "valid":
        raise refused(node, "another pooling than max and avg, or the convention 'full'")
    if node.attributes.flag("global_pool"):
        return writer.add(f"Global{kind}", inputs, node.name)
    given = _windows(node, len(shapes[0]) - 2)
    if kind == "AveragePool":
        given["count_include_pad"] = int(node.attributes.flag("count_include_pad"))
    return writer.add(kind, inputs, node.name, **given)


def _batch_norm(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    if node.attributes.flag("output_mean_var") or node.attributes.integer("axis") not in (
        1,
        1 - len(shapes[0]),
    ):
        raise refused(node, "output_mean_var, or another axis than 1")
    tensors = list(inputs)
    if node.attributes.flag("fix_gamma"):
        tensors[1] = writer.constant(np.ones(shapes[1]), f"{node.name}.ones", np.float32)
    given: dict[str, Any] = {
        "epsilon": node.attributes.number("eps"),
        "momentum": node.attributes.number("momentum"),
    }
    return writer.add("BatchNormalization", tensors, node.name, **given)


def _layer_norm(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    given: dict[str, Any] = {
        "axis": node.attributes.integer("axis"),
        "epsilon": node.attributes.number("eps"),
    }
    return writer.add("LayerNormalization", inputs, node.name, **given)


def _activation(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    kinds = {
        "relu": "Relu",
        "sigmoid": "Sigmoid",
        "tanh": "Tanh",
        **{act: k for k, act in ACTIVATIONS.items()},
    }
    return writer.add(kinds[node.attributes.text("act_type")], inputs, node.name)


def _leaky(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    slope = node.attributes.number("slope")
    match node.attributes.text("act_type"):
        case "leaky":
            return writer.add("LeakyRelu", inputs, node.name, alpha=slope)
        case "elu":
            return writer.add("Elu", inputs, node.name, alpha=slope)
        case "selu":
            return writer.add("Selu", inputs, node.name)
        case other:
            raise refused(node, f"act_type {other}")


def _gelu(writer: Writer, node: Node, inputs: Sequence[str], *_: object) -> Sequence[str]:
    root, one, half = (
        writer.constant(value, f"{node.name}.{name}", np.float32)
        for name, value in (("root", 0.5**0.5), ("one", 1), ("half", 0.5))
    )
    scaled = writer.add("Mul", [*inputs, root], f"{node.name}.scaled")
    share = writer.add("Add", [*writer.add("Erf", scaled, f"{node.name}.erf"), one], f"{node.name}.share")
    halves = writer.add("Mul", [*inputs, half], f"{node.name}.halves")
    return writer.add("Mul", [*halves, *share], node.name)


WRITERS: Mapping[str, Write] = {
    "FullyConnected": _fully_connected,
    "Convolution": _convolution,
    "Deconvolution": _transposed,
    "Pooling": _pooling,
    "BatchNorm": _batch_norm,
    "LayerNorm": _layer_norm,
    "Activation": _activation,
    "LeakyReLU": _leaky,
    "gelu": _gelu,
}
"""By an operator's name in the library, the function that writes it."""
