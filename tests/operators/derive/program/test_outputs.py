"""Values that do not depend on all variables of an output."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.derive import _recipes, derive
from tofu.operators.derive.nodes import blocks
from tofu.operators.derive.program.access import gather
from tofu.operators.derive.steps.layout import layout_of
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

from ...conftest import kernel_call

SHAPES = {"x": (5, 6, 7, 8), "table": (4, 6), "row": (7, 8)}
REPEATED = {
    "a gather": ("x[b, h, i, j] + table[row[i, j], h]", gather, 6),
    "a costly function": ("x[b, h, i, j] * exp(row[i, j])", np.exp, 1),
    "both": ("x[b, h, i, j] * exp(row[i, j]) - table[row[i, j], h]", gather, 6),
}


@pytest.mark.parametrize("case", REPEATED)
def test_what_blocks_share_is_computed_once(
    case: str, check_kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block is one value of `b` and `h`, so there are 30."""
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 7 * 8)
    monkeypatch.setattr("tofu.operators.derive.program.program.KEPT_ELEMENTS", 1)
    body, function, count = REPEATED[case]
    names = [name for name in SHAPES if name in body]
    text = f"def f({', '.join(names)}): return lambda b, h, i, j: {body}"
    bound = derived(tdl.parse(text)).bind({name: SHAPES[name] for name in names})
    rng = np.random.default_rng(0)
    tensors = {name: rng.integers(0, 4, SHAPES[name]).astype(float) for name in names}
    _recipes.cache_clear()
    check_kernel(bound, derive, tensors, boxes=4, dtype="float64", tolerance=1e-14)
    call = kernel_call(bound, bound.full_box, tensors, "float64")
    found = _recipes(bound, tuple(call.box.values()), layout_of(call))
    functions = [step[0] for each in found for step in each.steps]
    bare = [each.func if isinstance(each, partial) else each for each in functions]
    assert bare.count(function) == count
    _recipes.cache_clear()


def test_a_chain_does_not_begin_in_an_output_whose_input_is_read_later() -> None:
    text = "def f(a, b):\n    return lambda i: (b[i] * 2 + 1) * 3 - a[i] * b[i]"
    bound = derived(tdl.parse(text)).bind({"a": (5,), "b": (5,)})
    a, b = np.arange(5.0), np.arange(5.0) + 7
    expected = (b * 2 + 1) * 3 - a * b
    derive(KernelCall(bound, {"i": (0, 5)}, {"a": a, "b": b}, {"a": ((0, 5),), "b": ((0, 5),)}, (a,)))()
    np.testing.assert_array_equal(a, expected)
