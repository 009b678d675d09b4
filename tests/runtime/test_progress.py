"""The state of training, as it is saved and brought back."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tofu.errors import PlanError
from tofu.runtime.metrics import Tally, get_metric
from tofu.runtime.progress import Epoch, Standing


def started() -> Standing:
    return Standing([Tally(get_metric("mse"))], rate_step=0)


def batch(values: list[float]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.zeros((len(values), 1)), np.array(values)[:, None])]


def test_an_epoch_is_finished_and_counting_starts_again() -> None:
    standing = started()
    standing.tallies[0].add(batch([1.0, 3.0]))
    standing.batch, standing.seconds = 4, 2.5
    assert standing.finish({"mse": 7.0}) == Epoch(0, {"mse": 5.0}, {"mse": 7.0}, 2.5)
    assert (standing.epoch, standing.batch, standing.seconds) == (1, 0, 0.0)
    standing.tallies[0].add(batch([2.0]))
    assert standing.finish({}).training == {"mse": 4.0}
    assert [epoch.number for epoch in standing.history] == [0, 1]


def test_it_comes_back_bit_for_bit() -> None:
    standing = started()
    standing.tallies[0].add(batch([0.1, 0.7]))
    standing.finish({"mse": 1 / 3})
    standing.tallies[0].add(batch([0.1 + 0.2]))
    standing.rate_step, standing.batch, standing.seconds = 12, 3, 0.1
    other = started()
    other.restore(json.loads(json.dumps(standing.to_json())))
    assert other.history == standing.history
    assert other.to_json() == standing.to_json()
    assert other.tallies[0].value == standing.tallies[0].value


def entries(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every entry of a document."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from entries(each, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    """Return a document with another entry."""
    if not at:
        return other
    found = copy.copy(value)
    found[at[0]] = replaced(value[at[0]], at[1:], other)
    return found


@pytest.mark.parametrize("other", [None, "x", True, -1, 10**400, [], {}, [[1, 2]], {"a": 1}], ids=type)
def test_a_state_of_another_form_is_refused_and_changes_nothing(other: Any) -> None:
    """Any entry may be of another type; what is accepted by chance is a state."""
    standing = started()
    standing.tallies[0].add(batch([0.1, 0.7]))
    standing.finish({"mse": 1 / 3})
    document = standing.to_json()
    for at in entries(document):
        trial = started()
        before = trial.to_json()
        try:
            trial.restore(replaced(document, at, other))
        except PlanError:
            assert trial.to_json() == before
        else:
            trial.tallies[0].add(batch([1.0]))
            assert trial.finish({}).seconds >= 0


def test_a_state_with_other_entries_is_refused() -> None:
    document = started().to_json()
    for key in document:
        with pytest.raises(PlanError, match=f"standing lacks '{key}'"):
            started().restore({name: value for name, value in document.items() if name != key})
    with pytest.raises(PlanError, match="unknown key 'more'"):
        started().restore({**document, "more": 1})
    with pytest.raises(PlanError, match="tallies has 0 entries, but the run has 1 metrics"):
        started().restore({**document, "tallies": []})
    with pytest.raises(PlanError, match=r"batch is -1; it must lie between 0 and"):
        started().restore({**document, "batch": -1})
