"""Recipes of boxes that lie elsewhere: shared if the place changes nothing, and none else."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators.derive import _recipes, derive
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

LENGTH, PART = 12, 3

SHARED = {
    "a variable": "x[i] * y[i]",
    "a constant": "x[i] * y[0] + y[1]",
    "a sum": "Sum(lambda k: x[k]) * y[i]",
    "an extent": "x[i] / y.shape[0] + y[i]",
}
APART = {
    "a value": "x[i] * i + y[i]",
    "a padded element": "pad(x[i + 1], 0) + y[i]",
    "another place": "x[i] * y[11 - i]",
    "two variables": "x[i] * Sum(lambda k: x[k]) + y[i]",
    "a condition": "where(i < 5, x[i], y[i])",
}


def runs_on_parts(text: str) -> int:
    """Check the results of all parts against those of the whole, and return the number of recipes."""
    generator = np.random.default_rng(0)
    tensors = {name: generator.random(LENGTH) for name in "xy"}
    bound = derived(tdl.parse(f"def f(x, y): return lambda i: {text}")).bind({"x": (LENGTH,), "y": (LENGTH,)})
    (whole,) = bound.interpret(tensors)
    _recipes.cache_clear()
    for start in range(0, LENGTH, PART):
        box = {name: (0, extent) for name, extent in bound.extents.items()} | {"i": (start, start + PART)}
        listed = np.array([[box[name] for name in bound.variables]])
        regions = {
            name: tuple((int(lower), int(upper)) for lower, upper in region[0])
            for name, region in bound.input_regions(listed).items()
        }
        inputs = {name: tensors[name][slice(*regions[name][0])].copy() for name in "xy"}
        out = np.empty(PART)
        derive(KernelCall(bound, box, inputs, regions, (out,)))()
        np.testing.assert_allclose(out, whole[start : start + PART], rtol=1e-14)
    return _recipes.cache_info().misses


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
def test_parts_share_a_recipe_if_their_place_changes_nothing(text: str) -> None:
    assert runs_on_parts(text) == 1


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_parts_have_recipes_of_their_own_if_their_place_matters(text: str) -> None:
    assert runs_on_parts(text) == LENGTH // PART


def test_messages_name_the_place_of_a_box() -> None:
    bound = derived(tdl.parse("def f(x): return lambda i: 2 * x[i]")).bind({"x": (LENGTH,)})
    call = KernelCall(bound, {"i": (6, 9)}, {"x": np.ones(2)}, {"x": ((6, 8),)}, (np.empty(3),))
    with pytest.raises(OperatorError, match=r"the box reads \[6, 9\), but its input holds \[6, 8\)"):
        derive(call)
