"""ONNX nodes that compute elements from elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from ..grid_sampling import NEAREST
from .compose import apply, broadcast, described, elementwise, scaled
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError, constant

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
TEXTS = {
    "Erf": "erf(x[*i])",
    "Round": NEAREST.format("x[*i]"),
}
"""Functions that the library does not have. Round goes to the nearest whole number, from halves to even."""


class PairFunction(NamedTuple):
    """A function of two numbers, in the library and in TDL."""

    name: str
    """The name of the description for tensors of different shapes."""

    same: str
    """The library's operator for tensors of one shape."""

    text: str
    """The expression of two elements."""

    right: str
    """The library's operator whose second number is an attribute."""

    left: str
    """The library's operator whose first number is an attribute."""


ADD = PairFunction("add", "elemwise_add", "{0} + {1}", "_plus_scalar", "_plus_scalar")
SUB = PairFunction("sub", "_sub", "{0} - {1}", "_minus_scalar", "_rminus_scalar")
MUL = PairFunction("mul", "_mul", "{0} * {1}", "_mul_scalar", "_mul_scalar")
DIV = PairFunction("div", "_div", "{0} / {1}", "_div_scalar", "_rdiv_scalar")
MAXIMUM = PairFunction("maximum", "_maximum", "maximum({0}, {1})", "_maximum_scalar", "_maximum_scalar")
MINIMUM = PairFunction("minimum", "_minimum", "minimum({0}, {1})", "_minimum_scalar", "_minimum_scalar")
NOT_EQUAL = PairFunction("not_equal", "_not_equal", "{0} != {1}", "_not_equal_scalar", "_not_equal_scalar")
POW = PairFunction("pow", "_power", "{0} ** {1}", "_power_scalar", "_rpower_scalar")
BINARY = {
    "Add": ADD,
    "Sub": SUB,
    "Mul": MUL,
    "Div": DIV,
    "Pow": POW,
    "Equal": PairFunction("equal", "_equal", "{0} == {1}", "_equal_scalar", "_equal_scalar"),
    "Greater": PairFunction("greater", "_greater", "{0} > {1}", "_greater_scalar", "_lesser_scalar"),
    "GreaterOrEqual": PairFunction(
        "greater_equal", "_greater_equal", "{0} >= {1}", "_greater_equal_scalar", "_lesser_equal_scalar"
    ),
    "Less": PairFunction("less", "_lesser", "{0} < {1}", "_lesser_scalar", "_greater_scalar"),
    "LessOrEqual": PairFunction(
        "less_equal", "_lesser_equal", "{0} <= {1}", "_lesser_equal_scalar", "_greater_equal_scalar"
    ),
    "And": MUL,
    "Or": MAXIMUM,
    "Xor": NOT_EQUAL,
}
THRESHOLDED = """
def thresholded(x, *, alpha):
    return lambda *i: where(x[*i] > alpha, x[*i], 0)
"""
SHRINK = """
def shrink(x, *, bias, lambd):
    return lambda *i: where(x[*i] > lambd, x[*i] - bias, where(x[*i] < -lambd, x[*i] + bias, 0))
"""
SELU = (1.6732632423543772, 1.0507009873554805)


def binary(function: PairFunction, lhs: OnnxOperand, rhs: OnnxOperand) -> OnnxOperand:
    """Return a function of two operands that are stretched to each other."""
    shape = broadcast(lhs.shape, rhs.shape)
    if rhs.number is not None and lhs.shape == shape:
        return apply(function.right, lhs, scalar=rhs.number)
    if lhs.number is not None and rhs.shape == shape:
        return apply(function.left, rhs, scalar=lhs.number)
    if lhs.held == rhs.held:
        return apply(function.same, lhs, rhs)
    return elementwise(function.name, function.text, lhs, rhs)


def folded(function: PairFunction) -> Adapter:
    """Return a binary operator over any number of inputs."""
    return lambda node: [reduce(lambda lhs, rhs: binary(function, lhs, rhs), node.given)]


