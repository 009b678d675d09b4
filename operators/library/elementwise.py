"""Operators that compute each element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ..operator import Array, Example, Operator
from ..stages.attributes import Attributes, choice, count, number
from ..stages.definition import ByRank, Fixed, Variant, text, variant
from .arguments import arguments, numbered

GELU = "0.5 * data[*i] * (1 + erf(data[*i] * 0.7071067811865476))"

UNARY = {
    "abs": "abs(data[*i])",
    "arccos": "arccos(data[*i])",
    "arccosh": "arccosh(data[*i])",
    "arcsin": "arcsin(data[*i])",
    "arcsinh": "arcsinh(data[*i])",
    "arctan": "arctan(data[*i])",
    "arctanh": "arctanh(data[*i])",
    "ceil": "ceil(data[*i])",
    "cos": "cos(data[*i])",
    "cosh": "cosh(data[*i])",
    "degrees": "data[*i] * 57.29577951308232",
    "erf": "erf(data[*i])",
    "exp": "exp(data[*i])",
    "expm1": "expm1(data[*i])",
    "fix": "trunc(data[*i])",
    "floor": "floor(data[*i])",
    "gamma": "gamma(data[*i])",
    "gelu": GELU,
    "gammaln": "gammaln(data[*i])",
    "log": "log(data[*i])",
    "log10": "log10(data[*i])",
    "log1p": "log1p(data[*i])",
    "log2": "log2(data[*i])",
    "negative": "-data[*i]",
    "radians": "data[*i] * 0.017453292519943295",
    "reciprocal": "reciprocal(data[*i])",
    "relu": "relu(data[*i])",
    "rint": "where(data[*i] - floor(data[*i]) <= ceil(data[*i]) - data[*i], floor(data[*i]), ceil(data[*i]))",
    "round": "sign(data[*i]) * where(abs(data[*i]) - floor(abs(data[*i])) < 0.5, "
    "floor(abs(data[*i])), ceil(abs(data[*i])))",
    "rsqrt": "rsqrt(data[*i])",
    "sigmoid": "sigmoid(data[*i])",
    "sign": "sign(data[*i])",
    "silu": "data[*i] * sigmoid(data[*i])",
    "sin": "sin(data[*i])",
    "sinh": "sinh(data[*i])",
    "sqrt": "sqrt(data[*i])",
    "square": "square(data[*i])",
    "tan": "tan(data[*i])",
    "tanh": "tanh(data[*i])",
    "trunc": "trunc(data[*i])",
    "_copy": "data[*i]",
}

BINARY = {
    "elemwise_add": "lhs[*i] + rhs[*i]",
    "_sub": "lhs[*i] - rhs[*i]",
    "_mul": "lhs[*i] * rhs[*i]",
    "_div": "lhs[*i] / rhs[*i]",
    "_mod": "where(rhs[*i] == 0, 0, lhs[*i] % rhs[*i])",
    "_power": "lhs[*i] ** rhs[*i]",
    "_maximum": "maximum(lhs[*i], rhs[*i])",
    "_minimum": "minimum(lhs[*i], rhs[*i])",
    "_hypot": "hypot(lhs[*i], rhs[*i])",
    "_equal": "where(lhs[*i] == rhs[*i], 1, 0)",
    "_not_equal": "where(lhs[*i] != rhs[*i], 1, 0)",
    "_greater": "where(lhs[*i] > rhs[*i], 1, 0)",
    "_greater_equal": "where(lhs[*i] >= rhs[*i], 1, 0)",
    "_lesser": "where(lhs[*i] < rhs[*i], 1, 0)",
    "_lesser_equal": "where(lhs[*i] <= rhs[*i], 1, 0)",
}

SCALAR = {
    "_plus_scalar": "data[*i] + scalar",
    "_minus_scalar": "data[*i] - scalar",
    "_rminus_scalar": "scalar - data[*i]",
    "_mul_scalar": "data[*i] * scalar",
    "_div_scalar": "data[*i] / scalar",
    "_rdiv_scalar": "scalar / data[*i]",
    "_mod_scalar": "where(scalar == 0, 0 * data[*i], data[*i] % scalar)",
    "_rmod_scalar": "where(data[*i] == 0, 0, scalar % data[*i])",
    "_power_scalar": "data[*i] ** scalar",
    "_rpower_scalar": "scalar ** data[*i]",
    "_maximum_scalar": "maximum(data[*i], scalar)",
    "_minimum_scalar": "minimum(data[*i], scalar)",
    "_hypot_scalar": "hypot(data[*i], scalar)",
    "_equal_scalar": "where(data[*i] == scalar, 1, 0)",
    "_not_equal_scalar": "where(data[*i] != scalar, 1, 0)",
    "_greater_scalar": "where(data[*i] > scalar, 1, 0)",
    "_greater_equal_scalar": "where(data[*i] >= scalar, 1, 0)",
    "_lesser_scalar": "where(data[*i] < scalar, 1, 0)",
    "_lesser_equal_scalar": "where(data[*i] <= scalar, 1, 0)",
    "smooth_l1": (
        "where(abs(data[*i]) < 1 / (scalar * scalar), "
        "0.5 * scalar * scalar * data[*i] * data[*i], abs(data[*i]) - 0.5 / (scalar * scalar))"
    ),
}

ALIASES = {
    "silu": ("swish",),
    "_copy": ("identity", "_copyto"),
    "elemwise_add": ("_plus", "_Plus", "_add"),
    "_sub": ("elemwise_sub", "_minus", "_Minus"),
    "_mul": ("elemwise_mul", "_Mul"),
    "_div": ("elemwise_div", "_Div"),
    "_mod": ("_Mod",),
    "_power": ("_Power",),
    "_maximum": ("_Maximum",),
    "_minimum": ("_Minimum",),
    "_hypot": ("_Hypot",),
    "_equal": ("_Equal",),
    "_not_equal": ("_Not_Equal",),
    "_greater": ("_Greater",),
    "_greater_equal": ("_Greater_Equal",),
    "_lesser": ("_Lesser",),
    "_lesser_equal": ("_Lesser_Equal",),
    "_plus_scalar": ("_PlusScalar",),
    "_minus_scalar": ("_MinusScalar",),
    "_rminus_scalar": ("_RMinusScalar",),
    "_mul_scalar": ("_MulScalar",),
    "_div_scalar": ("_DivScalar",),
    "_rdiv_scalar": ("_RDivScalar",),
    "_mod_scalar": ("_ModScalar",),
    "_rmod_scalar": ("_RModScalar",),
    "_power_scalar": ("_PowerScalar",),
    "_rpower_scalar": ("_RPowerScalar",),
    "_maximum_scalar": ("_MaximumScalar",),
    "_minimum_scalar": ("_MinimumScalar",),
    "_hypot_scalar": ("_HypotScalar",),
    "_equal_scalar": ("_EqualScalar",),
    "_not_equal_scalar": ("_NotEqualScalar",),
    "_greater_scalar": ("_GreaterScalar",),
    "_greater_equal_scalar": ("_GreaterEqualScalar",),
    "_lesser_scalar": ("_LesserScalar",),
    "_lesser_equal_scalar": ("_LesserEqualScalar",),
}

ACTIVATIONS = {
    "relu": "relu(data[*i])",
    "sigmoid": "sigmoid(data[*i])",
    "tanh": "tanh(data[*i])",
    "softrelu": "softplus(data[*i])",
    "softsign": "data[*i] / (1 + abs(data[*i]))",
}

SMALL = (2, 3)


def _above_one(values: Array) -> Array:
    return values + 1


def _unary() -> tuple[Operator, ...]:
    return tuple(
        Operator(
            name=name,
            aliases=ALIASES.get(name, ()),
            definition=text(f"def {name}(data):\n    return lambda *i: {body}"),
            argument_names=arguments("data"),
            example=Example({"data": SMALL}, domain={"data": _above_one} if name == "arccosh" else {}),
        )
        for name, body in UNARY.items()
    )


def _binary() -> tuple[Operator, ...]:
    return tuple(
        Operator(
            name=name,
            aliases=ALIASES.get(name, ()),
            definition=text(f"def {name}(lhs, rhs):\n    return lambda *i: {body}"),
            argument_names=arguments("lhs", "rhs"),
            example=Example({"lhs": SMALL, "rhs": SMALL}),
        )
        for name, body in BINARY.items()
    )


def _scalar() -> tuple[Operator, ...]:
    return tuple(
        Operator(
            name=name,
            aliases=ALIASES.get(name, ()),
            definition=text(f"def {name}(data, *, scalar):\n    return lambda *i: {body}"),
            argument_names=arguments("data"),
            specs=(number("scalar"),),
            example=Example({"data": SMALL}, {"scalar": 2}),
        )
        for name, body in SCALAR.items()
    )


def _activation(attributes: Attributes) -> Variant:
    body = ACTIVATIONS[attributes.text("act_type")]
    return variant(f"def Activation(data):\n    return lambda *i: {body}")


def _cast(attributes: Attributes) -> Variant:
    """Return a cast. Numbers keep the graph's floating-point type; a cast to integers truncates them."""
    body = {"int32": "trunc(data[*i])", "uint8": "trunc(data[*i]) % 256"}.get(
        attributes.text("dtype"), "data[*i]"
    )
    return variant(f"def Cast(data):\n    return lambda *i: {body}")


