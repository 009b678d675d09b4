"""ATen operators that compute each element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .call import (
    AtenCall,
    Operand,
    TensorValue,
    UnsupportedCallError,
    as_element,
    elementwise,
    narrowed,
)
from .converter import Converter
from .moves import viewed

SINC = (
    "where(abs({0}) < 0.1,"
    " 1 - square(pi * {0}) / 6 * (1 - square(pi * {0}) / 20 * (1 - square(pi * {0}) / 42)),"
    " sin(pi * {0}) / (pi * where(abs({0}) < 0.1, 1, {0})))"
)
"""`sin(pi * x) / (pi * x)`. Near zero it is a series, whose derivative keeps its digits."""

UNARY: Mapping[str, str] = {
    "abs": "abs({0})",
    "neg": "-{0}",
    "exp": "exp({0})",
    "expm1": "expm1({0})",
    "exp2": "2 ** {0}",
    "log": "log({0})",
    "log1p": "log1p({0})",
    "log2": "log2({0})",
    "log10": "log10({0})",
    "sqrt": "sqrt({0})",
    "rsqrt": "rsqrt({0})",
    "reciprocal": "reciprocal({0})",
    "square": "square({0})",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "tan": "tan({0})",
    "sinh": "sinh({0})",
    "cosh": "cosh({0})",
    "sinc": SINC,
    "tanh": "tanh({0})",
    "asin": "arcsin({0})",
    "acos": "arccos({0})",
    "atan": "arctan({0})",
    "asinh": "arcsinh({0})",
    "acosh": "arccosh({0})",
    "atanh": "arctanh({0})",
    "erf": "erf({0})",
    "erfc": "erfc({0})",
    "lgamma": "gammaln({0})",
    "digamma": "digamma({0})",
    "sigmoid": "sigmoid({0})",
    "log_sigmoid": "-softplus(-{0})",
    "relu": "relu({0})",
    "relu6": "where({0} <= 0, 0, where({0} >= 6, 6, {0}))",
    "silu": "{0} * sigmoid({0})",
    "mish": "{0} * tanh(softplus({0}))",
    "hardswish": "where({0} <= -3, 0, where({0} >= 3, {0}, {0} * ({0} + 3) / 6))",
    "hardsigmoid": "where({0} <= -3, 0, where({0} >= 3, 1, ({0} + 3) / 6))",
    "selu": "1.0507009873554805 * where({0} > 0, {0}, 1.6732632423543772 * expm1(minimum({0}, 0)))",
    "softsign": "{0} / (1 + abs({0}))",
    "tanhshrink": "{0} - tanh({0})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "trunc": "trunc({0})",
    "sign": "sign({0})",
    "sgn": "sign({0})",
    "frac": "{0} - trunc({0})",
    "rad2deg": "{0} * 57.29577951308232",
    "deg2rad": "{0} * 0.017453292519943295",
    "logical_not": "where({0} == 0, 1, 0)",
    "isnan": "where({0} != {0}, 1, 0)",
    "isinf": "where(abs({0}) == inf, 1, 0)",
    "isfinite": "where(abs({0}) < inf, 1, 0)",
}

BINARY: Mapping[str, str] = {
    "mul": "{0} * {1}",
    "maximum": "maximum({0}, {1})",
    "minimum": "minimum({0}, {1})",
    "fmax": "where({0} >= {1} or {1} != {1}, {0}, {1})",
    "fmin": "where({0} <= {1} or {1} != {1}, {0}, {1})",
    "atan2": "arctan2({0}, {1})",
    "hypot": "hypot({0}, {1})",
    "ldexp": "{0} * 2 ** {1}",
    "xlogy": "{0} * log(where({0} == 0 and {1} <= 0, 1, {1}))",
    "remainder": "{0} % {1}",
    "floor_divide": "{0} // {1}",
    "fmod": "where({0} < 0, -(-{0} % abs({1})), {0} % abs({1}))",
    "eq": "where({0} == {1}, 1, 0)",
    "ne": "where({0} != {1}, 1, 0)",
    "lt": "where({0} < {1}, 1, 0)",
    "le": "where({0} <= {1}, 1, 0)",
    "gt": "where({0} > {1}, 1, 0)",
    "ge": "where({0} >= {1}, 1, 0)",
    "logical_and": "where({0} != 0 and {1} != 0, 1, 0)",
    "logical_or": "where({0} != 0 or {1} != 0, 1, 0)",
    "logical_xor": "where(({0} != 0) != ({1} != 0), 1, 0)",
}

BITWISE = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}
POWERS = {
    0.5: "sqrt({0})",
    1.0: "{0}",
    2.0: "square({0})",
    3.0: "{0} * {0} * {0}",
    -0.5: "rsqrt({0})",
    -1.0: "reciprocal({0})",
}
GELU = {
    "none": "0.5 * {0} * (1 + erf({0} * 0.7071067811865476))",
    "tanh": "0.5 * {0} * (1 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))",
}


def _unary(body: str) -> Converter:
    return lambda call: elementwise(call, body, call.operand("self"))


def _binary(body: str) -> Converter:
    return lambda call: elementwise(call, body, call.operand("self"), call.operand("other"))


def _bitwise(name: str) -> Converter:
    """Return an operator on truth values. Whole numbers have no bits in the graph."""

    def convert(call: AtenCall) -> TensorValue:
        if call.result.kind != "bool":
            raise UnsupportedCallError(f"{call.target} of whole numbers")
        return elementwise(call, BINARY[BITWISE[name]], call.operand("self"), call.operand("other"))

    return convert


def bitwise_not(call: AtenCall) -> TensorValue:
    body = "where({0} == 0, 1, 0)" if call.result.kind == "bool" else "-{0} - 1"
    return elementwise(call, body, call.operand("self"))


def add(call: AtenCall) -> TensorValue:
    return _sum(call, "+", call.operand("self"), call.operand("other"))


def subtract(call: AtenCall) -> TensorValue:
    return _sum(call, "-", call.operand("self"), call.operand("other"))


def reversed_subtract(call: AtenCall) -> TensorValue:
    return _sum(call, "-", call.operand("other"), call.operand("self"), turned=True)


def _sum(call: AtenCall, sign: str, left: Operand, right: Operand, turned: bool = False) -> TensorValue:
    alpha = call.get("alpha", 1)
    if call.result.kind == "bool":
        return elementwise(call, "where({0} + {2} * {1} != 0, 1, 0)", left, right, bool(alpha))
    if alpha == 1:
        return elementwise(call, f"{{0}} {sign} {{1}}", left, right)
    body = "{0} - {2} * {1}" if turned else f"{{0}} {sign} {{2}} * {{1}}"
    return elementwise(call, body, left, right, alpha)


def divide(call: AtenCall) -> TensorValue:
    rounded = {None: "{0} / {1}", "floor": "{0} // {1}", "trunc": "trunc({0} / {1})"}
    return elementwise(call, rounded[call.get("rounding_mode")], call.operand("self"), call.operand("other"))


def _negative(tensor: TensorValue, place: str) -> str:
    """Return the condition that a number is negative, or a negative zero. Whole numbers have none, but the
    graph may.
    """
    below = f"{place} < 0"
    return f"({below} or {place} == 0 and reciprocal({place}) < 0)" if tensor.kind == "float" else below


def sign_bit(call: AtenCall) -> TensorValue:
    data = call.tensor("self")
    return elementwise(call, f"where({_negative(data, '{0}')}, 1, 0)", data)


def copy_sign(call: AtenCall) -> TensorValue:
    other = call.tensor("other")
    body = f"where({_negative(other, '{1}')}, -abs({{0}}), abs({{0}}))"
    return elementwise(call, body, call.operand("self"), other)


def power(call: AtenCall) -> TensorValue:
    base, exponent = call.operand("self"), call.operand("exponent")
    if not isinstance(exponent, TensorValue) and float(exponent) in POWERS:
        return elementwise(call, POWERS[float(exponent)], base)
    return elementwise(call, "{0} ** {1}", base, exponent)


def gelu(call: AtenCall) -> TensorValue:
    return elementwise(call, GELU[call.get("approximate", "none")], call.operand("self"))


def elu(call: AtenCall) -> TensorValue:
    alpha, scale, inner = (call.get(key, 1) for key in ("alpha", "scale", "input_scale"))
    body = "{2} * where({0} > 0, {0}, {1} * expm1({3} * minimum({0}, 0)))"
    return elementwise(call, body, call.operand("self"), alpha, scale, inner)


def celu(call: AtenCall) -> TensorValue:
    body = "where({0} > 0, {0}, {1} * expm1(minimum({0}, 0) / {1}))"
    return elementwise(call, body, call.operand("self"), call.get("alpha", 1))


LEAKY = "where({0} > 0, {0}, {1} * {0})"
"""A number, times a slope if it is negative."""


def leaky_relu(call: AtenCall) -> TensorValue:
    return elementwise(call, LEAKY, call.operand("self"), call.get("negative_slope", 0.01))


def random_leaky_relu(call: AtenCall) -> Sequence[TensorValue | None]:
    """Outside of training the slope is the middle of the interval in which it is drawn."""
    if call.get("training", False):
        raise UnsupportedCallError(f"{call.target} in training, which draws slopes")
    slope = (call.get("lower", 1 / 8) + call.get("upper", 1 / 3)) / 2
    return [elementwise(call, LEAKY, call.operand("self"), slope), None]


def prelu(call: AtenCall) -> TensorValue:
    """One slope, or one for each channel."""
    data, weight = call.tensor("self"), call.tensor("weight")
    shape = (weight.shape[0], *(1,) * (data.rank - 2)) if weight.shape and data.rank > 1 else ()
    if weight.shape != shape:
        weight = viewed(call, weight, shape, "slopes")
    return elementwise(call, "where({0} > 0, {0}, {1} * {0})", data, weight)


LINEAR = 17
"""From here on softplus is linear in float32."""


def softplus(call: AtenCall) -> TensorValue:
    """PyTorch is linear above a threshold."""
    beta, above = call.get("beta", 1), call.get("threshold", 20)
    body = "softplus({0} * {1}) / {1}"
    if above >= LINEAR:
        return elementwise(call, body, call.operand("self"), beta)
    return elementwise(
        call, f"where({{0}} * {{1}} > {{2}}, {{0}}, {body})", call.operand("self"), beta, above
    )


def rounded(call: AtenCall) -> TensorValue:
    """Return the nearest whole numbers, or those of a number of decimals."""
    decimals = call.get("decimals", 0)
    if not decimals:
        return elementwise(call, "round({0})", call.operand("self"))
    body = "round({0} * {1}) / {1}" if decimals > 0 else "round({0} / {1}) * {1}"
    return elementwise(call, body, call.operand("self"), 10.0 ** abs(decimals))


def hardtanh(call: AtenCall) -> TensorValue:
    low, high = call.get("min_val", -1), call.get("max_val", 1)
    body = "where({0} <= {1}, {1}, where({0} >= {2}, {2}, {0}))"
    return elementwise(call, body, call.operand("self"), low, high)


def threshold(call: AtenCall) -> TensorValue:
    body = "where({0} > {1}, {0}, {2})"
    return elementwise(call, body, call.operand("self"), call.operand("threshold"), call.operand("value"))


def hardshrink(call: AtenCall) -> TensorValue:
    return elementwise(call, "where(abs({0}) > {1}, {0}, 0)", call.operand("self"), call.get("lambd", 0.5))


def softshrink(call: AtenCall) -> TensorValue:
    body = "where({0} > {1}, {0} - {1}, where({0} < -{1}, {0} + {1}, 0))"
    return elementwise(call, body, call.operand("self"), call.get("lambd", 0.5))


def clamp(call: AtenCall) -> TensorValue:
    low, high = call.has("min"), call.has("max")
    if low and high:
        body = "minimum(maximum({0}, {1}), {2})"
        return elementwise(call, body, call.operand("self"), call.operand("min"), call.operand("max"))
    if low:
        return elementwise(call, "maximum({0}, {1})", call.operand("self"), call.operand("min"))
    return elementwise(call, "minimum({0}, {1})", call.operand("self"), call.operand("max"))


def where(call: AtenCall) -> TensorValue:
    condition = call.operand("condition")
    if not isinstance(condition, TensorValue):
        return elementwise(call, "{0}", call.operand("self" if condition else "other"))
    return elementwise(
        call, "where({0} != 0, {1}, {2})", condition, call.operand("self"), call.operand("other")
    )


def masked_fill(call: AtenCall) -> TensorValue:
    value = as_element(call.operand("value"), call.result.kind)
    return elementwise(call, "where({1} != 0, {2}, {0})", call.operand("self"), call.operand("mask"), value)


def lerp(call: AtenCall) -> TensorValue:
    parts = (call.operand("self"), call.operand("end"), call.operand("weight"))
    return elementwise(call, "{0} + {2} * ({1} - {0})", *parts)


def _added(sign: str) -> Converter:
    body = f"{{0}} + {{3}} * {{1}} {sign} {{2}}"

    def convert(call: AtenCall) -> TensorValue:
        parts = (call.operand("self"), call.operand("tensor1"), call.operand("tensor2"))
        return elementwise(call, body, *parts, call.get("value", 1))

    return convert


def cast(call: AtenCall) -> TensorValue:
    """Return the tensor itself if its numbers stay: they have the graph's type."""
    data, wanted = call.tensor("self"), call.result.kind
    body = narrowed(data, wanted)
    return (
        TensorValue(data.symbol, call.result.shape, wanted)
        if body == "{0}"
        else elementwise(call, body, data)
    )


