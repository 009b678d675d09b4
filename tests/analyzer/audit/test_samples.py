"""Data to try operators on: defined, whole if possible, and valid if used as an index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.audit.samples import Domain, index_limits, other_indices, poisons, sample
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.bind.staged_bound import bind as bind_stages
from tofu.errors import DataError

Bind = Callable[..., Bound]
SIZE = 2000
"""Elements enough for every possible value to occur."""

POINTWISE = {
    "x[i]": range(-32, 33, 8),
    "log(x[i])": range(8, 33, 8),
    "arcsin(x[i])": range(-7, 8),
    "arcsin(x[i]) * log(x[i])": range(1, 8),
    "log(x[i] - 100)": range(-32, 33, 8),
}
"""Bodies, and the eighths that elements may be for all results to be finite, if they can be."""


@pytest.mark.parametrize("body", POINTWISE)
def test_the_plainest_numbers_for_which_results_are_finite(bind: Bind, body: str) -> None:
    found = sample(bind(f"def op(x):\n    return lambda i: {body}", {"x": (SIZE,)}))
    assert set((found.tensors["x"] * 8).tolist()) == set(POINTWISE[body])
    assert found.indices == {}
    assert found.reference is not None
    assert found.reference[0].shape == (SIZE,)
    assert np.isfinite(found.reference[0]).all() == (body != "log(x[i] - 100)")


def test_samples_are_the_same_again(bind: Bind) -> None:
    bound = bind("def op(x):\n    return lambda i: x[i]", {"x": (SIZE,)})
    assert (sample(bound).tensors["x"] == sample(bound).tensors["x"]).all()


def test_operators_say_what_their_tensors_may_hold(bind: Bind) -> None:
    bound = bind("def op(x, y):\n    return lambda i: x[i] + y[i]", {"x": (SIZE,), "y": (SIZE,)})
    found = sample(bound, Domain(whole={"x": (3, 6)}, made={"y": lambda numbers: numbers + 1}))
    assert set(found.tensors["x"].tolist()) == {3, 4, 5}
    assert set(found.tensors["y"].tolist()) == {1 + sixteenths / 16 for sixteenths in range(2, 15)}


def test_indices_lead_to_every_element_and_no_further(bind: Bind) -> None:
    text = "def op(x, y, at):\n    return lambda i: x[at[i]] * y[0, at[i]] * x[at[i] + 0]"
    bound = bind(text, {"x": (4,), "y": (9, 3), "at": (SIZE,)})
    assert index_limits(bound) == {"at": 3}
    found = sample(bound)
    assert set(found.tensors["at"].tolist()) == {0, 1, 2}
    assert found.indices["at"].tolist() == [0, 1, 2]


def test_indices_may_count_from_one(bind: Bind) -> None:
    bound = bind("def op(x, at):\n    return lambda i: x[at[i] - 1]", {"x": (3,), "at": (SIZE,)})
    assert sample(bound).indices["at"].tolist() == [1, 2, 3]


def test_indices_into_what_a_stage_produces() -> None:
    text = "def op(x, at):\n    twice = lambda i: 2 * x[i]\n    return lambda i: twice[at[i]] + x[i]"
    assert index_limits(bind_stages(tdl.parse(text), {"x": (5,), "at": (5,)})) == {"at": 5}


def test_an_axis_without_elements_has_one_index(bind: Bind) -> None:
    bound = bind("def op(x, at):\n    return lambda i: pad(x[at[i]], 0)", {"x": (0,), "at": (3,)})
    assert sample(bound).indices["at"].tolist() == [0]


def test_operators_without_data_are_refused(bind: Bind) -> None:
    bound = bind("def op(x, at):\n    return lambda i: x[at[i] + 9]", {"x": (3,), "at": (4,)})
    with pytest.raises(DataError, match=r"^op: no data was found to try it on; 'op' reads x\[12\]"):
        sample(bound)


def test_opaque_functions_leave_no_reference(bind: Bind) -> None:
    text = "def op(x):\n    inverse = Opaque()\n    return lambda b, i, j: inverse(x[b, :, :])[i, j]"
    found = sample(bind(text, {"x": (2, 3, 3)}))
    assert found.reference is None
    assert found.tensors["x"].shape == (2, 3, 3)


def test_poisons_are_not_finite_except_in_indices(bind: Bind) -> None:
    bound = bind("def op(x, at):\n    return lambda i: x[at[i]]", {"x": (3,), "at": (SIZE,)})
    given = sample(bound)
    spoiled = [poison(given.tensors["x"]) for poison in poisons("x", given)]
    assert np.isnan(spoiled[0]).all()
    assert [array.tolist() for array in spoiled[1:]] == [[np.inf] * 3, [-np.inf] * 3]
    (moved,) = [poison(given.tensors["at"]) for poison in poisons("at", given)]
    assert (moved != given.tensors["at"]).all()
    assert set(moved.tolist()) == {0, 1, 2}


def test_other_indices_are_the_following_valid_ones() -> None:
    assert other_indices(np.array([2, 5, 0, 2]), np.array([0, 2, 5])).tolist() == [5, 0, 2, 5]
    assert other_indices(np.array([4, 4]), np.array([4])).tolist() == [4, 4]
    assert other_indices(np.array([]), np.array([])).tolist() == []
