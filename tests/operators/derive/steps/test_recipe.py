"""Recipes: kernels derived once for a layout and bound to the memory of any call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.derive import _recipes, derive
from tofu.operators.derive.steps.layout import layout_of
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

ADD = "def f(a, b): return lambda i, j: a[i, j] + 2 * b[j, i]"


def call_on(a: Any, b: Any, out: Any, text: str = ADD) -> KernelCall:
    bound = derived(tdl.parse(text)).bind({"a": a.shape, "b": b.shape})
    region = {"a": tuple((0, n) for n in a.shape), "b": tuple((0, n) for n in b.shape)}
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    return KernelCall(bound, box, {"a": a, "b": b}, region, (out,))


def test_equal_layouts_share_a_recipe_and_compute_on_their_own_memory() -> None:
    _recipes.cache_clear()
    generator = np.random.default_rng(0)
    runs = []
    for _ in range(3):
        a, b = generator.random((4, 6), np.float32), generator.random((6, 4), np.float32)
        out = np.empty((4, 6), np.float32)
        runs.append((derive(call_on(a, b, out)), a, b, out))
    assert _recipes.cache_info().misses == 1
    for run, a, b, out in runs:
        run()
        np.testing.assert_array_equal(out, a + 2 * b.T)


@pytest.mark.parametrize(
    "form", ["plain", "reversed", "transposed", "broadcast", "read-only", "column", "odd"]
)
def test_inputs_of_any_form(form: str) -> None:
    generator = np.random.default_rng(1)
    a = generator.random((4, 6))
    b = generator.random((6, 4))
    match form:
        case "reversed":
            a = a[::-1, ::-1]
        case "transposed":
            b = generator.random((4, 6)).T
        case "broadcast":
            a = np.broadcast_to(generator.random(6), (4, 6))
        case "read-only":
            a.flags.writeable = False
        case "column":
            b = generator.random((6, 9))[:, 1::2]
        case "odd":
            a = np.frombuffer(bytearray(4 * 6 * 8 + 1), np.float64, offset=1).reshape(4, 6)
    out = np.full((8, 6), np.nan)
    derive(call_on(a, b, out[::2]))()
    np.testing.assert_array_equal(out[::2], a + 2 * b.T)
    assert np.isnan(out[1::2]).all()


def test_an_output_over_its_input_has_another_recipe() -> None:
    text = "def f(a, b): return lambda i: a[i] * b[i] + a[i]"
    memory = np.arange(10.0)
    apart = call_on(np.arange(10.0), np.ones(10), np.empty(10), text)
    within = call_on(memory, np.ones(10), memory, text)
    assert layout_of(apart) != layout_of(within)
    derive(within)()
    np.testing.assert_array_equal(memory, 2 * np.arange(10.0))


def test_input_changes_are_seen() -> None:
    """An input that is read-only for the kernel may be written by others between runs."""
    memory = np.zeros((4, 6))
    view = memory.view()
    view.flags.writeable = False
    b, out = np.ones((6, 4)), np.empty((4, 6))
    run = derive(call_on(view, b, out))
    run()
    memory += 1
    run()
    np.testing.assert_array_equal(out, np.full((4, 6), 3.0))
