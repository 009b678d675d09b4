"""Derived kernels compute what the descriptions say, on any box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu import tdl
from tofu.operators.derive import _recipes, derive
from tofu.operators.kernels import strided
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

Shapes = dict[str, tuple[int, ...]]

EXACT: dict[str, tuple[str, Shapes]] = {
    "copy": ("def f(a):\n    return lambda i, j: a[i, j]", {"a": (3, 5)}),
    "transpose": ("def f(a):\n    return lambda j, i: a[i, j] + 1", {"a": (3, 5)}),
    "reversed": ("def f(a):\n    return lambda i: a[a.shape[0] - 1 - i] * i", {"a": (7,)}),
    "broadcast": ("def f(a, b):\n    return lambda i, j, k: a[i, j] * b[k] - b[j]", {"a": (2, 4), "b": (4,)}),
    "strided": ("def f(a):\n    return lambda i=3: a[2 * i + 1] - a[2 * i]", {"a": (7,)}),
    "quotient": ("def f(a):\n    return lambda i=9: a[i // 3] + a[(i + 1) % 4]", {"a": (4,)}),
    "diagonal": ("def f(a):\n    return lambda i: a[i, i] * a[i, 0]", {"a": (4, 4)}),
    "padded": ("def f(a):\n    return lambda i=9, j=3: pad(a[i - 2, 2 * j - 1], 7)", {"a": (5, 4)}),
    "far away": ("def f(a):\n    return lambda i=3: pad(a[i + 90], 2) + pad(a[1000 * i], 3)", {"a": (4,)}),
    "padded diagonals": (
        "def f(a):\n    return lambda i=9, j=9: pad(a[i + j, abs(i - j - 2) - 1, i - j], 2)",
        {"a": (5, 4, 5)},
    ),
    "padded by value": ("def f(a):\n    return lambda i=6: pad(a[i - 1], i * 2)", {"a": (4,)}),
    "where": (
        "def f(a, b):\n    return lambda i, j: where(i > j and not a[i, j] == b[j], a[i, j], -b[j])",
        {"a": (4, 4), "b": (4,)},
    ),
    "comparison as number": ("def f(a):\n    return lambda i: (a[i] > 0) + (a[i] > 1) * 2", {"a": (6,)}),
    "two outputs": (
        "def f(a, b):\n    return (lambda i, j: a[i, j] * b[j] + b[j], lambda i, j: a[i, j] * b[j])",
        {"a": (3, 4), "b": (4,)},
    ),
    "outputs of two kinds": (
        "def f(a):\n    return (lambda i: Sum(lambda j: a[i, j]), lambda j: Max(lambda i: a[i, j]))",
        {"a": (3, 4)},
    ),
    "nothing to sum": (
        "def f(a, b):\n    return lambda i=2: Sum(lambda j, k=2: a[j + k] * b[j, i])",
        {"a": (0,), "b": (0, 2)},
    ),
    "matmul": (
        "def f(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])",
        {"a": (6, 5), "b": (5, 7)},
    ),
    "matmul transposed": (
        "def f(a, b):\n    return lambda j, i: Sum(lambda k: a[k, i] * b[j, k])",
        {"a": (9, 8), "b": (7, 9)},
    ),
    "batched matmul": (
        "def f(a, b):\n    return lambda i, b0, j: 2 * Sum(lambda k: a[b0, i, k] * -b[b0, j, k])",
        {"a": (2, 5, 6), "b": (2, 7, 6)},
    ),
    "biased matmul": (
        "def f(a, b, c):\n    return lambda i, j: c[j] + Sum(lambda k: a[i, k] * b[k, j]) * c[j]",
        {"a": (6, 5), "b": (5, 7), "c": (7,)},
    ),
    "three factors": (
        "def f(a, b, c):\n    return lambda i, l: Sum(lambda j, k: a[i, j] * b[j, k] * c[k, l])",
        {"a": (6, 5), "b": (5, 4), "c": (4, 7)},
    ),
    "scaled factors": (
        "def f(a, b, s):\n    return lambda i, j: Sum(lambda k: a[i, k] * s[k] * b[k, j] * s[i])",
        {"a": (5, 5), "b": (5, 7), "s": (5,)},
    ),
    "conv1d": (
        "def f(d, w):\n    return lambda b, co, x: Sum(lambda ci, dx: d[b, ci, x + dx] * w[ci, co, dx])",
        {"d": (3, 4, 9), "w": (4, 5, 3)},
    ),
    "conv2d padded strided": (
        "def f(d, w):\n    return lambda n, f, y=3, x=4: Sum(lambda c, dy, dx: "
        "pad(d[n, c, 2 * y + dy - 1, x + 2 * dx - 2], 0) * w[f, c, dy, dx])",
        {"d": (2, 3, 5, 4), "w": (4, 3, 3, 3)},
    ),
    "guarded product": (
        "def f(g, w):\n    return lambda n, x=7, c=3: Sum(lambda f, k=3: where((x - k + 1) % 2 == 0, "
        "pad(g[n, f, (x - k + 1) // 2], 0) * w[f, c, k], 0))",
        {"g": (2, 4, 4), "w": (4, 3, 3)},
    ),
    "window maximum": (
        "def f(a):\n    return lambda n, y=3, x=3: "
        "Max(lambda i=3, j=2: pad(a[n, 2 * y + i - 1, 2 * x + j], -inf))",
        {"a": (2, 6, 6)},
    ),
    "window sum": (
        "def f(a):\n    return lambda n=40, x=40: Sum(lambda i=2, j=3: a[n + i, x + j] * (i + 1))",
        {"a": (41, 42)},
    ),
    "product and minimum": (
        "def f(a):\n    return lambda i: Prod(lambda j: a[i, j]) + Min(lambda j: a[i, j] * j)",
        {"a": (3, 4)},
    ),
    "sum of a constant": ("def f(a):\n    return lambda i: Sum(lambda j=5: a[i] + 1)", {"a": (3,)}),
    "nested sums": (
        "def f(a):\n    return lambda i: Sum(lambda j: a[i, j] * Max(lambda k: a[k, j] - a[i, k]))",
        {"a": (4, 4)},
    ),
    "data-dependent": ("def f(w, d):\n    return lambda i, j: w[abs(d[i]), j] * 2", {"w": (5, 3), "d": (6,)}),
    "one-hot sum": (
        "def f(d, g):\n    return lambda v=5, j=3: Sum(lambda i: where(d[i] == v, g[i, j], 0))",
        {"d": (7,), "g": (7, 3)},
    ),
    "scalar tensor": (
        "def f(a, s):\n    return lambda i: a[i] - s[0] * square(a[i])",
        {"a": (5,), "s": (1,)},
    ),
    "total": ("def f(a):\n    return lambda o=1: Sum(lambda i, j: a[i, j] * a[i, j])", {"a": (5, 3)}),
    "powers": (
        "def f(a):\n    return lambda i: a[i] ** 2 + a[i] ** 3 + i ** 2 + a[i] // 2 + a[i] % 3",
        {"a": (9,)},
    ),
    "only indices": (
        "def f(a):\n    return lambda i=a.shape[0], j=3: where(i >= j, i * 10 + j, 0)",
        {"a": (4,)},
    ),
    "rounding": (
        "def f(a):\n    return lambda i: floor(a[i] / 2) + ceil(a[i] / 2) * 2 + round(i)",
        {"a": (6,)},
    ),
}

ROUNDED: dict[str, tuple[str, Shapes]] = {
    "softmax": (
        "def f(x):\n    return lambda i, j: exp(x[i, j] - Max(lambda k: x[i, k])) / "
        "Sum(lambda l: exp(x[i, l] - Max(lambda k: x[i, k])))",
        {"x": (4, 6)},
    ),
    "normalise": (
        "def f(x):\n    return lambda n, c: (x[n, c] - Sum(lambda m: x[m, c]) / x.shape[0]) * rsqrt(1 + "
        "Sum(lambda m: square(x[m, c] - Sum(lambda k: x[k, c]) / x.shape[0])) / x.shape[0])",
        {"x": (6, 4)},
    ),
    "functions": (
        "def f(x):\n    return (lambda i: tanh(x[i]) * sigmoid(x[i]) + relu(x[i]), "
        "lambda i: erf(x[i]) + "
        "softplus(x[i]) + log1p(abs(x[i])) + reciprocal(3.5 + cos(x[i])), "
        "lambda i: power(2, x[i]) + 2 ** -x[i])",
        {"x": (9,)},
    ),
    "all over": ("def f(x):\n    return lambda i: x[i] / Sum(lambda j: square(x[j]))", {"x": (7,)}),
}


def tensors_of(shapes: Shapes) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return {name: rng.integers(-4, 5, shape).astype(np.float64) for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("case", EXACT)
def test_integer_values_are_exact(case: str, dtype: str, check_kernel: Any) -> None:
    text, shapes = EXACT[case]
    if dtype == "int64" and "inf" in text:
        pytest.skip("there is no infinite integer")
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors_of(shapes), dtype=dtype)


@pytest.mark.parametrize("block", [1, 5])
@pytest.mark.parametrize("case", EXACT)
def test_any_block_size_gives_the_same(case: str, block: int, check_kernel: Any, monkeypatch: Any) -> None:
    from tofu.operators.derive.nodes import blocks
    from tofu.operators.derive.program import contraction

    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", block)
    monkeypatch.setattr(contraction, "WORKSPACE_ELEMENTS", 16 * block)
    text, shapes = EXACT[case]
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors_of(shapes), boxes=3)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("case", ROUNDED)
def test_floats_are_close(case: str, dtype: str, tolerance: float, check_kernel: Any) -> None:
    text, shapes = ROUNDED[case]
    tensors = {name: array / 3 for name, array in tensors_of(shapes).items()}
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors, dtype=dtype, tolerance=tolerance)


@pytest.mark.parametrize("case", EXACT)
def test_steps_that_compute_on_copies_give_the_same(case: str, check_kernel: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(strided, "_trusted", lambda *_: False)
    _recipes.cache_clear()
    text, shapes = EXACT[case]
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors_of(shapes))
    monkeypatch.undo()
    _recipes.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [4, 8, 16, 32])
def test_columns_of_any_row_length_are_right(columns: int, dtype: str) -> None:
    """Each residue of the index is a piece: a column of the matrix, which a function walks down."""
    text = f"def f(x):\n    return lambda t, d={columns}: -x[t, (d + {columns // 2}) % {columns}]"
    bound = derived(tdl.parse(text)).bind({"x": (5, columns)})
    x = np.arange(1, 1 + 5 * columns).reshape(5, columns).astype(dtype)
    np.testing.assert_array_equal(bound.compute({"x": x})[0], bound.interpret({"x": x})[0])


@pytest.mark.parametrize("value", ["i % (-j)", "2 * i // j", "(2 * i - 3) % j", "i ** (-j)"])
def test_index_values_without_an_integer_result(value: str) -> None:
    description = tdl.parse(f"def f(a):\n    return lambda i, j=3: a[i] * 0 + {value}")
    bound = derived(description).bind({"a": (4,)})
    tensors = {"a": np.ones(4)}
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bound.compute(tensors)[0], bound.interpret(tensors)[0])


def test_an_output_that_repeats_an_input_is_read_before_another_output_overwrites_it() -> None:
    text = "def f(a, b):\n    return (lambda i: b[i] * a[i] + 1, lambda i: a[i])"
    bound = derived(tdl.parse(text)).bind({"a": (3,), "b": (3,)})
    a, b, second = np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.zeros(3)
    regions = {"a": ((0, 3),), "b": ((0, 3),)}
    derive(KernelCall(bound, {"i": (0, 3)}, {"a": a, "b": b}, regions, (a, second)))()
    assert (a.tolist(), second.tolist()) == ([5, 11, 19], [1, 2, 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_sigmoids_have_all_their_digits(dtype: str) -> None:
    bound = tofu.parse("def f(a):\n    return lambda i: sigmoid(a[i])").bind({"a": (5,)})
    a = np.array([-80, -21, -17.5, -5, 2], dtype)
    (found,) = bound.compute({"a": a})
    expected = np.exp(a.astype(float)) / (1 + np.exp(a.astype(float)))
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