def copied(call: AtenCall) -> TensorValue:
    """Return what is copied: cast to the kind of the tensor that it is copied into, and stretched to its
    shape.
    """
    source = call.operand("src")
    return elementwise(call, narrowed(source, call.result.kind), source)


def same(call: AtenCall) -> TensorValue:
    """Return the tensor itself."""
    data = call.tensor("input" if call.has("input") else "self")
    return TensorValue(data.symbol, call.result.shape, call.result.kind)


def detach(call: AtenCall) -> TensorValue:
    """Stop gradients."""
    return call.library("BlockGrad", call.tensor("self"))


CASTS = ("_to_copy", "to", "type_as", "float", "_cast_Float")
SAME = ("alias", "clone", "contiguous", "lift_fresh_copy", "lift_fresh", "identity", "positive", "view_of")

CONVERTERS: Mapping[str, Converter] = {
    **{name: _unary(body) for name, body in UNARY.items()},
    **{name: _binary(body) for name, body in BINARY.items()},
    **{name: _bitwise(name) for name in BITWISE},
    **dict.fromkeys(CASTS, cast),
    "copy": copied,
    **dict.fromkeys(SAME, same),
    "bitwise_not": bitwise_not,
    "add": add,
    "sub": subtract,
    "rsub": reversed_subtract,
    "div": divide,
    "true_divide": divide,
    "signbit": sign_bit,
    "copysign": copy_sign,
    "pow": power,
    "gelu": gelu,
    "elu": elu,
    "celu": celu,
    "leaky_relu": leaky_relu,
    **dict.fromkeys(("rrelu_with_noise", "rrelu_with_noise_functional"), random_leaky_relu),
    "prelu": prelu,
    "_prelu_kernel": prelu,
    "softplus": softplus,
    "round": rounded,
    "hardtanh": hardtanh,
    "threshold": threshold,
    "hardshrink": hardshrink,
    "softshrink": softshrink,
    "clamp": clamp,
    "clamp_min": clamp,
    "clamp_max": clamp,
    "where": where,
    "masked_fill": masked_fill,
    "lerp": lerp,
    "addcmul": _added("*"),
    "addcdiv": _added("/"),
    "detach": detach,
}
