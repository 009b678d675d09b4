"""Opaque functions as users bring them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tofu
from tofu.operators.kernels.kernel import KernelCall

Array = npt.NDArray[Any]

CHOLESKY = """
def batch_cholesky(batch_mat):
    Cholesky = Opaque()
    return lambda b, i, j: Cholesky(batch_mat[b, :, :])[i, j]
"""


def positive(count: int, size: int) -> Array:
    factor = np.random.default_rng(0).standard_normal((count, size, size))
    matrices: Array = factor @ factor.transpose(0, 2, 1) + np.eye(size)
    return matrices


def test_opaque_functions_split_along_the_batch_alone() -> None:
    bound: Any = tofu.parse(CHOLESKY).bind({"batch_mat": (6, 3, 3)})
    assert [(s.variable, s.kind) for s in bound.strategies] == [("b", "concat")]
    assert {r.variable: r.reason for r in bound.refusals} == dict.fromkeys(
        ("i", "j"), "it indexes the result of an opaque function"
    )
    matrices = positive(6, 3)
    functions = {"Cholesky": np.linalg.cholesky}
    expected = np.linalg.cholesky(matrices)
    for method in (bound.interpret, bound.compute):
        np.testing.assert_allclose(method({"batch_mat": matrices}, opaque=functions)[0], expected, 1e-12)
        with pytest.raises(tofu.OperatorError, match=r"Cholesky.*opaque="):
            method({"batch_mat": matrices})
    with pytest.raises(tofu.OperatorError, match=r"opaque=.* to tofu.parse, tofu.load, tofu.op or compute"):
        bound.compute({"batch_mat": matrices})


def test_opaque_functions_may_come_with_the_operator() -> None:
    operator = tofu.parse(CHOLESKY, opaque={"Cholesky": np.linalg.cholesky})
    matrices = positive(4, 2)
    bound: Any = operator.bind({"batch_mat": (4, 2, 2)})
    expected = np.linalg.cholesky(matrices)
    np.testing.assert_allclose(bound.compute({"batch_mat": matrices})[0], expected, 1e-12)
    np.testing.assert_allclose(bound.interpret({"batch_mat": matrices})[0], expected, 1e-12)
    with pytest.raises(tofu.OperatorError, match="no opaque function 'Cholseky'; it declares Cholesky"):
        tofu.parse(CHOLESKY, opaque={"Cholseky": np.linalg.cholesky})


def test_opaque_functions_among_other_things() -> None:
    operator = tofu.parse(
        "def solve(m, row, v):\n"
        "    inverse = Opaque()\n"
        "    x = lambda b, i: Sum(lambda j=m.shape[1]: inverse(m[row[b], :, :])[i, j] * v[b, j])\n"
        "    return lambda b, i: x[b, i] - inverse(m[b // 2, :, :])[v.shape[1] - 1 - i, 0]"
    )
    matrices = positive(5, 3)
    tensors = {"m": matrices, "row": np.array([4, 0, 2, 2]), "v": matrices[:4, 0]}
    bound: Any = operator.bind({name: tensor.shape for name, tensor in tensors.items()})
    inverses = np.linalg.inv(matrices)
    expected = np.einsum("bij,bj->bi", inverses[tensors["row"]], tensors["v"])
    expected -= inverses[[0, 0, 1, 1], ::-1, 0]
    functions = {"inverse": np.linalg.inv}
    np.testing.assert_allclose(bound.compute(tensors, opaque=functions)[0], expected, 1e-10)
    np.testing.assert_allclose(bound.interpret(tensors, opaque=functions)[0], expected, 1e-10)


@pytest.mark.parametrize("returned", ["no numbers", 1j])
def test_an_opaque_function_returns_numbers(returned: object) -> None:
    bound: Any = tofu.parse(CHOLESKY).bind({"batch_mat": (2, 3, 3)})
    functions = {"Cholesky": lambda m: np.full((3, 3), returned)}
    for run in (bound.interpret, bound.compute):
        with pytest.raises(tofu.DataError, match=r"what the opaque function 'Cholesky' returns holds values"):
            run({"batch_mat": positive(2, 3)}, opaque=functions)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m: m[0], "its result is read with 2 indices"),
        (lambda m: m[:2, :2], "smaller than the indices|runs from 0 to 2"),
    ],
)
def test_an_opaque_result_that_does_not_fit(function: Callable[[Array], Array], message: str) -> None:
    bound: Any = tofu.parse(CHOLESKY).bind({"batch_mat": (2, 3, 3)})
    with pytest.raises(tofu.TofuError, match=message):
        bound.compute({"batch_mat": positive(2, 3)}, opaque={"Cholesky": function})


def test_opaque_results_of_different_shapes() -> None:
    bound: Any = tofu.parse(CHOLESKY).bind({"batch_mat": (2, 3, 3)})
    sizes = iter((3, 4))
    with pytest.raises(tofu.DataError, match="must have one shape"):
        bound.compute(
            {"batch_mat": positive(2, 3)}, opaque={"Cholesky": lambda m: np.zeros((next(sizes), 3))}
        )


def test_an_opaque_function_cannot_change_its_arguments() -> None:
    bound: Any = tofu.parse(CHOLESKY).bind({"batch_mat": (2, 3, 3)})

    def greedy(matrix: Array) -> Array:
        matrix[...] = 0
        return matrix

    with pytest.raises(tofu.DataError, match="read-only"):
        bound.compute({"batch_mat": positive(2, 3)}, opaque={"Cholesky": greedy})


def test_function_that_raises_is_named() -> None:
    bound = tofu.parse(CHOLESKY, opaque={"Cholesky": np.linalg.cholesky}).bind({"batch_mat": (2, 3, 3)})
    for run in (bound.interpret, bound.compute):
        with pytest.raises(
            tofu.DataError,
            match=r"the opaque function 'Cholesky' raises LinAlgError for \(3, 3\)",
        ):
            run({"batch_mat": np.zeros((2, 3, 3))})


def test_a_kernel_runs_again_after_its_function_failed() -> None:
    failures = iter((True, False, False))

    def flaky(matrix: Array) -> Array:
        if next(failures, False):
            raise RuntimeError("try again")
        return matrix * 2

    text = "def f(m):\n    g = Opaque()\n    return lambda b, i: g(m[b + 0, :])[i] + g(m[1 - b, :])[i]"
    bound: Any = tofu.parse(text, opaque={"g": flaky}).bind({"m": (2, 3)})
    data, out = np.arange(6.0).reshape(2, 3), np.empty((2, 3))
    run = bound.prepare(
        KernelCall(bound, {"b": (0, 2), "i": (0, 3)}, {"m": data}, {"m": ((0, 2), (0, 3))}, (out,))
    )
    with pytest.raises(tofu.DataError, match="try again"):
        run()
    for _ in range(2):
        out[...] = np.nan
        run()
        np.testing.assert_array_equal(out, 2 * data + 2 * data[::-1])


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_nothing_to_work_on(shape: tuple[int, ...]) -> None:
    bound = tofu.parse(CHOLESKY, opaque={"Cholesky": np.linalg.cholesky}).bind({"batch_mat": shape})
    for (result,) in (
        bound.interpret({"batch_mat": np.zeros(shape)}),
        bound.compute({"batch_mat": np.zeros(shape)}),
    ):
        assert result.shape == shape


def test_adjoints_keep_opaque_functions_of_other_tensors() -> None:
    text = "def f(a, m):\n    g = Opaque()\n    return lambda b, i: a[b] * g(m[b, :])[i]"
    operator = tofu.parse(text, opaque={"g": np.sort})
    report = tofu.audit(operator, shapes={"a": (3,), "m": (3, 4)})
    assert not report.refuted
    assert "f_grad_a" in report.grades
    shifted = tofu.parse(
        "def f(a, m):\n    g = Opaque()\n    return lambda i: a[i + 1] * g(m[:])[i]", opaque={"g": np.sort}
    )
    reasons = {
        finding.operator: finding.reason
        for finding in tofu.audit(shifted, shapes={"a": (5,), "m": (4,)}).findings
    }
    assert "'g' would be called, or its result be read, out of range" in reasons["f_grad_a"]
