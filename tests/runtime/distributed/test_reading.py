"""Each process reads the rows of a batch that its workers are fed, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.runtime.data import Batch
from tofu.runtime.distributed.processes import Processes

from .forked import results
from .test_training import batches, net

ROWS, BATCH = 40, 12


class Noted(np.ndarray):  # type: ignore[type-arg]
    """An array that notes which samples are read."""

    read: set[int]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray):
            self.read.update(key.tolist())
        return super().__getitem__(key)


def noted(iterator: tofu.ArrayIterator) -> set[int]:
    """Return a set that will have the samples of `data` that an iterator reads."""
    array = iterator.data["data"].view(Noted)
    array.read = set()
    iterator.data["data"] = array
    return array.read


def read_by(workers: int, **options: Any) -> list[set[int]]:
    """Return the samples that each process reads in an epoch."""

    def work(processes: Processes) -> set[int]:
        data = batches(BATCH)
        # the settings of a run have a checksum of some samples, which every process reads
        data._checksum = lambda: 0  # type: ignore[method-assign]
        found = noted(data)
        with tofu.Module(net(), processes, seed=7, method="data-parallel") as module:
            module.fit(data, num_epoch=1, **options)
        return found

    return results(workers, work)


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate": 2}, {"accumulate": 2, "unroll": True}],
    ids=["whole", "in turn", "unrolled"],
)
def test_processes_share_the_samples_of_an_epoch(options: dict[str, Any]) -> None:
    found = read_by(3, **options)
    assert set.union(*found) == set(range(ROWS))
    # four batches of twelve rows, the last of which repeats eight samples
    assert [len(each) <= 16 for each in found] == [True] * 3
    assert sum(map(len, found)) <= 48


def test_rows_that_are_not_read_are_zeros() -> None:
    data = batches(BATCH)
    part = data.reading({"data": np.array([1, 2, 5]), "softmax_label": np.array([0])})
    for epoch in range(2):
        for whole, found in zip(data.epoch(epoch), part.epoch(epoch), strict=True):
            np.testing.assert_array_equal(found.data["data"][[1, 2, 5]], whole.data["data"][[1, 2, 5]])
            assert not np.delete(found.data["data"], [1, 2, 5], axis=0).any()
            np.testing.assert_array_equal(found.label["softmax_label"], whole.label["softmax_label"])
            assert found.valid == whole.valid
    assert part.settings == data.settings


class Standardised(tofu.ArrayIterator):
    """Batches whose change depends on all rows."""

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        for batch in super().epoch(number):
            data = batch.data["data"]
            yield Batch({"data": data - data.mean(axis=0)}, batch.label, batch.valid)


def test_batches_that_are_changed_are_read_whole() -> None:
    data = Standardised(np.eye(12, dtype=np.float32), np.arange(12), 12)
    assert data.reading({"data": np.array([1])}) is data
