"""Reducers that become stages: which do, and that nothing but their strategies changes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest

from tests.analyzer.random_expressions import random_expression
from tofu import tdl
from tofu.analyzer.bind.staged_bound import Bound, StagedBound, bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.analyzer.strategies.automatic_stages import with_stages
from tofu.errors import ShapeError

Shapes = Mapping[str, tuple[int, ...]]


def bound(description: tdl.ast.Description, shapes: Shapes) -> Bound | StagedBound:
    ranks = {name: len(shape) for name, shape in shapes.items()}
    return bind(specialize(description, {}, ranks), shapes)


def staged(text: str) -> str:
    return tdl.format(with_stages(tdl.parse(text)))


@pytest.mark.parametrize(
    ("result", "stages", "rest"),
    [
        (
            "lambda i: log(Sum(lambda k: x[i, k]))",
            ["sum_k = lambda i: Sum(lambda k: x[i, k])"],
            "log(sum_k[i])",
        ),
        (
            "lambda i: b[i] + Sum(lambda k: x[i, k])",
            ["sum_k = lambda i: Sum(lambda k: x[i, k])"],
            "b[i] + sum_k[i]",
        ),
        (
            "lambda i: Sum(lambda j: x[i, j]) * Max(lambda k: x[i, k])",
            ["max_k = lambda i: Max(lambda k: x[i, k])"],
            "Sum(lambda j: x[i, j]) * max_k[i]",
        ),
        (
            "lambda: Sum(lambda i: log(Sum(lambda k: x[i, k])))",
            ["sum_k = lambda i: Sum(lambda k: x[i, k])"],
            "Sum(lambda i: log(sum_k[i]))",
        ),
        (
            "lambda i, k: x[i, k] - sqrt(Sum(lambda m: x[i, m])) / sqrt(Sum(lambda m: x[i, m]))",
            ["sum_m = lambda i: Sum(lambda m: x[i, m])"],
            "x[i, k] - sqrt(sum_m[i]) / sqrt(sum_m[i])",
        ),
        (
            "lambda i: sqrt(Sum(lambda d=3: pad(b[i + d], 0)) * b[i])",
            ["sum_d = lambda i=b.shape[0]: Sum(lambda d=3: pad(b[i + d], 0))"],
            "sqrt(sum_d[i] * b[i])",
        ),
        (
            "lambda i: log(Sum(lambda d=3: b[i + d]))",
            ["sum_d = lambda i: Sum(lambda d=3: b[i + d])"],
            "log(sum_d[i])",
        ),
        (
            "lambda i: Max(lambda d=3: exp(b[i + d]))",
            ["candidates_d = lambda i, d=3: exp(b[i + d])"],
            "Max(lambda d=3: candidates_d[i, d])",
        ),
        (
            "lambda i: Min(lambda j: Sum(lambda k: x[i, k] * x[j, k]) + b[j])",
            [
                "sum_k = lambda i, j: Sum(lambda k: x[i, k] * x[j, k])",
                "candidates_j = lambda i, j: sum_k[i, j] + b[j]",
            ],
            "Min(lambda j: candidates_j[i, j])",
        ),
        (
            "lambda i: ArgMax(lambda k: x[i, k] ** 3)",
            [
                "candidates_k_ = lambda i, k_: x[i, k_] ** 3",
                "max_k_ = lambda i: Max(lambda k_: candidates_k_[i, k_])",
            ],
            "Min(lambda k: where(candidates_k_[i, k] == max_k_[i], k, 9007199254740992))",
        ),
    ],
)
def test_a_reducer_that_cannot_be_split_becomes_a_stage(result: str, stages: list[str], rest: str) -> None:
    tensors = [name for name in "xb" if f"{name}[" in result]
    lines = staged(f"def f({', '.join(tensors)}):\n    return {result}").splitlines()
    assert [line.strip() for line in lines[1:-1]] == stages
    assert lines[-1].endswith(f": {rest}")


@pytest.mark.parametrize(
    "result",
    [
        "lambda i: Sum(lambda k: x[i, k]) / x.shape[1]",
        "lambda i: -Sum(lambda j: Sum(lambda k: x[i, k] * x[j, k]))",
        "lambda i: Sum(lambda k: x[i, k]) - Sum(lambda k: x[k, i])",
        "lambda i: Max(lambda k: 2 * x[i, k] - abs(x[k, i]))",
    ],
)
def test_a_reducer_that_can_be_split_stays(result: str) -> None:
    text = f"def f(x):\n    return {result}"
    assert with_stages(tdl.parse(text)) == tdl.parse(text)


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (
            "the stage would have more elements than the result and each tensor",
            "def f(x):\n    return lambda i: Sum(lambda j: exp(Sum(lambda k: x[i, k] * x[j, k])))",
        ),
        (
            "the extent of i follows from all of the lambda",
            "def f(b):\n    return lambda i: log(Sum(lambda k=2: b[i + k])) + b[2 * i]",
        ),
        (
            "b and c must agree, and no stage would compare them",
            "def f(b, c):\n    return lambda: Sum(lambda k: b[k]) * Sum(lambda k: c[k])",
        ),
        (
            "an opaque function hides which elements it reads",
            "def f(b):\n    F = Opaque()\n    return lambda i: b[i] + Sum(lambda k: F(b[:])[k])",
        ),
    ],
)
def test_a_reducer_stays_if_a_stage_would_change_more_than_strategies(why: str, text: str) -> None:
    assert with_stages(tdl.parse(text)) == tdl.parse(text), why


def test_new_names_mean_nothing_else() -> None:
    text = "def f(sum_k):\n    max_k = lambda: Max(lambda k: sum_k[k])\n"
    text += "    return lambda i: sum_k[i] * exp(Sum(lambda k: sum_k[k])) + max_k[()]"
    assert "sum_k_2 = lambda: Sum(lambda k: sum_k[k])" in staged(text)


def test_tensors_that_disagree_are_still_refused() -> None:
    text = "def f(x, y):\n    return lambda i: Sum(lambda k: x[i, k]) * Sum(lambda k: y[i, k] * x[i, k])"
    description = with_stages(tdl.parse(text))
    assert len(description.stages) == 2
    with pytest.raises(ShapeError, match="'k' has extent 5 by axis 1 of y, but 3 by axis 1 of x"):
        bound(description, {"x": (2, 3), "y": (2, 5)})


@pytest.mark.parametrize("seed", range(150))
def test_random_expressions_keep_their_meaning_and_errors(seed: int) -> None:
    """The interpreter gives the same results with stages and without, and the same shapes are refused."""
    random = Random(seed)
    text, shapes = random_expression(random)
    description = tdl.parse(text)
    made = with_stages(description)
    assert with_stages(made) == made
    assert tdl.parse(tdl.format(made)) == made
    tensors = {name: np.random.default_rng(seed).uniform(0.5, 1.5, shape) for name, shape in shapes.items()}
    try:
        expected = bound(description, shapes)
    except ShapeError:
        with pytest.raises(ShapeError):
            bound(made, shapes)
        return
    found = bound(made, shapes)
    assert found.output_shapes == expected.output_shapes
    for mine, theirs in zip(found.interpret(tensors), expected.interpret(tensors), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
