"""Arrays and requests for gradients, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.arguments import assign, named, requests_of

NAMES = ("data", "weight", "bias")


def test_arrays_come_by_name_or_in_order() -> None:
    weight = np.ones(2, np.float32)
    by_name = named("args", NAMES, {"bias": [1], "weight": weight, "data": [[2]]})
    in_order = named("args", NAMES, [[[2]], weight, [1]])
    assert list(by_name) == list(in_order) == list(NAMES)
    for found in (by_name, in_order):
        assert found["weight"] is weight
        assert {name: (array.dtype, array.tolist()) for name, array in found.items()} == {
            "data": (np.float32, [[2]]),
            "weight": (np.float32, [1, 1]),
            "bias": (np.float32, [1]),
        }
    assert list(named("args_grad", NAMES, [None, weight, None], partial=True)) == ["weight"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([1, 2], "args has 2 arrays, but needs 3: data, weight, bias"),
        ({"data": 1, "weihgt": 2}, "'weihgt', which the symbol does not have.*weight"),
        ({"data": 1}, "args lacks weight, bias"),
    ],
)
def test_what_is_missing_or_unknown_is_named(given: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        named("args", NAMES, given)


def test_new_values_keep_the_shape() -> None:
    arrays = {"bias": np.zeros(2, np.float32)}
    held = arrays["bias"]
    assign(arrays, "bias", [3, 4])
    assert held.tolist() == [3, 4]
    with pytest.raises(DataError, match=r"'bias' has shape \(2,\), but its new value has shape \(1,\)"):
        assign(arrays, "bias", [3])


def test_requests() -> None:
    assert requests_of(NAMES, "add") == dict.fromkeys(NAMES, "add")
    assert requests_of(NAMES, ["write", "null", "add"]) == {"data": "write", "weight": "null", "bias": "add"}
    assert requests_of(NAMES, {"bias": "add"}) == {"data": "null", "weight": "null", "bias": "add"}


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ("sum", "grad_req of 'data' is 'sum'; it must be one of write, add, null"),
        (["write"], "grad_req has 1 entries; give one for each of 3"),
        ({"biass": "add"}, "grad_req names 'biass', not an argument.*bias"),
    ],
)
def test_requests_that_mean_nothing_are_refused(request_: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        requests_of(NAMES, request_)
