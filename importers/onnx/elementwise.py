"""ONNX nodes that compute elements from elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .node import Adapter, Array, OnnxNode, UnsupportedNodeError, apply, ranked, stretched

UNARY = {
    "Abs": "abs",
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Floor": "floor",
    "Identity": "identity",
    "Log": "log",
    "Neg": "negative",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
ACTIVATIONS = {"Softplus": "softrelu", "Softsign": "softsign"}
BINARY = {
    "Add": "broadcast_add",
    "Sub": "broadcast_sub",
    "Mul": "broadcast_mul",
    "Div": "broadcast_div",
    "Pow": "broadcast_power",
    "Equal": "broadcast_equal",
    "Greater": "broadcast_greater",
    "GreaterOrEqual": "broadcast_greater_equal",
    "Less": "broadcast_lesser",
    "LessOrEqual": "broadcast_lesser_equal",
    "And": "broadcast_mul",
    "Or": "broadcast_maximum",
    "Xor": "broadcast_not_equal",
}
SELU = (1.6732632423543772, 1.0507009873554805)


def binary(name: str, lhs: Array, rhs: Array) -> Array:
    rank = max(lhs.ndim, rhs.ndim)
    return apply(name, ranked(lhs, rank), ranked(rhs, rank))


def scaled(array: Array, scale: float, offset: float = 0.0) -> Array:
    return apply("_plus_scalar", apply("_mul_scalar", array, scalar=scale), scalar=offset)


def folded(name: str) -> Adapter:
    """Return a binary operator over any number of inputs."""

    def run(node: OnnxNode) -> Sequence[Array]:
        arrays = [array for array in node.inputs if array is not None]
        return [reduce(lambda lhs, rhs: binary(name, lhs, rhs), arrays)]

    return run


def mean(node: OnnxNode) -> Sequence[Array]:
    (total,) = folded("broadcast_add")(node)
    return [apply("_div_scalar", total, scalar=len(node.inputs))]


def modulo(node: OnnxNode) -> Sequence[Array]:
    """Return remainders with the divisor's sign or, as in C, the dividend's."""
    if not node.integer("fmod", 0):
        return [binary("broadcast_mod", node[0], node[1])]
    size = binary("broadcast_mod", apply("abs", node[0]), apply("abs", node[1]))
    return [binary("broadcast_mul", apply("sign", node[0]), size)]


def elu(node: OnnxNode) -> Sequence[Array]:
    return [apply("LeakyReLU", node[0], act_type="elu", slope=node.number("alpha", 1.0))]


def selu(node: OnnxNode) -> Sequence[Array]:
    alpha, gamma = node.number("alpha", SELU[0]), node.number("gamma", SELU[1])
    if (alpha, gamma) == SELU:
        return [apply("LeakyReLU", node[0], act_type="selu")]
    return [scaled(apply("LeakyReLU", node[0], act_type="elu", slope=alpha), gamma)]


def celu(node: OnnxNode) -> Sequence[Array]:
    alpha = node.number("alpha", 1.0)
    unit = apply("LeakyReLU", scaled(node[0], 1 / alpha), act_type="elu", slope=1.0)
    return [scaled(unit, alpha)]


def leaky_relu(node: OnnxNode) -> Sequence[Array]:
    return [apply("LeakyReLU", node[0], act_type="leaky", slope=node.number("alpha", 0.01))]


def prelu(node: OnnxNode) -> Sequence[Array]:
    """Slopes for each channel if the shapes say so; MXNet has no others, which are put together."""
    data, slope = node[0], ranked(node[1], node[0].ndim)
    if data.ndim > 1 and slope.size == slope.shape[1] == data.shape[1]:
        return [apply("LeakyReLU", data, slope.reshape(-1), act_type="prelu")]
    positive = apply("_greater_scalar", data, scalar=0)
    return [apply("where", positive, data, binary("broadcast_mul", data, slope))]


def gelu(node: OnnxNode) -> Sequence[Array]:
    node.only(approximate=b"none")
    return [apply("gelu", node[0])]


def hard_sigmoid(node: OnnxNode) -> Sequence[Array]:
    line = scaled(node[0], node.number("alpha", 0.2), node.number("beta", 0.5))
    return [apply("clip", line, a_min=0.0, a_max=1.0)]


def hard_swish(node: OnnxNode) -> Sequence[Array]:
    return [apply("_mul", node[0], apply("clip", scaled(node[0], 1 / 6, 0.5), a_min=0.0, a_max=1.0))]


def swish(node: OnnxNode) -> Sequence[Array]:
    return [apply("_mul", node[0], apply("sigmoid", scaled(node[0], node.number("alpha", 1.0))))]


def mish(node: OnnxNode) -> Sequence[Array]:
    return [apply("_mul", node[0], apply("tanh", apply("Activation", node[0], act_type="softrelu")))]


def thresholded(node: OnnxNode) -> Sequence[Array]:
    above = apply("_greater_scalar", node[0], scalar=node.number("alpha", 1.0))
    return [apply("_mul", node[0], above)]


def shrink(node: OnnxNode) -> Sequence[Array]:
    bias, limit = node.number("bias", 0.0), node.number("lambd", 0.5)
    above = apply("_greater_scalar", node[0], scalar=limit)
    below = apply("_lesser_scalar", node[0], scalar=-limit)
    raised = apply("_mul", below, scaled(node[0], 1, bias))
    return [apply("elemwise_add", apply("_mul", above, scaled(node[0], 1, -bias)), raised)]


def clip(node: OnnxNode) -> Sequence[Array]:
    """MXNet's clip has both bounds; one alone is a maximum or a minimum."""
    low = float(node[1]) if node.has(1) else node.attributes.get("min")
    high = float(node[2]) if node.has(2) else node.attributes.get("max")
    if low is not None and high is not None:
        return [apply("clip", node[0], a_min=low, a_max=high)]
    if low is not None:
        return [apply("_maximum_scalar", node[0], scalar=low)]
    return [node[0] if high is None else apply("_minimum_scalar", node[0], scalar=high)]


