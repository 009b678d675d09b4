"""Which indices are refined, and what refinement makes of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.input_regions import enumerated_bounds, padded_strides, trials
from tofu.analyzer.input_regions.enumerated_bounds import Trial
from tofu.analyzer.input_regions.padded_strides import Edge


@pytest.mark.parametrize(
    ("access", "kinds"),
    [
        ("a[x]", []),
        ("a[2 * x]", []),
        ("a[(2 * x + 1) // 3]", []),
        ("a[(x + 3) % 4]", []),
        ("a[(3 * x) % 4]", ["Trial"]),
        ("a[(3 * x) % 4 // 2]", ["Trial"]),
        ("a[x % 4 % 3]", ["Trial"]),
        ("a[x + x % 2]", ["Trial"]),
        ("pad(a[x - 1], 0)", []),
        ("pad(a[1 - x], 0)", []),
        ("pad(a[(x - 1) // 2], 0)", []),
        ("pad(a[(3 * x - 1) // 3], 0)", []),
        ("pad(a[(4 * x - 1) // 3], 0)", ["Trial"]),
        ("pad(a[2 * x - 1], 0)", ["Edge"]),
        ("pad(a[b.shape[0] * x - 1], 0)", ["Edge"]),
        ("pad(a[(b.shape[0] - 2) * x - 1], 0)", []),
        ("pad(a[x % 4 - 1], 0)", ["Trial"]),
    ],
)
def test_one_dimension(bind: Callable[..., Bound], access: str, kinds: list[str]) -> None:
    bound = bind(f"def f(a, b):\n    return lambda x=6: {access} + b[0]", {"a": (12,), "b": (3,)})
    assert [type(refinement).__name__ for refinement in bound._reader.refinements] == kinds


@pytest.mark.parametrize(
    ("access", "columns"),
    [
        ("a[x, x, y]", []),
        ("pad(a[x, y, 0], 0)", []),
        ("pad(a[x, y, x - 1], 0)", [(0, 2)]),
        ("pad(a[x, x, y], 0)", [(0, 1)]),
        ("pad(a[x, y, x - y], 0)", [(0, 1, 2)]),
        ("pad(a[2 * x, y, 3 * y], 0)", [0, (1, 2)]),
        ("a[x % 2 % 2, y, 0]", [(0,)]),
    ],
)
def test_dimensions_that_share_variables(
    bind: Callable[..., Bound], access: str, columns: list[int | tuple[int, ...]]
) -> None:
    text = f"def f(b, a):\n    return lambda x=4, y=3: b[x] * {access}"
    bound = bind(text, {"a": (6, 6, 6), "b": (4,)})
    found = [r.column if isinstance(r, Edge) else r.columns for r in bound._reader.refinements]
    assert found == [1 + c if isinstance(c, int) else tuple(1 + axis for axis in c) for c in columns]
    assert bound.analysis.refined <= {1, 2, 3}


def region(bind: Callable[..., Bound], text: str, extent: int, box: list[tuple[int, int]]) -> Any:
    bound = bind(f"def f(a):\n    return {text}", {"a": (extent,)})
    return bound.input_regions(np.array([box]))["a"][0].tolist()[0]


@pytest.mark.parametrize(
    ("text", "box", "expected"),
    [
        ("lambda x=9: pad(a[2 * x - 1], 0)", [(0, 9)], [1, 10]),
        ("lambda x=9: pad(a[2 * x - 1], 0)", [(0, 1)], [0, 0]),
        ("lambda x=9: pad(a[2 * x - 1], 0)", [(3, 4)], [5, 6]),
        ("lambda x=9: pad(a[3 * x + 1], 0)", [(1, 9)], [4, 8]),
        ("lambda x=9: pad(a[8 - 3 * x], 0)", [(0, 9)], [2, 9]),
        ("lambda x=9: pad(a[12 - 3 * x], 0)", [(0, 9)], [0, 10]),
        ("lambda x=9: pad(a[5 * x - 3], 0)", [(0, 2)], [2, 3]),
        ("lambda x=9: pad(a[20 * x - 5], 0)", [(0, 9)], [0, 0]),
        ("lambda x=9, y=2: pad(a[4 * x + y - 2], 0)", [(0, 9), (0, 2)], [2, 8]),
        ("lambda x=9, y=2: pad(a[4 * x + y - 2], 0)", [(0, 9), (1, 2)], [3, 8]),
        ("lambda x=9, y=3: pad(a[4 * x + 2 * y - 3], 0)", [(0, 9), (0, 3)], [1, 10]),
        ("lambda x=9, y=3: pad(a[6 * x - 2 * y - 3], 0)", [(0, 9), (0, 3)], [1, 10]),
    ],
)
def test_steps_across_an_edge(
    bind: Callable[..., Bound], text: str, box: list[tuple[int, int]], expected: list[int]
) -> None:
    assert region(bind, text, 10, box) == expected


def test_boxes_are_settled_one_by_one(bind: Callable[..., Bound]) -> None:
    bound = bind("def f(a):\n    return lambda x=6, y=2: pad(a[4 * x + y - 3], 0)", {"a": (14,)})
    boxes = np.array(
        [[[0, 6], [0, 2]], [[0, 1], [0, 2]], [[4, 5], [1, 2]], [[2, 2], [0, 2]], [[1, 6], [1, 2]]]
    )
    assert bound.input_regions(boxes)["a"].tolist() == [[[1, 14]], [[0, 0]], [[0, 0]], [[0, 0]], [[2, 11]]]


def test_boxes_that_are_tried_together(bind: Callable[..., Bound]) -> None:
    bound = bind("def f(a):\n    return lambda x=6, y=5: pad(a[x + 1, 2 * x - y], 0)", {"a": (4, 9)})
    boxes = np.array(
        [[[0, 6], [0, 5]], [[0, 2], [0, 1]], [[2, 6], [3, 5]], [[3, 6], [0, 5]], [[0, 1], [1, 5]]]
    )
    found = bound.input_regions(boxes)["a"].tolist()
    for box, tried in zip(boxes.tolist(), found, strict=True):
        read = [
            (x + 1, 2 * x - y)
            for x in range(*box[0])
            for y in range(*box[1])
            if x + 1 < 4 and 0 <= 2 * x - y < 9
        ]
        smallest = [[min(column), max(column) + 1] for column in zip(*read, strict=True)]
        assert tried == (smallest or [[0, 0], [0, 0]])


def test_too_many_trials_leave_clipped_bounds(
    bind: Callable[..., Bound], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "lambda x=4, y=3: pad(a[4 * x + 2 * y - 3], 0)"
    monkeypatch.setattr(padded_strides, "MAX_TRIALS", 3)
    assert region(bind, text, 12, [(0, 4), (0, 3)]) == [1, 12]
    monkeypatch.setattr(padded_strides, "MAX_TRIALS", 2)
    assert region(bind, text, 12, [(0, 4), (0, 3)]) == [0, 12]
    text = "lambda x=4, y=3: pad(a[(4 * x + 2 * y) // 3 - 3], 0)"
    monkeypatch.setattr(enumerated_bounds, "MAX_TRIALS", 12)
    exact = region(bind, text, 12, [(0, 4), (0, 3)])
    monkeypatch.setattr(enumerated_bounds, "MAX_TRIALS", 11)
    assert region(bind, text, 12, [(0, 4), (0, 3)]) == [0, 3]
    assert exact == [0, 3]


def test_equal_intervals_are_tried_once(bind: Callable[..., Bound], monkeypatch: pytest.MonkeyPatch) -> None:
    bound = bind("def f(a):\n    return lambda n, x=4: a[n, (3 * x) % 4]", {"a": (8, 4)})
    monkeypatch.setattr(enumerated_bounds, "MAX_TRIALS", 4)
    boxes = bound.split(("n",), (8,))
    boxes[:, 1] = (1, 3)
    assert bound.input_regions(boxes)["a"][:, 1].tolist() == [[2, 4]] * 8
    assert isinstance(bound._reader.refinements[0], Trial)


def test_regions_do_not_depend_on_the_other_boxes(
    bind: Callable[..., Bound], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumerated_bounds, "MAX_TRIALS", 12)
    monkeypatch.setattr(padded_strides, "MAX_TRIALS", 3)
    monkeypatch.setattr(trials, "BATCH_TRIALS", 8)
    for text in (
        "lambda x=6, y=4: pad(a[(4 * x + 2 * y) // 3 - 3], 0)",
        "lambda x=6, y=4: pad(a[4 * x + 2 * y - 3], 0)",
        "lambda x=6, y=4: pad(a[x - 2 * (y // 2)], 0)",
    ):
        bound = bind(f"def f(a):\n    return {text}", {"a": (12,)})
        ends = [
            ((x0, x1), (y0, y1))
            for x0 in range(6)
            for x1 in range(x0 + 1, 7)
            for y0 in range(4)
            for y1 in range(y0 + 1, 5)
        ]
        together = bound.input_regions(np.array(ends))["a"]
        alone = [bound.input_regions(np.array([box]))["a"][0].tolist() for box in ends]
        assert together.tolist() == alone
