"""The state of training, as it is saved and brought back."""

from __future__ import annotations

import json

import numpy as np

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
