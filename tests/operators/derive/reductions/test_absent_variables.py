"""Sums whose terms do not have all variables: each term counts once for every value of the others."""

from __future__ import annotations

import numpy as np
import pytest

import tofu

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        ("square(x[i, k] + s[j, m])", {"x": (7, 9), "s": (8, 9)}),
        ("x[i, k] + s[j, m]", {"x": (7, 9), "s": (8, 9)}),
        ("x[i, j] + s[0, k] + s[0, m]", {"x": (2, 2), "s": (1, 4)}),
        ("x[i, j] + s[0, k] * s[0, m]", {"x": (2, 2), "s": (1, 4)}),
        ("square(x[i, j] + s[0, k]) * s[0, m]", {"x": (2, 2), "s": (1, 4)}),
    ],
)
def test_kernel_agrees_with_interpreter(body: str, shapes: dict[str, tuple[int, ...]]) -> None:
    bound = tofu.parse(f"def f(x, s):\n    return lambda i, j: Sum(lambda k, m: {body})").bind(shapes)
    tensors = {name: RNG.normal(size=shape) for name, shape in shapes.items()}
    np.testing.assert_allclose(bound.compute(tensors)[0], bound.interpret(tensors)[0], rtol=1e-10)


def test_a_product_of_matrices_that_counts_several_times() -> None:
    text = "def f(x, s):\n    return lambda i, j: Sum(lambda m=3, k: x[i, k] * s[j, k])"
    x, s = RNG.normal(size=(16, 16)), RNG.normal(size=(16, 16))
    bound = tofu.parse(text).bind({"x": x.shape, "s": s.shape})
    np.testing.assert_allclose(bound.compute({"x": x, "s": s})[0], 3 * x @ s.T)


def test_a_term_without_any_variable_of_the_sum() -> None:
    bound = tofu.parse("def f(x, s):\n    return lambda i, j: Sum(lambda k: x[i, j] + s[0, k])").bind(
        {"x": (2, 2), "s": (1, 4)}
    )
    x, s = RNG.normal(size=(2, 2)), RNG.normal(size=(1, 4))
    np.testing.assert_allclose(bound.compute({"x": x, "s": s})[0], 4 * x + s.sum())