def _cast_back(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradient, which is cast too, as in MXNet. Truncation does not make it zero."""
    return variant("def Cast_grad(grad_0):\n    return lambda *i: grad_0[*i]", targets={"data": "output_0"})


def _add_n(attributes: Attributes) -> Variant:
    names = numbered("num_args", "arg")(attributes)
    total = " + ".join(f"{name}[*i]" for name in names)
    return variant(f"def add_n({', '.join(names)}):\n    return lambda *i: {total}")


def _where(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return a condition of one dimension chooses whole rows."""
    rows = ranks["condition"] == 1 < ranks["x"]
    variables, place = ("n, *i", "n") if rows else ("*i", "*i")
    return variant(
        "def where_(condition, x, y):\n"
        f"    return lambda {variables}: where(condition[{place}] != 0, x[{variables}], y[{variables}])"
    )


ACTIVATION = Operator(
    name="Activation",
    definition=Fixed(_activation),
    argument_names=arguments("data"),
    specs=(choice("act_type", *ACTIVATIONS),),
    example=Example({"data": SMALL}, {"act_type": "relu"}),
)

ADD_N = Operator(
    name="add_n",
    aliases=("ElementWiseSum",),
    definition=Fixed(_add_n),
    argument_names=numbered("num_args", "arg"),
    specs=(count("num_args"),),
    count_attribute="num_args",
    example=Example({"arg0": SMALL, "arg1": SMALL, "arg2": SMALL}, {"num_args": 3}),
)

CLIP = Operator(
    name="clip",
    definition=text(
        "def clip(data, *, a_min, a_max):\n    return lambda *i: minimum(maximum(data[*i], a_min), a_max)"
    ),
    argument_names=arguments("data"),
    specs=(number("a_min"), number("a_max")),
    example=Example({"data": SMALL}, {"a_min": -0.5, "a_max": 0.5}),
)

WHERE = Operator(
    name="where",
    definition=ByRank(_where, of=("condition", "x")),
    argument_names=arguments("condition", "x", "y"),
    example=Example({"condition": SMALL, "x": SMALL, "y": SMALL}),
)

CAST = Operator(
    name="Cast",
    aliases=("cast",),
    definition=Fixed(_cast),
    argument_names=arguments("data"),
    specs=(choice("dtype", "float32", "float64", "float16", "int32", "uint8"),),
    gradient_definition=_cast_back,
    example=Example({"data": SMALL}, {"dtype": "float64"}),
)

OPERATORS = (*_unary(), *_binary(), *_scalar(), ACTIVATION, ADD_N, CLIP, WHERE, CAST)
