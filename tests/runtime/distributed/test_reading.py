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


def noted(arrays: dict[str, Any], name: str) -> set[int]:
    """Return a set that will have the samples of an array that an iterator reads."""
    array = arrays[name].view(Noted)
    array.read = set()
    arrays[name] = array
    return array.read


def read_by(workers: int, method: str, **options: Any) -> list[tuple[set[int], set[int]]]:
    """Return the samples of data and of labels that each process reads in an epoch."""

    def work(processes: Processes) -> tuple[set[int], set[int]]:
        data = batches(BATCH)
        # the settings of a run have a checksum of some samples, which every process reads
        data._checksum = lambda: 0  # type: ignore[method-assign]
        found = noted(data.data, "data"), noted(data.label, "softmax_label")
        with tofu.Module(net(), processes, seed=7, method=method) as module:
            module.fit(data, num_epoch=1, metric=["accuracy", "cross-entropy"], **options)
        return found

    return results(workers, work)


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate": 2}, {"accumulate": 2, "unroll": True}],
    ids=["whole", "in turn", "unrolled"],
)
def test_processes_share_the_samples_of_an_epoch(options: dict[str, Any]) -> None:
    told = read_by(3, "data-parallel", **options)
    for found in zip(*told, strict=True):
        assert set.union(*found) == set(range(ROWS))
        # four batches of twelve rows, the last of which repeats eight samples
        assert [len(each) <= 16 for each in found] == [True] * 3
        assert sum(map(len, found)) <= 48


def test_one_process_evaluates_what_no_process_has_in_whole_rows() -> None:
    """The output is cut in columns."""
    graph = tofu.training_graph(net(), {"data": (BATCH, 12), "softmax_label": (BATCH,)}, "sgd")
    plan = tofu.partition(graph, 2, constraints=["pin softmax_output=1", "pin softmax_label=0"])
    assert plan.layouts["softmax_output"].regions.tolist() == [[[0, 12], [0, 6]], [[0, 12], [6, 12]]]

    def fitted(context: Any) -> tuple[list[Any], int]:
        data = batches(BATCH)
        data._checksum = lambda: 0  # type: ignore[method-assign]
        labels = noted(data.label, "softmax_label")
        with tofu.Module(net(), context, seed=7, plan=plan) as module:
            history = module.fit(data, num_epoch=1, metric=["accuracy", "cross-entropy"])
        return [dict(epoch.training) for epoch in history], len(labels)

    expected, _ = fitted([tofu.cpu(0), tofu.cpu(1)])
    (first, whole), (second, part) = results(2, fitted)
    assert first == second == expected
    assert whole == ROWS > part


def test_an_output_of_one_process_alone_is_evaluated_there() -> None:
    """Others have no part of it."""
    graph = tofu.training_graph(net(), {"data": (BATCH, 12), "softmax_label": (BATCH,)}, "sgd")
    options = {"machine": "dgx-1-v100", "groups": "2x1", "memory": "unlimited"}
    plan = tofu.partition(graph, 2, "place", **options)

    (output,) = graph.outputs
    assert len(tofu.lower(graph, plan).homes[output]) == 1

    def fitted(context: Any) -> list[Any]:
        with tofu.Module(net(), context, seed=7, plan=plan) as module:
            history = module.fit(batches(BATCH), num_epoch=2, metric=["accuracy", "cross-entropy"])
            return [*(dict(epoch.training) for epoch in history), module.score(batches(BATCH))]

    assert results(2, fitted) == [fitted([tofu.cpu(0), tofu.cpu(1)])] * 2


def test_an_error_of_a_metric_is_that_of_all_processes() -> None:
    """Only one of them has the label."""

    def work(processes: Processes) -> str:
        data = batches(BATCH)
        data.label["softmax_label"] = data.label["softmax_label"].copy()
        data.label["softmax_label"][0] = 12 if processes.count else 0
        data._checksum = lambda: 0  # type: ignore[method-assign]
        module = tofu.Module(net(), processes, seed=7, method="data-parallel")
        with module, pytest.raises(tofu.DataError, match=r"labels run from \d to 12, but there are 12"):
            module.score(data)
        return "done"

    assert results(3, work) == ["done"] * 3


def test_rows_that_are_not_read_are_zeros() -> None:
    data = batches(BATCH)
    part = data.reading({"data": np.array([1, 2, 5]), "softmax_label": np.array([0])})
    for epoch in range(2):
        for whole, found in zip(data.epoch(epoch), part.epoch(epoch), strict=True):
            np.testing.assert_array_equal(found.data["data"][[1, 2, 5]], whole.data["data"][[1, 2, 5]])
            assert not np.delete(found.data["data"], [1, 2, 5], axis=0).any()
            assert found.label["softmax_label"][0] == whole.label["softmax_label"][0]
            assert not found.label["softmax_label"][1:].any()
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