def where(node: OnnxNode) -> Sequence[Array]:
    return [apply("where", *stretched(*(node[k] for k in range(3))))]


def cast(node: OnnxNode) -> Sequence[Array]:
    """MXNet's types; ONNX numbers its own."""
    names = {1: "float32", 11: "float64", 10: "float16", 6: "int32", 2: "uint8"}
    wanted = node.integer("to", 0)
    if wanted not in names:
        raise UnsupportedNodeError("Cast to a type that MXNet has not")
    return [apply("Cast", node[0], dtype=names[wanted])]


def negation(node: OnnxNode) -> Sequence[Array]:
    return [apply("_equal_scalar", node[0], scalar=0)]


def not_a_number(node: OnnxNode) -> Sequence[Array]:
    return [apply("_not_equal", node[0], node[0])]


def infinite(node: OnnxNode) -> Sequence[Array]:
    """Return what lies beyond the largest number of the type; attributes are finite."""
    kind: Any = node[0].dtype
    largest = float(np.finfo(kind).max)
    above = apply("_greater_scalar", node[0], scalar=largest)
    below = apply("_lesser_scalar", node[0], scalar=-largest)
    if not node.integer("detect_negative", 1):
        return [above]
    return [apply("_maximum", above, below) if node.integer("detect_positive", 1) else below]


def _unary(name: str, **attributes: str) -> Adapter:
    """Return the adapter of an operator of one input."""
    return lambda node: [apply(name, node[0], **attributes)]


def _binary(name: str) -> Adapter:
    """Return the adapter of an operator of two inputs that ONNX broadcasts against each other."""
    return lambda node: [binary(name, node[0], node[1])]


ADAPTERS: Mapping[str, Adapter] = {
    **{kind: _unary(name) for kind, name in UNARY.items()},
    **{kind: _unary("Activation", act_type=act) for kind, act in ACTIVATIONS.items()},
    **{kind: _binary(name) for kind, name in BINARY.items()},
    "Max": folded("broadcast_maximum"),
    "Min": folded("broadcast_minimum"),
    "Sum": folded("broadcast_add"),
    "Mean": mean,
    "Mod": modulo,
    "Elu": elu,
    "Selu": selu,
    "Celu": celu,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "Swish": swish,
    "Mish": mish,
    "ThresholdedRelu": thresholded,
    "Shrink": shrink,
    "Clip": clip,
    "Where": where,
    "Cast": cast,
    "Not": negation,
    "IsNaN": not_a_number,
    "IsInf": infinite,
}
