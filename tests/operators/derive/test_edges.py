"""Derived kernels at the edges: empty boxes, outputs over inputs, bad data, opaque functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu import tdl
from tofu.errors import DataError, ExecutionError, OperatorError
from tofu.operators.derive import _recipes, derive
from tofu.operators.derive.steps.layout import layout_of
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

SUM = "Sum(lambda k: a[i, k] * b[39 - k, j])"


def call(text: str, inputs: dict[str, Any], outputs: tuple[Any, ...], **box: tuple[int, int]) -> KernelCall:
    bound = derived(tdl.parse(text)).bind({name: array.shape for name, array in inputs.items()})
    intervals = {name: (0, extent) for name, extent in bound.extents.items()} | box
    regions = {name: tuple((0, size) for size in array.shape) for name, array in inputs.items()}
    return KernelCall(bound, intervals, inputs, regions, outputs)


@pytest.mark.parametrize(
    ("reducer", "identity"), [("Sum", 0), ("Prod", 1), ("Max", -np.inf), ("Min", np.inf)]
)
def test_nothing_reduced_gives_the_identity(reducer: str, identity: float) -> None:
    out = np.full(3, np.nan, np.float32)
    text = f"def f(a):\n    return lambda i: {reducer}(lambda j: a[i, j] + 1)"
    derive(call(text, {"a": np.ones((3, 4), np.float32)}, (out,), j=(2, 2)))()
    np.testing.assert_array_equal(out, identity)


def test_nothing_contracted_gives_zero() -> None:
    out = np.full((5, 6), np.nan, np.float32)
    a, b = np.ones((5, 4), np.float32), np.ones((4, 6), np.float32)
    text = "def f(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
    derive(call(text, {"a": a, "b": b}, (out,), k=(1, 1)))()
    np.testing.assert_array_equal(out, 0)


@pytest.mark.parametrize("elements", [1 << 20, 300, 20])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("lambda i, j: Sum(lambda k: maximum(a[i, k], -1) * minimum(b[k, j], 2))", "ik,kj->ij"),
        ("lambda j, i: Sum(lambda k: maximum(a[i, k], -1) * minimum(b[k, j], 2))", "ik,kj->ji"),
    ],
)
def test_contractions_in_little_memory(
    monkeypatch: pytest.MonkeyPatch, elements: int, text: str, path: str
) -> None:
    """Factors that are computed are packed chunk by chunk, and chunks of the sum are added up."""
    monkeypatch.setattr("tofu.operators.derive.program.contraction.WORKSPACE_ELEMENTS", elements)
    _recipes.cache_clear()
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((24, 40), (40, 30)))
    expected = np.einsum(path, np.maximum(a, -1), np.minimum(b, 2))
    out = np.full(expected.shape, np.nan, np.float32)
    run = derive(call(f"def f(a, b):\n    return {text}", {"a": a, "b": b}, (out,)))
    _recipes.cache_clear()
    for _ in range(2):
        run()
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("limit", "factor", "products"), [(20, "1", 1), (10**6, SUM, 2), (20, SUM, 1)])
def test_large_products_are_stored_in_the_output_alone(
    monkeypatch: pytest.MonkeyPatch, limit: int, factor: str, products: int
) -> None:
    """A product in the memory of the output is one step, however large; others are summed in blocks."""
    monkeypatch.setattr("tofu.operators.derive.program.program.RESULT_ELEMENTS", limit)
    _recipes.cache_clear()
    a, b = np.ones((24, 40), np.float32), np.ones((40, 30), np.float32)
    out = np.full((24, 30), np.nan, np.float32)
    source = f"def f(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j]) * {factor}"
    found = call(source, {"a": a, "b": b}, (out,))
    run = derive(found)
    box = tuple([found.box[name] for name in found.bound.variables])
    (recipe,) = _recipes(found.bound, box, layout_of(found))
    _recipes.cache_clear()
    assert [function for function, _, _ in recipe.steps].count(np.matmul) == products
    run()
    np.testing.assert_array_equal(out, 40 if factor == "1" else 1600)


@pytest.mark.parametrize("empty", ["i", "j"])
def test_no_outputs(empty: str) -> None:
    shape = (0, 6) if empty == "i" else (5, 0)
    a, b = np.ones((5, 4), np.float32), np.ones((4, 6), np.float32)
    text = "def f(a, b):\n    return lambda i, j: b[0, j] + Sum(lambda k: a[i, k] * b[k, j])"
    derive(call(text, {"a": a, "b": b}, (np.empty(shape, np.float32),), **{empty: (2, 2)}))()


def test_outputs_may_be_the_inputs() -> None:
    text = (
        "def update(w, m, g):\n    return (lambda i: w[i] - 2 * (m[i] + g[i]), "
        "lambda i: m[i] + g[i] + where(w[i] > 0, w[i], -1))"
    )
    rng = np.random.default_rng(2)
    w, m, g = (rng.integers(-9, 9, 300_000).astype(np.float32) for _ in range(3))
    expected = w - 2 * (m + g), m + g + np.where(w > 0, w, -1)
    derive(call(text, {"w": w, "m": m, "g": g}, (w, m)))()
    np.testing.assert_array_equal(w, expected[0])
    np.testing.assert_array_equal(m, expected[1])


def test_values_not_chosen_do_not_leak() -> None:
    a = np.array([-1.0, 0.0, 4.0], np.float32)
    out = np.empty_like(a)
    with np.errstate(all="ignore"):
        derive(call("def f(a):\n    return lambda i: where(a[i] > 0, log(a[i]), -0.5)", {"a": a}, (out,)))()
    np.testing.assert_array_equal(out, np.array([-0.5, -0.5, np.log(np.float32(4))], np.float32))


@pytest.mark.parametrize(
    "number",
    ["10 ** 10 ** 10", "10 ** 250 * 10 ** 250", "10 ** 20 // 10 ** 19", "2 ** -1", "7 % -4"],
)
def test_constants_of_any_size_are_what_the_interpreter_gives(number: str) -> None:
    bound = tofu.parse(f"def f(a):\n    return lambda i: a[i] * ({number}) + a[i]").bind({"a": (2,)})
    arrays = {"a": np.array([1.0, -2.0])}
    np.testing.assert_array_equal(bound.compute(arrays), bound.interpret(arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "number",
    [
        "i ** 20",
        "10 ** (i - i // 40)",
        "(i + 1) ** 9 * (i + 1) ** 8",
        "i ** 13 + i ** 12 * 100",
        "Prod(lambda k=25: i + 1)",
        "Sum(lambda k=40: (k + i) ** 12)",
        "Max(lambda k=40: (k + i) ** 14)",
        "Sum(lambda k=40: where(a[0] > 0, k ** 11 * 9, i))",
    ],
)
def test_integers_beyond_64_bits_become_floats(number: str, dtype: str) -> None:
    bound = tofu.parse(f"def f(a):\n    return lambda i=30: a[i % 2] * ({number})").bind({"a": (2,)})
    arrays = {"a": np.array([1.0, -2.0], dtype)}
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(bound.compute(arrays), bound.interpret(arrays), tolerance)


def test_an_index_from_data_outside_its_tensor_is_an_error() -> None:
    inputs = {"w": np.ones((4, 2), np.float32), "d": np.array([0, 4], np.float32)}
    run = derive(call("def f(w, d):\n    return lambda i, j: w[d[i], j]", inputs, (np.empty((2, 2)),)))
    with pytest.raises(DataError, match=r"tensor 'w', dimension 0: index 4 is outside \[0, 4\)"):
        run()


def test_opaque_functions_have_no_derived_kernel() -> None:
    text = "def f(a):\n    g = Opaque()\n    return lambda b, i=3: g(a[b, :])[i]"
    with pytest.raises(OperatorError, match="'g' is an opaque function"):
        derive(call(text, {"a": np.ones((2, 3))}, (np.ones((2, 3)),)))


@pytest.mark.parametrize(
    "value",
    [
        "a[i, 0] + erf(i - 2)",
        "a[i, 0] * 2 ** -1",
        "where(a.shape[0] > 2 or a[i, 0] > 0, a[i, 0], 7)",
        "where(1 > 2 or 2 > 3, 0, a[i, 0])",
        "a[i, 0] + floor(i // 2) + round(i)",
        "Max(lambda k: Sum(lambda m: a[k, m] * a[i, 0]))",
        "a[i, 0] + (1 / (a.shape[0] - 5))",
        "where(a.shape[1] - 3, a[i, 0], a[i, 1])",
        "where(a[i, 0] > 0, uniform(i, 0, 1), a[i, 1])",
        "where(a[i, 0] > 0, a[i, 1], i / 3)",
    ],
)
def test_what_constants_and_indices_decide(value: str) -> None:
    text = f"def f(a):\n    return lambda i: {value}"
    a = np.random.default_rng(4).integers(-3, 4, (5, 3)).astype(np.float32)
    out = np.full(5, np.nan, np.float32)
    given = call(text, {"a": a}, (out,))
    derive(given)()
    with np.errstate(all="ignore"):
        (expected,) = tdl.interpret(given.bound.description, given.bound.extents, {"a": a}, {"a": a.shape})
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_values_of_index_variables_that_do_not_fit_are_refused() -> None:
    text = "def f(x):\n    return lambda i: Sum(lambda k=10 ** 15: x[i] * exp(k * x[i]))"
    operator = tofu.parse(text).bind({"x": (3,)})
    message = "the values of index variables in 'f' would take 8,000,000,000,000,000 bytes, and this machine"
    with pytest.raises(ExecutionError, match=message):
        operator.compute({"x": np.ones(3)})
