"""Normal forms of index expressions keep their value, and bounds and simplifications are sound."""

from __future__ import annotations

import operator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.analyzer.adjoint.inversion import Inversion, invert
from tofu.analyzer.indices.polynomial import Polynomial, Ranges, expression
from tofu.tdl import format_expression, parse_expression
from tofu.tdl.ast import Binary, Call, Expression, Extent, Number, Unary, Variable
from tofu.tdl.traverse import transform

N = Extent("t", 0)
X, Y = Variable("x"), Variable("y")
SIZES = {"x": Polynomial.atom(N), "y": Polynomial.integer(3)}
RANGES = Ranges(SIZES, lambda polynomial: polynomial)


OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
}


CALLS = {"minimum": min, "maximum": max, "abs": abs}


def value(node: Expression, at: dict[Expression, int]) -> int:
    """The value of an index expression."""
    match node:
        case Number(int(number)):
            return number
        case Unary("-", operand):
            return -value(operand, at)
        case Call(name, arguments):
            chosen: int = CALLS[name](*(value(argument, at) for argument in arguments))
            return chosen
        case Binary(symbol, left, right):
            result: int = OPERATIONS[symbol](value(left, at), value(right, at))
            return result
        case _:
            return at[node]


INDICES = st.recursive(
    st.sampled_from([X, Y, N]) | st.integers(-4, 4).map(Number),
    lambda inner: (
        st.builds(Binary, st.sampled_from(["+", "-"]), inner, inner)
        | st.builds(Binary, st.just("*"), st.integers(-3, 3).map(Number) | st.just(N), inner)
        | st.builds(Binary, st.sampled_from(["//", "%"]), inner, st.integers(1, 4).map(Number) | st.just(N))
        | st.builds(lambda name, *two: Call(name, two), st.sampled_from(["minimum", "maximum"]), inner, inner)
        | st.builds(lambda value: Call("abs", (value,)), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=400)
@given(index=INDICES)
def test_normal_form_keeps_the_value_and_bounds_hold(index: Expression) -> None:
    form = RANGES.polynomial(index)
    lowest, highest = (RANGES.bound(form, upper=upper) for upper in (False, True))
    nonnegative, below = RANGES.nonnegative(form), RANGES.below(form, SIZES["x"])
    printed = parse_expression(format_expression(expression(form)).replace("t.shape[0]", "n"))
    for n in range(1, 5):
        for x, y in product(range(n), range(3)):
            at: dict[Expression, int] = {X: x, Y: y, N: n, Variable("n"): n}
            expected = value(index, at)
            assert value(expression(form), at) == expected
            assert value(printed, at) == expected
            assert lowest is None or value(expression(lowest), at) <= expected
            assert highest is None or value(expression(highest), at) >= expected
            assert not nonnegative or expected >= 0
            assert not below or expected < n


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("x + y - x", "y"),
        ("(3 * x + y) // 3", "x"),
        ("(3 * x + y) % 3", "y"),
        ("(6 * x + 4) // 3", "2 * x + 4 // 3"),
        ("x // 2 // 3", "x // 6"),
        ("(y * 2 - y) % 3", "y"),
        ("1 - x", "1 - x"),
        ("-x + 2 * (y + 1)", "2 * y - x + 2"),
    ],
)
def test_simplifications(text: str, simple: str) -> None:
    expected = RANGES.polynomial(parse_expression(simple))
    form = RANGES.polynomial(parse_expression(text))
    assert form == expected
    assert len(format_expression(expression(form))) <= len(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("x // 0", "x // 0"),
        ("(x + 1) % 0", "(x + 1) % 0"),
        ("7 // 0", "7 // 0"),
        ("7 % 0", "7 % 0"),
        ("x // 1", "x"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 4", "1"),
        ("x // n", "0"),
        ("x % n", "x"),
        ("(x + n) // n", "1"),
        ("(x + n) % n", "x"),
        ("(n * y + x) // n", "y"),
        ("(n * y + x) % n", "x"),
        ("(4 * y + x % 4) // 4", "y"),
        ("(x - 1) // n", "(x - 1) // t.shape[0]"),
        ("(x - 1) % n", "(x - 1) % t.shape[0]"),
        ("y // 3", "0"),
        ("y % 3", "y"),
        ("y // 2 // 2", "0"),
        ("2 * y // 2 % 4", "y"),
        ("x % 3 % 3", "x % 3"),
        ("x % 3 // 3", "0"),
        ("x % 3 % 2", "x % 3 % 2"),
        ("x // 2 // n", "0"),
        ("(x + n) // 2 // 3", "(x + t.shape[0]) // 6"),
        ("x // -2 // 3", "-x // 6"),
        ("y % -2", "-(-y % 2)"),
        ("x // 2 // -3", "-(x // 2) // 3"),
        ("(x % n + y - 1) % n", "(x + y - 1) % t.shape[0]"),
        ("(2 * (y % 2) + x) % 4", "(2 * y + x) % 4"),
        ("(y % 2 + x) % 4", "(y % 2 + x) % 4"),
        ("(n // 2 * 2 + y) // (n // 2 * 2 + y)", "1"),
        ("(x + y) // 2 // y", "(x + y) // 2 // y"),
        ("(x + y) // (x + y)", "1"),
        ("(x + y) // (x - y)", "2 * x // (x - y) - 1"),
        ("n * x // (n * y)", "x * t.shape[0] // (y * t.shape[0])"),
    ],
)
def test_quotients_and_remainders(text: str, normal: str) -> None:
    named = transform(parse_expression(text), lambda node: N if node == Variable("n") else node)
    assert format_expression(expression(RANGES.polynomial(named))) == normal


