"""Shrinking to the smallest shapes that fail."""

from __future__ import annotations

from collections.abc import Callable

from tofu.analyzer.audit.shrink import groups, neighbours, smallest
from tofu.analyzer.bind.bound import Bound

Bind = Callable[..., Bound]
MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"


def test_axes_of_one_variable_belong_together(bind: Bind) -> None:
    bound = bind(MATMUL, {"a": (4, 5), "b": (5, 6)})
    assert set(groups(bound)) == {
        frozenset({("a", 0)}),
        frozenset({("b", 1)}),
        frozenset({("a", 1), ("b", 0)}),
    }


def test_neighbours_differ_along_one_group(bind: Bind) -> None:
    shapes = list(neighbours(bind(MATMUL, {"a": (4, 5), "b": (5, 6)})))
    assert {"a": (4, 6), "b": (6, 6)} in shapes
    assert all(shape["a"][1] == shape["b"][0] for shape in shapes)


def test_the_smallest_failing_shapes_are_found(bind: Bind) -> None:
    def fails(bound: object) -> dict[str, tuple[int, ...]] | None:
        assert isinstance(bound, Bound)
        return bound.shapes if bound.extents["k"] >= 3 and bound.extents["i"] >= 2 else None

    start = bind(MATMUL, {"a": (7, 5), "b": (5, 6)})
    found = smallest(start, lambda shapes: bind(MATMUL, shapes), fails, start.shapes)
    assert found == {"a": (2, 3), "b": (3, 1)}


def test_shapes_that_depend_on_each_other_shrink_together(bind: Bind) -> None:
    """Neither extent can shrink alone."""
    text = "def op(a, b):\n    return lambda i: a[i] * b[2 * i]"

    def fails(bound: object) -> dict[str, tuple[int, ...]] | None:
        assert isinstance(bound, Bound)
        gap = bound.shapes["b"][0] - bound.shapes["a"][0]
        return bound.shapes if gap == 5 else None

    start = bind(text, {"a": (4,), "b": (9,)})
    found = smallest(start, lambda shapes: bind(text, shapes), fails, start.shapes)
    assert found == {"a": (1,), "b": (6,)}
