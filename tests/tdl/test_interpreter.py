"""The reference against NumPy, and its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import DataError, OperatorError, ShapeError, TofuError

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(1)


def run(text: str, extents: Mapping[str, int], **tensors: Any) -> Array:
    """The first output; every tensor is given whole."""
    arrays = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    return tdl.interpret(tdl.parse(text), extents, arrays, shapes)[0]


def one(expression: str, **values: Any) -> Array:
    """An expression over tensors of one element, `x` and `y` where given."""
    text = f"def f({', '.join(values)}): return lambda i=1: {expression}"
    return run(text, {"i": 1, "k": 4}, **{name: [value] for name, value in values.items()})


def test_conv1d() -> None:
    data, filters = RANDOM.standard_normal((4, 3, 12)), RANDOM.standard_normal((3, 6, 3))
    text = """
        def conv1d(data, filters):
            return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
    """
    extents = {"b": 4, "co": 6, "x": 10, "ci": 3, "dx": 3}
    windows = np.lib.stride_tricks.sliding_window_view(data, 3, axis=2)
    expected = np.einsum("bcxd,cod->box", windows, filters)
    np.testing.assert_allclose(run(text, extents, data=data, filters=filters), expected, rtol=1e-13)


def test_a_box_gives_its_part_of_the_result() -> None:
    a = RANDOM.integers(-9, 9, (4, 5))
    description = tdl.parse("def total(a): return lambda i: Sum(lambda j: a[i, j])")
    box = {"i": (1, 3), "j": (2, 5)}
    (part,) = tdl.interpret(description, {"i": 4, "j": 5}, {"a": a}, {}, box=box)
    assert np.array_equal(part, a[1:3, 2:5].sum(axis=1))


def test_integers_stay_exact_and_floats_are_doubles() -> None:
    big = 2**53 + 1
    assert one("x[i] + 0", x=big).tolist() == [big]
    assert one("x[i] + 0", x=big).dtype == np.int64
    assert one("x[i] + 1", x=np.float32(0.1)).dtype == np.float64
    assert one("x[i] / 2", x=4).dtype == np.float64
    assert one("x[i] > 0", x=0.5).dtype == np.float64


def test_integers_beyond_64_bits_are_an_error() -> None:
    with pytest.raises(DataError, match="does not fit 64 bits"):
        one("x[i] * x[i]", x=2**62)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x[i] // 4", -2),
        ("x[i] % 4", 1),
        ("x[i] // -4", 1),
        ("x[i] % -4", -3),
        ("x[i] / 2", -3.5),
        ("x[i] ** 2", 49),
        ("x[i] ** -1", -1 / 7),
        ("-x[i] ** 2", -49),
        ("x[i] < 0 and not x[i] < -9", 1),
        ("x[i] == 1 or x[i] != 1", 1),
        ("abs(x[i]) if x[i] <= -8 else 3", 3),
        ("maximum(x[i], 2) + minimum(x[i], 2)", -5),
        ("floor(x[i] / 2) + round(2.5) + trunc(-0.5)", -2),
        ("x.shape[0] + x.shape[-1]", 2),
        ("Sum(lambda k=4: k) + Prod(lambda k=4: k + 1)", 30),
        ("Max(lambda k=4: -k * k) + Min(lambda k=4: -k * k)", -9),
    ],
)
@pytest.mark.parametrize("kind", [int, float])
def test_arithmetic(expression: str, expected: float, kind: type) -> None:
    reading = expression if "x[i]" in expression else f"{expression} + 0 * x[i]"
    np.testing.assert_allclose(one(reading, x=kind(-7)), [expected], rtol=1e-15)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x[i] / y[i]", np.inf),
        ("-x[i] / y[i]", -np.inf),
        ("y[i] / y[i] + x[i]", np.nan),
        ("y[i] % y[i] + x[i]", np.nan),
        ("log(y[i]) + x[i]", -np.inf),
        ("sqrt(-x[i]) + y[i]", np.nan),
        ("(-x[i]) ** 0.5 + y[i]", np.nan),
        ("y[i] ** -1 + x[i]", np.inf),
        ("exp(1000 * x[i]) + y[i]", np.inf),
        ("Max(lambda k=3: sqrt(1 - k) + 0 * x[k] * y[k])", np.nan),
    ],
)
def test_values_beyond_the_numbers_are_numpys(expression: str, expected: float) -> None:
    x, y = np.ones(3), np.zeros(3)
    result = run(f"def f(x, y): return lambda i=1: {expression}", {"i": 1, "k": 3}, x=x, y=y)
    np.testing.assert_array_equal(result, [expected])


def test_pad_and_reading_outside() -> None:
    a = np.arange(3)
    shifted = "def shift(a): return lambda i=4: pad(a[i - 1], 7)"
    assert run(shifted, {"i": 5}, a=a).tolist() == [7, 0, 1, 2, 7]
    message = "'shift' reads a[-1] at {'i': 0}, outside its shape (3,)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        run("def shift(a): return lambda i: a[i - 1]", {"i": 3}, a=a)


def test_indices_from_data() -> None:
    weight, data = RANDOM.standard_normal((5, 2)), np.array([4.0, 0.0, 4.0])
    text = "def take(weight, data): return lambda b, j: weight[data[b], j]"
    assert np.array_equal(run(text, {"b": 3, "j": 2}, weight=weight, data=data), weight[[4, 0, 4]])
    with pytest.raises(DataError, match=r"uses 0\.5 as an index"):
        run(text, {"b": 1, "j": 2}, weight=weight, data=[0.5])
    with pytest.raises(DataError, match="uses inf as an index"):
        run(text, {"b": 1, "j": 2}, weight=weight, data=[np.inf])
    with pytest.raises(ShapeError, match=r"reads weight\[9, 0\]"):
        run(text, {"b": 1, "j": 2}, weight=weight, data=[9])


def test_stages_and_outputs() -> None:
    a = RANDOM.standard_normal((3, 4))
    text = (
        "def center(a):\n"
        "    mean = lambda i: Sum(lambda j: a[i, j]) / a.shape[1]\n"
        "    return lambda i, j: a[i, j] - mean[i] + 0 * mean.shape[0], lambda i: mean[i]"
    )
    centered, mean = tdl.interpret(tdl.parse(text), {"i": 3, "j": 4}, {"a": a}, {"a": (3, 4)})
    np.testing.assert_allclose(mean, a.mean(axis=1), rtol=1e-13)
    np.testing.assert_allclose(centered, a - a.mean(axis=1, keepdims=True), atol=1e-13)


def test_empty_ranges() -> None:
    a = np.zeros((2, 0))
    for reducer, expected in (("Sum", 0), ("Prod", 1)):
        text = f"def f(a): return lambda i: {reducer}(lambda j: a[i, j])"
        assert run(text, {"i": 2, "j": 0}, a=a).tolist() == [expected, expected]
    for reducer in ("Max", "Min"):
        text = f"def f(a): return lambda i: {reducer}(lambda j: a[i, j])"
        with pytest.raises(ShapeError, match=f"'f' takes {reducer} over an empty range"):
            run(text, {"i": 2, "j": 0}, a=a)
    assert run("def f(a): return lambda i, j: a[i, j]", {"i": 2, "j": 0}, a=a).shape == (2, 0)


def test_rank_zero() -> None:
    assert run("def f(a): return lambda: a[()] * 2", {}, a=3).item() == 6


def test_opaque_functions() -> None:
    matrices = RANDOM.standard_normal((2, 3, 3))
    positive = matrices @ matrices.transpose(0, 2, 1) + np.eye(3)
    text = "def f(m):\n    C = Opaque()\n    return lambda b, i, j: C(m[b, :, :])[i, j]"
    calls = []

    def cholesky(matrix: Array) -> Array:
        calls.append(matrix)
        return np.linalg.cholesky(matrix)

    extents = {"b": 2, "i": 3, "j": 3}
    description = tdl.parse(text)
    (result,) = tdl.interpret(description, extents, {"m": positive}, {}, opaque={"C": cholesky})
    assert np.array_equal(result, np.linalg.cholesky(positive))
    assert len(calls) == 2
    with pytest.raises(OperatorError, match="opaque function 'C', which was not given"):
        tdl.interpret(description, extents, {"m": positive}, {})
    with pytest.raises(ShapeError, match=r"with 2 indices, but its shape is \(3,\)"):
        tdl.interpret(description, extents, {"m": positive}, {}, opaque={"C": np.diag})
    with pytest.raises(ShapeError, match=re.escape("reads C(...)[0, 2], outside the result's shape (2, 2)")):
        tdl.interpret(description, extents, {"m": positive}, {}, opaque={"C": lambda m: m[:2, :2]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(a, *, n): return lambda i: a[i] * n", "has attributes without values"),
        ("def f(a): return lambda *i: a[*i]", "no extent for variable 'i'"),
        ("def f(a): return lambda i, k: a[i + k]", "no extent for variable 'k'"),
        ("def f(a, b): return lambda i: a[i] * b[i]", "reads tensor 'b', which was not given"),
        ("def f(a): return lambda i: a[i, 0]", r"'f' reads a with 2 indices, but its shape is \(3,\)"),
    ],
)
def test_what_is_missing_is_named(text: str, message: str) -> None:
    with pytest.raises(TofuError, match=message):
        run(text, {"i": 3}, a=np.arange(3))


def test_a_box_is_for_one_stage() -> None:
    description = tdl.parse("def f(a):\n    b = lambda i: a[i]\n    return lambda i: b[i] + b[0]")
    with pytest.raises(OperatorError, match="has stages"):
        tdl.interpret(description, {"i": 3}, {"a": np.arange(3)}, {}, box={"i": (0, 1)})


def test_integers_that_only_appear_on_the_way() -> None:
    """Arithmetic is exact; functions of integers have 64 bits, functions of numbers reach infinity."""
    head = "def f(a):\n    return lambda i: "
    one = {"a": np.ones(1)}
    with pytest.raises(DataError, match="maximum takes integers of 64 bits at most; an argument is larger"):
        tdl.interpret(tdl.parse(head + "a[i] + maximum(10 ** 30, i)"), {"i": 1}, one, {})
    (found,) = tdl.interpret(tdl.parse(head + "a[i] + tanh(-(10 ** 400))"), {"i": 1}, one, {})
    assert found.tolist() == [0]


@pytest.mark.parametrize("value", ["square(10 ** 10)", "square(-square(10 ** 5))", "square(10 ** 200)"])
def test_squares_of_integers_are_exact_or_floats(value: str) -> None:
    description = tdl.parse(f"def f(a):\n    return lambda i: a[i] * {value}")
    (found,) = tdl.interpret(description, {"i": 1}, {"a": np.ones(1)}, {})
    assert found.tolist() == [np.inf if "200" in value else 1e20]
