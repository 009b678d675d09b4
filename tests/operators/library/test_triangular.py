"""Factors, inverses and products of triangular matrices against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.errors import OperatorError
from tofu.operators import get

RNG = np.random.default_rng(18)
LOWER = np.tril(RNG.uniform(0.1, 1, (2, 3, 3))) + np.eye(3)
SYMMETRIC = LOWER @ LOWER.swapaxes(1, 2)


def apply(name: str, tensors: dict[str, np.ndarray], **attributes: object) -> np.ndarray:
    shapes = {tensor: array.shape for tensor, array in tensors.items()}
    (result,) = get(name).bind(shapes, **attributes).compute(tensors)
    return result


def test_cholesky_and_inverse_from_it() -> None:
    np.testing.assert_allclose(apply("linalg_potrf", {"A": SYMMETRIC}), LOWER)
    np.testing.assert_allclose(apply("linalg_potri", {"A": LOWER}), np.linalg.inv(SYMMETRIC))


def test_gradient_of_cholesky_is_symmetric(
    forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    """A symmetric step changes the factor as the gradient says, half of it for each of the two elements."""
    operator, head = get("linalg_potrf"), RNG.normal(size=(2, 3, 3))
    found = gradients(operator, {}, {"A": SYMMETRIC}, (head,))["A"]
    np.testing.assert_allclose(found, found.swapaxes(1, 2))
    for i, j in ((0, 0), (1, 0), (2, 1)):
        step = np.zeros((3, 3))
        step[i, j] = step[j, i] = 1e-6
        ends = [
            (forward(operator, {}, {"A": SYMMETRIC + sign * step})["output_0"] * head).sum((1, 2))
            for sign in (1, -1)
        ]
        expected = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose((found * step).sum((1, 2)) / 1e-6, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("rightside", [False, True])
def test_product_and_solution(transpose: bool, rightside: bool) -> None:
    upper = np.triu(RNG.normal(size=(2, 3, 3)), 1)
    factor = LOWER.swapaxes(1, 2) if transpose else LOWER
    other = RNG.normal(size=(2, 4, 3) if rightside else (2, 3, 4))
    tensors = {"A": LOWER + upper, "B": other}
    settings = {"transpose": transpose, "rightside": rightside, "alpha": 0.5}
    product = other @ factor if rightside else factor @ other
    np.testing.assert_allclose(apply("linalg_trmm", tensors, **settings), 0.5 * product)
    inverse = np.linalg.inv(factor)
    solution = other @ inverse if rightside else inverse @ other
    np.testing.assert_allclose(apply("linalg_trsm", tensors, **settings), 0.5 * solution)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("rightside", [False, True])
def test_gradients_of_solutions(
    transpose: bool, rightside: bool, forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    operator = get("linalg_trsm")
    settings = {"transpose": transpose, "rightside": rightside, "alpha": 0.5}
    other = RNG.normal(size=(2, 4, 3) if rightside else (2, 3, 4))
    tensors, head = {"A": LOWER, "B": other}, RNG.normal(size=other.shape)
    found = gradients(operator, settings, tensors, (head,))
    for name, array in tensors.items():
        for position in [(0, 0, 0), (1, 2, 1), (0, 1, 2)]:
            step = np.zeros_like(array)
            step[position] = 1e-6
            ends = [
                (forward(operator, settings, {**tensors, name: array + sign * step})["output_0"] * head).sum()
                for sign in (1, -1)
            ]
            expected = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(found[name][position], expected, rtol=1e-5, atol=1e-7)


def test_only_the_opaque_stage_keeps_matrices_whole() -> None:
    """Everything around it splits in every dimension."""
    shapes = {"A": (4, 6, 6), "B": (4, 6, 8), "inverted": (4, 6, 6)}
    opaque, product = get("linalg_trsm").stages({}, shapes)
    assert [strategy.variable for strategy in opaque.bind(shapes).strategies] == ["b0"]
    kinds = {strategy.variable: strategy.kind for strategy in product.bind(shapes).strategies}
    assert kinds == {"b0": "concat", "i": "concat", "j": "concat", "k": "reduce"}


def test_general_product_and_sum() -> None:
    a, b, c = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 4, 5)), RNG.normal(size=(2, 3, 5))
    found = apply("linalg_gemm", {"A": a, "B": b, "C": c}, transpose_a=True, alpha=0.5, beta=2)
    np.testing.assert_allclose(found, 0.5 * a.swapaxes(1, 2) @ b + 2 * c)


def test_custom_operators_are_refused_with_advice() -> None:
    with pytest.raises(OperatorError, match=r"Custom is not supported: .*@tofu\.op"):
        get("Custom")