def mean(node: OnnxNode) -> Sequence[OnnxOperand]:
    (total,) = folded(ADD)(node)
    return [apply("_div_scalar", total, scalar=len(node.inputs))]


def whole(node: OnnxNode, found: OnnxOperand) -> OnnxOperand:
    """Return results in the type of the first input: those of whole numbers are rounded towards zero."""
    return apply("trunc", found) if node[0].dtype.kind in "iu" else found


def quotient(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [whole(node, binary(DIV, node[0], node[1]))]


def power(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [whole(node, binary(POW, node[0], node[1]))]


def modulo(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return remainders with the divisor's sign or, as in C, the dividend's."""
    if not node.integer("fmod", 0):
        return [remainder(node[0], node[1])]
    size = remainder(apply("abs", node[0]), apply("abs", node[1]))
    return [binary(MUL, apply("sign", node[0]), size)]


def remainder(lhs: OnnxOperand, rhs: OnnxOperand) -> OnnxOperand:
    """Return remainders with the divisor's sign; those by zero are NaN, and zero in MXNet's operators."""
    return elementwise("mod", "{0} % {1}", lhs, rhs)


def identity(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [node[0]]


def elu(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("LeakyReLU", node[0], act_type="elu", slope=node.number("alpha", 1.0))]


def selu(node: OnnxNode) -> Sequence[OnnxOperand]:
    alpha, gamma = node.number("alpha", SELU[0]), node.number("gamma", SELU[1])
    if (alpha, gamma) == SELU:
        return [apply("LeakyReLU", node[0], act_type="selu")]
    return [scaled(apply("LeakyReLU", node[0], act_type="elu", slope=alpha), gamma)]


def celu(node: OnnxNode) -> Sequence[OnnxOperand]:
    alpha = node.number("alpha", 1.0)
    unit = apply("LeakyReLU", scaled(node[0], 1 / alpha), act_type="elu", slope=1.0)
    return [scaled(unit, alpha)]


def leaky_relu(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("LeakyReLU", node[0], act_type="leaky", slope=node.number("alpha", 0.01))]


def prelu(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [elementwise("prelu", "where({0} > 0, {0}, {0} * {1})", node[0], node[1])]


def gelu(node: OnnxNode) -> Sequence[OnnxOperand]:
    if node.text("approximate", "none") == "none":
        return [apply("gelu", node[0])]
    cubic = "0.7978845608028654 * (x[*i] + 0.044715 * x[*i] * x[*i] * x[*i])"
    return [described(f"def gelu_tanh(x):\n    return lambda *i: 0.5 * x[*i] * (1 + tanh({cubic}))", node[0])]


def hard_sigmoid(node: OnnxNode) -> Sequence[OnnxOperand]:
    line = scaled(node[0], node.number("alpha", 0.2), node.number("beta", 0.5))
    return [apply("clip", line, a_min=0.0, a_max=1.0)]


def hard_swish(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("_mul", node[0], apply("clip", scaled(node[0], 1 / 6, 0.5), a_min=0.0, a_max=1.0))]


def swish(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("_mul", node[0], apply("sigmoid", scaled(node[0], node.number("alpha", 1.0))))]


def mish(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("_mul", node[0], apply("tanh", apply("Activation", node[0], act_type="softrelu")))]


def thresholded(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [described(THRESHOLDED, node[0], alpha=node.number("alpha", 1.0))]


def shrink(node: OnnxNode) -> Sequence[OnnxOperand]:
    bias, limit = node.number("bias", 0.0), node.number("lambd", 0.5)
    return [described(SHRINK, node[0], bias=bias, lambd=limit)]


def clip(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return numbers within bounds, each of which may be left out, infinite or computed."""
    if any(node.has(position) and node[position].array is None for position in (1, 2)):
        found = binary(MAXIMUM, node[0], node[1]) if node.has(1) else node[0]
        return [binary(MINIMUM, found, node[2]) if node.has(2) else found]
    bounds = [
        float(node.value(position).reshape(())) if node.has(position) else node.number(name, free)
        for position, name, free in ((1, "min", -np.inf), (2, "max", np.inf))
    ]
    low, high = bounds
    if np.isfinite(bounds).all() and low <= high:
        return [apply("clip", node[0], a_min=low, a_max=high)]
    found = node[0]
    if np.isfinite(low):
        found = apply("_maximum_scalar", found, scalar=low)
    return [apply("_minimum_scalar", found, scalar=high) if np.isfinite(high) else found]


def where(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [elementwise("where", "where({0} != 0, {1}, {2})", node[0], node[1], node[2])]


def cast(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return numbers in another type. Graphs compute in one type, so that only rounding is left."""
    from .tensors import element_type

    wanted = node[1].dtype if node.kind == "CastLike" else element_type(node.integer("to", 0))
    if wanted is None or wanted.kind not in "fiub":
        raise UnsupportedNodeError("Cast to a type that is not a number")
    if wanted.kind == "b":
        return [apply("_not_equal_scalar", node[0], scalar=0)]
    if wanted.kind == "f":
        if wanted.itemsize >= node[0].dtype.itemsize or node[0].dtype.kind in "iub":
            return [node[0]]
        return [apply("Cast", node[0], dtype=wanted.name)]
    return [apply("trunc", node[0]) if node[0].dtype.kind == "f" else node[0]]


def negation(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("_equal_scalar", node[0], scalar=0)]


def not_a_number(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("_not_equal", node[0], node[0])]


def infinite(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return what lies beyond the largest number of the type; attributes are finite."""
    largest = float(np.finfo(node[0].dtype).max)
    found = []
    if node.integer("detect_positive", 1):
        found.append(apply("_greater_scalar", node[0], scalar=largest))
    if node.integer("detect_negative", 1):
        found.append(apply("_lesser_scalar", node[0], scalar=-largest))
    if not found:
        return [apply("zeros_like", node[0])]
    return [reduce(lambda above, below: apply("_maximum", above, below), found)]


def constant_node(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the tensor, number or list of numbers of a Constant."""
    for name, dtype in (("value", None), ("value_float", np.float32), ("value_floats", np.float32),
                        ("value_int", np.int64), ("value_ints", np.int64)):  # fmt: skip
        if name in node.attributes:
            value = np.asarray(node.attributes[name], dtype)
            return [constant(value, value.dtype)]
    raise UnsupportedNodeError("Constant that is text or sparse")


def _unary(name: str, **attributes: str) -> Adapter:
    """Return the adapter of an operator of one input."""
    return lambda node: [apply(name, node[0], **attributes)]


def _text(kind: str, expression: str) -> Adapter:
    """Return the adapter of a function of one number."""
    text = f"def {kind.lower()}_(x):\n    return lambda *i: {expression}"
    return lambda node: [described(text, node[0])]


def _binary(function: PairFunction) -> Adapter:
    """Return the adapter of an operator of two inputs that ONNX broadcasts against each other."""
    return lambda node: [binary(function, node[0], node[1])]


ADAPTERS: Mapping[str, Adapter] = {
    **{kind: _unary(name) for kind, name in UNARY.items()},
    **{kind: _unary("Activation", act_type=act) for kind, act in ACTIVATIONS.items()},
    **{kind: _text(kind, expression) for kind, expression in TEXTS.items()},
    **{kind: _binary(function) for kind, function in BINARY.items()},
    "Max": folded(MAXIMUM),
    "Min": folded(MINIMUM),
    "Sum": folded(ADD),
    "Mean": mean,
    "Div": quotient,
    "Pow": power,
    "Mod": modulo,
    "Identity": identity,
    "Constant": constant_node,
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
    "CastLike": cast,
    "Not": negation,
    "IsNaN": not_a_number,
    "IsInf": infinite,
}
