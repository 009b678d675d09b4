"""Gradients and boxes of one operator in plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tofu
from tofu.errors import OperatorError, ShapeError

RNG = np.random.default_rng(11)
SOFTMAX = "def softmax(x):\n    return lambda b, j: exp(x[b, j]) / Sum(lambda k: exp(x[b, k]))"


def test_gradients_through_stages_are_differences() -> None:
    operator, x, head = tofu.parse(SOFTMAX), RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3))
    found = operator.gradients({"x": x}, [head])
    bound = operator.bind({"x": (2, 3)})
    expected = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        up, down = (bound.compute({"x": x + sign * step})[0] for sign in (1, -1))
        expected[place] = ((up - down) * head).sum() / 2e-6
    np.testing.assert_allclose(found["x"], expected, atol=1e-8)


def test_terms_are_listed_from_the_last_stage_on() -> None:
    terms = tofu.parse(SOFTMAX).gradient_terms({"x": (2, 3)})
    assert [(term.of.name, term.tensor) for term in terms] == [
        ("softmax", "x"),
        ("softmax", "sum_k"),
        ("softmax_sum_k", "x"),
    ]


def test_an_output_without_a_use_has_a_head_of_zeros() -> None:
    operator = tofu.parse("def f(x):\n    return lambda i: 2 * x[i], lambda i: 3 * x[i]")
    found = operator.gradients({"x": np.ones(2)}, [np.array([1.0, 0.0]), np.array([0.0, 1.0])])
    np.testing.assert_array_equal(found["x"], [2, 3])


@pytest.mark.parametrize("variable", ["i", "k"])
def test_boxes_make_the_whole(variable: str) -> None:
    bound = tofu.parse("def f(a):\n    return lambda i: Sum(lambda k: a[i, k])").bind({"a": (4, 6)})
    a = RNG.normal(size=(4, 6))
    parts = [bound.compute({"a": a}, box={variable: box})[0] for box in ((0, 1), (1, 4))]
    if variable == "i":
        np.testing.assert_allclose(np.concatenate(parts), a.sum(1))
    else:
        np.testing.assert_allclose(parts[0] + parts[1], a[:, :4].sum(1))


def test_a_box_of_an_operator_with_stages_is_one_of_its_last_stage() -> None:
    bound, x = tofu.parse(SOFTMAX).bind({"x": (4, 3)}), RNG.normal(size=(4, 3))
    (whole,), (part,) = bound.compute({"x": x}), bound.compute({"x": x}, box={"b": (1, 3)})
    np.testing.assert_allclose(part, whole[1:3])


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({"z": (0, 1)}, "f has no variable 'z'; it has i, k"),
        ({"i": (2, 5)}, r"f: \[2, 5\) is not a part of 'i', whose extent is 4"),
        ({"i": (2, 2)}, r"f: \[2, 2\) is not a part of 'i'"),
        ({"k": (-1, 2)}, r"f: \[-1, 2\) is not a part of 'k'"),
    ],
)
def test_boxes_outside_are_refused(box: dict[str, tuple[int, int]], message: str) -> None:
    bound = tofu.parse("def f(a):\n    return lambda i: Sum(lambda k: a[i, k])").bind({"a": (4, 6)})
    with pytest.raises(ShapeError, match=message):
        bound.compute({"a": np.ones((4, 6))}, box=box)


def test_outputs_apart_have_no_common_box() -> None:
    bound = tofu.parse("def f(a):\n    return lambda i: a[i, 0], lambda k: a[0, k]").bind({"a": (4, 6)})
    with pytest.raises(ShapeError, match="its outputs have different variables"):
        bound.compute({"a": np.ones((4, 6))}, box={"i": (0, 2)})


NEAREST = "Sum(lambda d: (a[i, d] - b[j, d]) ** 2)"


def test_every_row_has_a_gradient_through_its_nearest_one() -> None:
    """Distances that were computed twice would differ in their last bits."""
    operator = tofu.parse(f"def near(a, b):\n    return lambda i: Min(lambda j: {NEAREST})")
    a, b = RNG.normal(size=(300, 17)), RNG.normal(size=(40, 17))
    found = operator.gradients({"a": a, "b": b}, [np.ones(300)])
    nearest = ((a[:, None] - b) ** 2).sum(-1).argmin(1)
    np.testing.assert_allclose(found["a"], 2 * (a - b[nearest]), atol=1e-12)


@pytest.mark.parametrize("parts", [2, 3, 4, 5, 7])
def test_the_position_of_the_nearest_one_is_the_same_in_parts(parts: int) -> None:
    operator = tofu.parse(f"def near(a, b):\n    return lambda i: ArgMin(lambda j: {NEAREST})")
    values = {"a": RNG.normal(size=(300, 17)), "b": RNG.normal(size=(40, 17))}
    expected = ((values["a"][:, None] - values["b"]) ** 2).sum(-1).argmin(1)
    for stage in operator.stages({}, {name: value.shape for name, value in values.items()}):
        inputs = {name: values[name] for name in stage.inputs}
        bound = stage.bind({name: value.shape for name, value in inputs.items()})
        (values[stage.produces[0]],) = bound.compute(inputs)
    bounds = [300 * part // parts for part in range(parts + 1)]
    found = [bound.compute(inputs, box={"i": box})[0] for box in pairwise(bounds)]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_no_gradient_of_candidates_that_cannot_become_a_stage() -> None:
    text = "def f(a, b):\n    return lambda i: Max(lambda k=2: exp(a[i + k])) + b[2 * i] + a[2 * i]"
    with pytest.raises(OperatorError, match=r"name the candidates: part = lambda i, k: ..., and read part"):
        tofu.parse(text).gradients({"a": np.ones(7), "b": np.ones(7)}, [np.ones(4)])
