"""Index expressions in normal form: values, bounds and ranges against trying everything; what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.indices.affine import (
    Affine,
    DataDependent,
    IndexVariable,
    Quotient,
    Remainder,
    WholeDimension,
    constant,
    extent_symbol,
    normal_form,
    variables_of,
)
from tofu.analyzer.indices.evaluate import compile_integers
from tofu.analyzer.indices.formula import ONE, ZERO, Formula, floor_quotient, integer, symbol
from tofu.analyzer.indices.intervals import Interval as Ends
from tofu.analyzer.indices.intervals import bounds, box_ends, lower_symbol, scaled, upper_symbol
from tofu.analyzer.indices.symbolic import symbolic
from tofu.analyzer.indices.value_range import expression, value_range
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import DescriptionError
from tofu.tdl import ast

from ...hangs import no_hang

SHAPES = {"a": (5, 3), "b": (4,)}
SYMBOLS = [extent_symbol(name, axis) for name, shape in SHAPES.items() for axis in range(len(shape))]
SIZES = [extent for shape in SHAPES.values() for extent in shape]
EXTENTS = {"x": 4, "y": 3, "z": 2}


def description(index: str) -> ast.Description:
    text = f"def f(a, b):\n    return lambda x=4, y=3, z=2: pad(a[{index}, x], 0) + b[y] + z"
    return tdl.parse(text)


def form_of(index: str) -> Affine:
    whole = description(index)
    element = next(n for n in tdl.walk(whole) if isinstance(n, ast.Element) and n.tensor == "a")
    form = normal_form(whole, element.indices[0])
    assert isinstance(form, Affine)
    return form


def values(index: str) -> np.ndarray:
    """The values of an index as Python computes them, over all variables."""
    index = index.replace("a.shape[0]", "5").replace("a.shape[1]", "3").replace("b.shape[0]", "4")
    names = {"maximum": max, "minimum": min}
    at = [dict(zip(EXTENTS, place, strict=True)) for place in product(*map(range, EXTENTS.values()))]
    return np.array([eval(index, names, place) for place in at])


INDICES = [
    "x",
    "7",
    "x + 2 * y - 3 * z + 1",
    "-(x - y)",
    "x - x + y",
    "2 * (x + 3) * 4",
    "a.shape[0] - 1 - x",
    "x * a.shape[1] + y",
    "x * (a.shape[0] - b.shape[0] - a.shape[1])",
    "(x + 2 * y) // 3",
    "(x + 2 * y) // -3",
    "(x - y) % 3",
    "(2 * x - y) % -3",
    "x % 4",
    "x // 1 + x % 1",
    "x // -1 + x % -1",
    "(3 * x + y) // 2 % 3",
    "((x + y) % 3 + z) // 2",
    "(2 * x + 1) % 4",
    "(4 * x + 2 * y + 1) % 6",
    "x // a.shape[1] + x % b.shape[0]",
    "7 // 2 + 7 % 4 - 7 // -2 + 7 % -4",
    "a.shape[0] // 2 + a.shape[0] % 3",
    "2 ** 3 * x",
    "a.shape[1] ** 2 - x",
    "maximum(a.shape[0], 3) - minimum(b.shape[0], 9) + x",
    "y + x // 2 + x // 2",
    "(x + 1) // 2 - (x + 1) // 2 + z",
    "minimum(x, 2) + maximum(y - 1, 0)",
    "minimum(maximum(x - 2, 0), a.shape[0] - 1)",
    "abs(x - 3) - 2 * abs(y)",
    "abs(2 * x - 3) + y",
    "a.shape[0] - 1 - abs(a.shape[0] - 1 - abs(x - 2))",
    "minimum(2 * x + 1, 3 * y) // 2 % 3",
    "maximum(x, -x) - minimum(y % 2, z)",
    "abs(2 - 5) * x + abs(a.shape[0] - b.shape[0])",
]


@pytest.mark.parametrize("index", INDICES)
def test_normal_forms_keep_their_values(index: str) -> None:
    form = form_of(index)
    symbols = {name: symbol(f"{name}.value") for name in EXTENTS}
    program = compile_integers([expression(form, symbols)], [*symbols.values(), *SYMBOLS])
    grid = np.indices(tuple(EXTENTS.values())).reshape(3, -1).T
    found = program.bind(3, SIZES)(grid)[:, 0]
    assert found.tolist() == values(index).tolist()
    assert [program.integers([*place, *SIZES])[0] for place in grid.tolist()] == found.tolist()
    assert set(variables_of(form)) <= set(EXTENTS)


@pytest.mark.parametrize("index", INDICES)
def test_bounds_hold_and_ranges_are_exact(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form, found = form_of(index), values(index)
    program = compile_integers(bounds(form), [*(e for n in EXTENTS for e in ends_of(n)), *SYMBOLS])
    first, last = program.integers([end for extent in EXTENTS.values() for end in (0, extent)] + SIZES)
    assert first <= found.min()
    assert last >= found.max()
    names = list(variables_of(form))
    if len(set(names)) == len(names) and "2 * x" not in index:
        assert (first, last) == (found.min(), found.max())
    assert value_range(form, EXTENTS, SHAPES) == (found.min(), found.max() + 1)
    monkeypatch.setattr("tofu.analyzer.indices.value_range.MAX_TRIALS", 0)
    assert value_range(form, EXTENTS, SHAPES) == (first, last + 1)


def ends_of(name: str) -> tuple[Formula, Formula]:
    return lower_symbol(name), upper_symbol(name)


def test_ends_of_a_box_are_inclusive() -> None:
    assert box_ends("x") == (lower_symbol("x"), upper_symbol("x") - 1)
    assert str(symbolic(lower_symbol("x"))) == "x.lower"
    assert str(symbolic(upper_symbol("x"))) == "x.upper"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("(4 * x + 1) % 6", (1, 5)),
        ("(4 * x + 3) % 6", (1, 5)),
        ("(3 * x + 3 * y) % 6", (0, 3)),
        ("(2 * x) % a.shape[0]", (0, 4)),
        ("(x + 5) % 9", (5, 8)),
        ("(x + 14) % 9", (5, 8)),
        ("(x - 4) % 9", (5, 8)),
    ],
)
def test_bounds_of_remainders(index: str, expected: tuple[int, int]) -> None:
    program = compile_integers(bounds(form_of(index)), [*(e for n in EXTENTS for e in ends_of(n)), *SYMBOLS])
    assert tuple(program.integers([0, 4, 0, 3, 0, 2, *SIZES])) == expected


def test_scaling_by_a_constant_of_unknown_sign() -> None:
    n, m = SYMBOLS[0], SYMBOLS[1]
    interval = Ends(integer(2), integer(7))
    assert scaled(n, interval) == (2 * n, 7 * n)
    assert scaled(-n, interval) == (-7 * n, -2 * n)
    for extents in ((5, 3), (3, 5)):
        program = compile_integers(scaled(n - m, interval), [n, m])
        difference = extents[0] - extents[1]
        assert program.integers(extents) == sorted((2 * difference, 7 * difference))


def test_structure() -> None:
    x = IndexVariable("x")
    assert form_of("x").bare == "x"
    assert form_of("x + 1").bare is None
    assert form_of("2 * x").bare is None
    assert form_of("x // 2").bare is None
    assert form_of("3").bare is None
    assert form_of("x // 2") == Affine(ZERO, ((ONE, Quotient(Affine.variable("x"), integer(2))),))
    assert form_of("(x + 1) % 3") == Affine(
        ZERO,
        ((ONE, Remainder(Affine(ONE, ((ONE, x),)), integer(3))),),
    )
    assert form_of("x - x") == Affine(ZERO)
    assert Affine.variable("x").scale(ZERO) == Affine(ZERO)
    assert list(variables_of(form_of("x + (x + y) // 2"))) == ["x", "x", "y"]


def test_other_indices() -> None:
    text = "def f(a, b):\n    g = Opaque()\n    return lambda x, i=2: g(a[x, :])[i] + a[b[x], 0]"
    whole = tdl.parse(text)
    elements = {n.tensor: n for n in tdl.walk(whole) if isinstance(n, ast.Element)}
    opaque = next(n for n in tdl.walk(whole) if isinstance(n, ast.OpaqueElement))
    assert normal_form(whole, opaque.arguments[0].indices[1]) == WholeDimension()
    found = normal_form(whole, elements["a"].indices[0])
    assert isinstance(found, DataDependent)
    assert whole.source[found.span.start : found.span.end] == "b[x]"


@pytest.mark.parametrize(
    "step", ["abs({} - 1)", "minimum({}, x + 2)", "maximum(minimum({}, 5), 1)", "maximum(abs({} - 3), y)"]
)
def test_deep_indices_take_no_time_that_doubles_with_each_level(step: str) -> None:
    """With a time that doubles, 25 levels would not end."""
    index = "x"
    for _ in range(25):
        index = step.format(index)
    text = f"def f(a):\n    return lambda x=9, y=3: pad(a[{index}], 0)"
    bound = analyze(tdl.parse(text)).bind({"a": (20,)})
    assert bound.looseness or bound.tight
    assert bound.analysis.elements_touched is not None
    low, high = bound.input_regions(bound.full_box[None])["a"][0, 0].tolist()
    names = {"minimum": np.minimum, "maximum": np.maximum}
    found = eval(index, names, dict(zip("xy", np.indices((9, 3)), strict=True))) + np.zeros((9, 3), int)
    assert (low, high) == (found.min(), found.max() + 1)


@pytest.mark.parametrize("step", ["({} % 97)", "(-{} % 97)", "({} % a.shape[0])", "(2 * ({} % 97 + y))"])
@pytest.mark.parametrize("tail", ["a[{0}]", "a[{0} + ({0}) // 2]", "pad(a[{0}], 0)"])
def test_nested_remainders_are_bound_or_refused_at_once(step: str, tail: str) -> None:
    """Each level writes the bounds of the one inside it several times; 30 levels would never end."""
    for depth in (3, 30):
        index = "x"
        for _ in range(depth):
            index = step.format(index)
        description = tdl.parse(f"def f(a):\n    return lambda x=9, y=3: {tail.format(index)}")
        with no_hang():
            if depth == 3:
                analyze(description).bind({"a": (1000,)})
            else:
                with pytest.raises(DescriptionError, match=r"bounds of this index take [0-9,]+ operations"):
                    analyze(description)


@pytest.mark.parametrize(
    ("index", "place"),
    [
        ("x * 9 ** 9 ** 9", "9 ** 9 ** 9"),
        ("x + a.shape[0] ** 99999999", "a.shape[0] ** 99999999"),
        ("x * (" + " * ".join(["a.shape[0]"] * 17) + ")", " * ".join(["a.shape[0]"] * 17)),
    ],
)
def test_constants_have_bounded_bits(index: str, place: str) -> None:
    text = f"def f(a):\n    return lambda x=9: pad(a[{index}], 0)"
    column = text.splitlines()[1].index(place) + 1
    with pytest.raises(DescriptionError, match=rf"f:2:{column}: .* may have [0-9,]+ bits"):
        analyze(specialize(tdl.parse(text), {}, {"a": 1}))


@pytest.mark.parametrize(
    ("index", "message", "place"),
    [
        ("x * y", "a product of index variables is not", "x * y"),
        ("x // y", "use a constant here, not an index variable", "y"),
        ("x % y", "use a constant here", "y"),
        ("x ** 2", "use a constant here", "x"),
        ("2 ** x", "an index is affine in parts", "2 ** x"),
        ("x / 2", "use // for the floor of a quotient", "x / 2"),
        ("x // 0", "division by zero", "0"),
        ("x % 0", "division by zero", "0"),
        ("sign(x)", "an index is affine in parts", "sign(x)"),
        ("minimum(x, x * x)", "a product of index variables is not", "x * x"),
    ],
)
def test_indices_that_are_refused(index: str, message: str, place: str) -> None:
    alone = replace(description("x"), source=index)
    with pytest.raises(DescriptionError, match=message) as caught:
        normal_form(alone, tdl.parse_expression(index))
    assert marked(str(caught.value)) == place
    assert str(caught.value).startswith("f:1:")


def marked(message: str) -> str:
    """The text above the carets of an error."""
    line, carets = message.splitlines()[1:3]
    return line[carets.index("^") : carets.rindex("^") + 1]


def test_a_fraction_is_no_index() -> None:
    whole = description("x")
    with pytest.raises(DescriptionError, match=r"an index is an integer, found 1\.5"):
        normal_form(whole, ast.Number(1.5))


def test_an_extent_is_constant() -> None:
    whole = description("x")
    assert constant(whole, tdl.parse_expression("7 // 2")).value == 3
    with pytest.raises(DescriptionError, match="an extent consists of integers and extents of tensors"):
        constant(whole, tdl.parse_expression("x + 1"))


@settings(max_examples=100)
@given(value=st.integers(-30, 30), divisor=st.integers(1, 7))
def test_floor_quotients(value: int, divisor: int) -> None:
    assert floor_quotient(integer(value), integer(divisor)).value == value // divisor
    n = symbol("n")
    (found,) = compile_integers([floor_quotient(n, integer(divisor))], [n]).integers([value])
    assert found == value // divisor


def test_extremes_of_numbers_are_numbers() -> None:
    bound = analyze(tdl.parse("def f(a):\n    return lambda x=1: a[abs(0 - 2) // 2]")).bind({"a": (3,)})
    assert bound.tight
