"""Rows that data picks: copied whole, on any box, and refused where they are not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import DataError, tdl
from tofu.operators.derive import derive
from tofu.operators.derive.program.picking import Picker
from tofu.operators.stages.stage import derived

Shapes = dict[str, tuple[int, ...]]

PICKED: dict[str, tuple[str, Shapes]] = {
    "rows": ("def f(t, r):\n    return lambda b, j: t[r[b], j]", {"t": (6, 5), "r": (7,)}),
    "bags": (
        "def f(t, r):\n    return lambda b, j: Sum(lambda k: t[r[b, k], j] * k)",
        {"t": (6, 5), "r": (4, 3)},
    ),
    "padded": (
        "def f(t, r):\n    return lambda b, j=4: pad(t[r[b] - 2, j], r[b])",
        {"t": (3, 4), "r": (7,)},
    ),
    "columns": ("def f(t, r):\n    return lambda b, j: t[j, r[b]]", {"t": (5, 6), "r": (7,)}),
    "two of three": (
        "def f(t, r):\n    return lambda j, b, i=3: t[r[b], i + 1, 2 * j]",
        {"t": (6, 5, 9), "r": (7,)},
    ),
    "scattered": ("def f(t, r):\n    return lambda b, j=7: t[r[j], j, b]", {"t": (6, 7, 3), "r": (7,)}),
    "twice": ("def f(t, r):\n    return lambda b, j: t[r[b], r[j]]", {"t": (6, 6), "r": (4,)}),
}


@pytest.mark.parametrize("case", PICKED)
def test_rows_that_data_picks(case: str, check_kernel: Any) -> None:
    text, shapes = PICKED[case]
    random = np.random.default_rng(5)
    highest = shapes["t"][1] if case == "columns" else 5
    tensors = {
        "t": random.integers(-9, 10, shapes["t"]) * 1.0,
        "r": random.integers(0, highest, shapes["r"]) * 1.0,
    }
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors, boxes=12)


def test_a_row_outside_of_the_tensor_is_named() -> None:
    bound = derived(tdl.parse(PICKED["rows"][0])).bind(PICKED["rows"][1])
    with pytest.raises(DataError, match=r"tensor 't', dimension 0: index 6 is outside \[0, 6\)"):
        bound.compute({"t": np.zeros((6, 5)), "r": np.array([0.0, 6, 1, 2, 3, 4, 5])})


def test_rows_are_copied_by_a_picker() -> None:
    out = np.zeros((3, 2))
    Picker("t", 0, 0, 4, (0,), (1,))(np.arange(8.0).reshape(4, 2), np.array([[3.0], [0.0], [3.0]]), out=out)
    assert out.tolist() == [[6, 7], [0, 1], [6, 7]]
