"""Sums of products and quotients are rewritten into sums of the same values."""

from __future__ import annotations

import numpy as np
import pytest

import tofu

SHAPES = {"a": (3,), "b": (2,), "c": (2, 3), "d": (3,)}


@pytest.mark.parametrize(
    "term",
    [
        "a[k] * a[k] / d[k]",
        "a[k] * a[k] * b[i] / d[k]",
        "b[i] * a[k] * a[k] * a[k] / (d[k] * d[k])",
        "exp(a[k]) * exp(a[k]) / d[k] * b[i]",
        "c[i, k] * c[i, k] * d[k] / (a[k] + 9)",
        "where(k >= i, a[k] * a[k] / d[k], 0)",
    ],
)
def test_equal_factors_of_a_quotient(term: str) -> None:
    """The divisor divides one of them."""
    shapes = {name: shape for name, shape in SHAPES.items() if f"{name}[" in term}
    operator = tofu.parse(f"def f({', '.join(shapes)}):\n    return lambda i=2: Sum(lambda k=3: {term})")
    rng = np.random.default_rng(0)
    tensors = {name: rng.uniform(0.5, 2, shape) for name, shape in shapes.items()}
    bound = operator.bind(shapes)
    np.testing.assert_allclose(bound.compute(tensors)[0], bound.interpret(tensors)[0])