@pytest.mark.parametrize(
    ("dividend", "divisor", "highest"),
    [
        (X, N, Number(0)),
        (Binary("*", N, Y), N, Number(2)),
        (Binary("+", X, N), N, Number(1)),
        (Y, Number(2), Number(1)),
        (Binary("+", Binary("*", Number(3), X), Y), Number(3), Binary("-", N, Number(1))),
        (X, Number(2), Binary("//", Binary("-", N, Number(1)), Number(2))),
        (Variable("unknown"), N, None),
    ],
)
def test_highest_quotients(dividend: Expression, divisor: Expression, highest: Expression | None) -> None:
    bound = RANGES.bound(RANGES.polynomial(dividend), upper=True)
    found = None if bound is None else RANGES.floor(bound, RANGES.polynomial(divisor))
    assert found == (None if highest is None else RANGES.polynomial(highest))


def test_constants_and_what_has_no_bound() -> None:
    assert RANGES.polynomial(X).constant is None
    assert RANGES.polynomial(Binary("-", X, X)).constant == 0
    assert RANGES.polynomial(Number(-3)).constant == -3
    assert RANGES.bound(RANGES.polynomial(Binary("*", X, Y)), upper=True) is None
    assert RANGES.bound(RANGES.polynomial(Binary("%", X, Unary("-", N))), upper=True) is None


SOLVABLE = ["x", "y", "x + y", "2 * x + y", "3 * x + y", "4 - x"]
SOLVABLE += ["x // 2", "x // 2 % 2", "x % 3", "(x + y) % 2", "2"]
SOLVABLE += ["(x + 1) % 3", "(x - 2) % 4", "(1 - x) % 3", "(y - x) % 3", "(2 * x - 3) % 4", "(x + 1) // 2"]
SOLVABLE += ["x // 2 * 2 + 1 - x % 2", "x // 2 * 2 + (x + 1) % 2", "x % 2 * 3 + x // 2", "x // 2 * 4 + y"]
SOLVABLE += [
    "(x // 2 * 2 + y + 1) % 5",
    "2 * (x % 3) + 3 * (y % 2)",
    "(x // 2 - y) % 3 + x % 2",
    "5 - 3 * y - x",
]
INVERSIONS = st.lists(st.sampled_from(SOLVABLE), min_size=1, max_size=3)


def in_range(found: Inversion, at: dict[Expression, int]) -> bool:
    """Whether all solved variables have values that they can take."""
    limits = {name: found.ranges.extents[name].constant or 0 for name in found.values}
    return all(0 <= at[Variable(name)] < limit for name, limit in limits.items())


@settings(max_examples=400)
@given(texts=INVERSIONS, extents=st.tuples(st.integers(1, 6), st.integers(1, 4)))
def test_inversion_finds_exactly_the_variables_that_read_a_position(
    texts: list[str], extents: tuple[int, int]
) -> None:
    """Free values that pass all guards, put into the solution, against trying every value."""
    indices = tuple(parse_expression(text) for text in texts)
    positions = tuple(f"j{axis}" for axis in range(len(indices)))
    limits = {
        name: 1 + max(value(index, {X: x, Y: y}) for x, y in product(*map(range, extents)))
        for name, index in zip(positions, indices, strict=True)
    }
    sizes = dict(zip(("x", "y"), extents, strict=True)) | limits
    ranges = Ranges({name: Polynomial.integer(n) for name, n in sizes.items()}, lambda p: p)
    names = iter(f"new{n}" for n in range(20))
    found = invert(indices, positions, ("x",), ("y",), ranges, lambda base: next(names))
    free = [name for name in ("x", "y") if name not in found.values]
    fresh = {binder.name: found.ranges.extents[binder.name].constant for binder in found.fresh}
    for place in product(*(range(limits[name]) for name in positions)):
        expected = {
            (x, y)
            for x, y in product(*map(range, extents))
            if tuple(value(index, {X: x, Y: y}) for index in indices) == place
        }
        solutions: list[tuple[int, int]] = []
        spans = [range(sizes[name]) for name in free] + [range(size or 0) for size in fresh.values()]
        for choice in product(*spans):
            at: dict[Expression, int] = {
                Variable(name): n
                for name, n in zip((*positions, *free, *fresh), (*place, *choice), strict=True)
            }
            if all(value(guard, at) for guard in found.guards):
                at |= {Variable(name): value(node, at) for name, node in found.values.items()}
                if in_range(found, at):
                    solutions.append((at[X], at[Y]))
        assert len(solutions) == len(set(solutions))
        assert set(solutions) == expected
