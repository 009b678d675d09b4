"""Shapes that are given: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.bind.shapes import MAX_ELEMENTS, checked_shape, checked_shapes
from tofu.errors import ShapeError

MATMUL = tdl.parse("def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])")
RANKS = {"a": 2, "b": 2}
NOTHING = tdl.parse("def f():\n    return lambda i=3: i")


def test_shapes_in_the_order_of_the_tensors() -> None:
    checked = checked_shapes(MATMUL, RANKS, {"b": [3, 4], "a": (2, 3)})
    assert list(checked.items()) == [("a", (2, 3)), ("b", (3, 4))]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": (2, 3)}, "matmul: the shape of tensor 'b' is missing"),
        (
            {"a": (2, 3), "b": (3,)},
            "matmul: b has shape (3,), 1 dimension, but is read with 2 dimensions",
        ),
        (
            {"a": (), "b": (3, 4)},
            "matmul: a has shape (), 0 dimensions, but is read with 2 dimensions",
        ),
        ({"a": (2, 3), "b": (3, 4), "c": ()}, "matmul: it does not take a tensor 'c', only a, b"),
        ({"a": "23", "b": (3, 4)}, "matmul: the shape of a is '23'; give a tuple of integers"),
        ({"a": 6, "b": (3, 4)}, "matmul: the shape of a is 6; give a tuple of integers"),
        ({"a": (2, 3.0), "b": (3, 4)}, "matmul: a has extent 3.0; an extent must be a non-negative integer"),
        (
            {"a": (2, True), "b": (3, 4)},
            "matmul: a has extent True; an extent must be a non-negative integer",
        ),
        ({"a": (2, np.ones(2)), "b": (3, 4)}, "matmul: a has extent array([1., 1.]); an extent must be"),
        ({"a": (2, -3), "b": (3, 4)}, "matmul: axis 1 of a has the negative extent -3"),
    ],
)
def test_shapes_that_are_refused(shapes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        checked_shapes(MATMUL, RANKS, shapes)
    assert str(caught.value).startswith(message)


def test_an_operator_without_tensors_says_so() -> None:
    with pytest.raises(ShapeError) as caught:
        checked_shapes(NOTHING, {}, {"a": (2,)})
    assert str(caught.value) == "f: it does not take a tensor 'a', only none at all"


def test_integers_of_any_kind_become_those_of_python() -> None:
    shape = checked_shape("f", "a", [np.int32(2), np.array(3), 4])
    assert shape == (2, 3, 4)
    assert {type(extent) for extent in shape} == {int}


def test_elements_are_counted_in_64_bits() -> None:
    assert checked_shape("f", "a", (MAX_ELEMENTS - 1,)) == (MAX_ELEMENTS - 1,)
    assert checked_shape("f", "a", (0, MAX_ELEMENTS - 1)) == (0, MAX_ELEMENTS - 1)
    for shape in ((MAX_ELEMENTS,), (0, MAX_ELEMENTS), (2, MAX_ELEMENTS // 2)):
        with pytest.raises(ShapeError, match=f"elements; the limit is {MAX_ELEMENTS}$"):
            checked_shape("f", "a", shape)
