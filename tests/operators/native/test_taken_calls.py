"""Long reductions run across memory where neighbours in memory are neighbours in the output."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.native.joined_variables import joined
from tofu.operators.native.taken_calls import across_memory
from tofu.operators.stages.stage import derived

ROWS, COLUMNS = 90, 80
SHAPES = {"x": (ROWS, COLUMNS), "m": (ROWS,), "y": (COLUMNS, ROWS)}

ACROSS = {
    "x[i, j]": {"i"},
    "x[i, j] * m[i]": {"i"},
    "x[i, j] * rsqrt(m[i])": {"i"},
    "y[j, i]": set(),
    "y[j, i] * m[i]": set(),
    "x[i, j] * y[j, i]": set(),
}


@pytest.mark.parametrize("body", ACROSS)
def test_sums_of_columns_run_across_rows_whatever_is_the_same_for_a_row(body: str) -> None:
    names = [name for name in SHAPES if f"{name}[" in body]
    text = f"def total({', '.join(names)}):\n    return lambda j: Sum(lambda i: {body})"
    bound = derived(tdl.parse(text)).bind({name: SHAPES[name] for name in names})
    inputs = {name: np.ones(SHAPES[name], np.float32) for name in names}
    regions = {name: tuple((0, extent) for extent in SHAPES[name]) for name in names}
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    call = KernelCall(bound, box, inputs, regions, (np.zeros(COLUMNS, np.float32),))
    assert across_memory(joined(call)) == ACROSS[body]
