"""Elements computed from elements at the same place, stretched or not; special values among them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .case import Case, Values, case, listed

SPECIAL = listed(-3.5, -2.5, -2, -1.5, -1, -0.5, -0.0, 0, 0.5, 1, 1.5, 2, 2.5, 3.5)
"""Halves, whole numbers, both zeros: where rounding, signs and comparisons change."""

EVERYWHERE = [
    "abs",
    "arcsinh",
    "arctan",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "expm1",
    "fix",
    "floor",
    "negative",
    "radians",
    "relu",
    "rint",
    "round",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "trunc",
    "_copy",
    "BlockGrad",
    "zeros_like",
    "ones_like",
    "make_loss",
    "MakeLoss",
]
POSITIVE = ["log", "log10", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "gamma", "gammaln"]
INSIDE_ONE = ["arccos", "arcsin", "arctanh"]
BINARY = [
    "elemwise_add",
    "_sub",
    "_mul",
    "_div",
    "_mod",
    "_maximum",
    "_minimum",
    "_hypot",
    "_equal",
    "_not_equal",
    "_greater",
    "_greater_equal",
    "_lesser",
    "_lesser_equal",
]
STRETCHED = (
    "add sub mul div mod maximum minimum hypot equal not_equal greater greater_equal lesser lesser_equal"
)
SCALAR = [
    "plus",
    "minus",
    "rminus",
    "mul",
    "div",
    "mod",
    "maximum",
    "minimum",
    "hypot",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "power",
    "rpower",
    "rdiv",
    "rmod",
]
STRETCHES = [
    ((2, 3), (1, 3)),
    ((1, 1), (2, 3)),
    ((3, 1, 2), (1, 4, 1)),
    ((2, 1, 3, 1), (1, 2, 1, 4)),
    ((4,), (1,)),
    ((2, 3, 4), (2, 3, 4)),
]


def cases(values: Values) -> Iterator[Case]:
    yield from _of_one(values)
    yield from _of_two(values)
    yield from _of_many(values)


def _of_one(values: Values) -> Iterator[Case]:
    """Yield functions of one tensor. Of selu only values are tried: MXNet's gradient below zero is wrong."""
    for name in EVERYWHERE:
        yield case(name, data=SPECIAL)
        yield case(name, data=values.signed(2, 3, 4))
    for name in POSITIVE:
        yield case(name, data=values.unit(3, 2) * 4)
        yield case(name, data=values.unit(2, 1, 3, 2) * 20)
    yield case("reciprocal", data=listed(-2, -0.5, 4, 0.125))
    yield case("gamma", data=listed(-1.5, -0.5, 0.5, 1, 2, 5))
    yield case("gammaln", data=listed(-1.5, -0.5, 0.5, 1, 2, 30))
    yield case("log1p", data=listed(-0.5, 0, 1e-6, 100))
    yield case("expm1", data=listed(-20, 1e-6, 20))
    yield case("sigmoid", data=listed(-90, -20, 20, 90))
    yield case("tanh", data=listed(-90, -20, 20, 90))
    for name in INSIDE_ONE:
        yield case(name, data=values.unit(2, 3) * listed(-1, 1, 1))
    yield case("arccosh", data=values.unit(5) * 9 + 1)
    for kind in ("relu", "sigmoid", "softrelu", "tanh", "softsign"):
        yield case("Activation", {"act_type": kind}, data=SPECIAL)
        yield case("Activation", {"act_type": kind}, data=values.signed(2, 3, 2, 2) * 10)
    for slope in (0.0, 0.1, 1.5):
        yield case("LeakyReLU", {"act_type": "leaky", "slope": slope}, data=SPECIAL)
        yield case("LeakyReLU", {"act_type": "elu", "slope": slope}, data=SPECIAL)
    yield case("LeakyReLU", data=values.signed(2, 3))
    yield case("LeakyReLU", {"act_type": "gelu"}, data=SPECIAL)
    yield case("LeakyReLU", {"act_type": "selu"}, training=False, data=SPECIAL)
    for shape in ((2, 3), (2, 3, 4), (2, 3, 2, 2)):
        yield case("LeakyReLU", {"act_type": "prelu"}, data=values.signed(*shape), gamma=values.unit(3))
    yield case("LeakyReLU", {"act_type": "prelu"}, data=values.signed(2, 3, 2), gamma=values.unit(1))
    for kind in ("float32", "float64", "float16", "int32", "uint8"):
        yield case("Cast", {"dtype": kind}, data=abs(SPECIAL) if kind == "uint8" else SPECIAL)
    for low, high in ((-1, 1), (0.5, 2.5), (-10, 10)):
        yield case("clip", {"a_min": low, "a_max": high}, data=SPECIAL)
    for sigma in (0.5, 1.0, 3.0):
        yield case("smooth_l1", {"scalar": sigma}, data=SPECIAL)


def _of_two(values: Values) -> Iterator[Case]:
    grid = list(product((-2.5, -1, 0.5, 2), repeat=2))
    lhs, rhs = listed(*(a for a, _ in grid)), listed(*(b for _, b in grid))
    for name in BINARY:
        yield case(name, lhs=lhs, rhs=rhs)
        yield case(name, lhs=values.signed(2, 3, 1, 2), rhs=values.signed(2, 3, 1, 2))
    for name in STRETCHED.split():
        yield case(f"broadcast_{name}", lhs=lhs.reshape(4, 4), rhs=rhs.reshape(4, 4)[:1])
        for left, right in STRETCHES:
            yield case(f"broadcast_{name}", lhs=values.signed(*left), rhs=values.signed(*right))
    for left, right in STRETCHES:
        yield case("broadcast_power", lhs=values.unit(*left), rhs=values.signed(*right))
    yield case("_power", lhs=values.unit(3, 4), rhs=values.signed(3, 4))
    yield case("_power", lhs=listed(-2, -1, 2, 3), rhs=listed(2, 3, 0, -1))
    for name, number in product(SCALAR, (-2.5, 0.5, 1.0, 2.0)):
        root = name == "power" and number != int(number)
        if (root or name == "rpower") and number <= 0:
            continue
        data = values.unit(2, 3) if root or name == "rdiv" else listed(-2.5, -1, 0.5, 1, 2, 3.5)
        yield case(f"_{name}_scalar", {"scalar": number}, data=data)
        yield case(f"_{name}_scalar", {"scalar": number}, data=values.unit(2, 3, 2) * 3)


def _of_many(values: Values) -> Iterator[Case]:
    for count in (1, 2, 5):
        yield case("add_n", {"num_args": count}, **{f"arg{k}": values.signed(2, 3) for k in range(count)})
    choices = {"x": values.signed(3, 4), "y": values.signed(3, 4)}
    yield case("where", condition=values.among((0, 1, -2), 3, 4), fixed=("condition",), **choices)
    yield case("where", condition=values.among((0, 1), 3), fixed=("condition",), **choices)
    for target, data in (((2, 3), (1, 3)), ((0, 4, 2), (3, 1, 1)), ((2, 2, 2, 2), (1, 2, 1, 2))):
        yield case("broadcast_to", {"shape": target}, data=values.signed(*data))
    for axis, size, data in (
        ((0,), (3,), (1, 2)),
        ((2, 0), (2, 3), (1, 2, 1)),
        ((1,), (1,), (2, 1)),
        ((-1,), (3,), (2, 1)),
    ):
        yield case("broadcast_axis", {"axis": axis, "size": size}, data=values.signed(*data))
    yield case("broadcast_axis", {"axis": 1, "size": 4}, data=values.signed(2, 1, 2))
