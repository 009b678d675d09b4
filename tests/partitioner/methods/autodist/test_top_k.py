"""The largest elements of gradients: equal to NumPy's recurrence, and moved in as many bytes as said."""

from __future__ import annotations

from math import ceil, prod
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow.rewrites.encoders import Rewrite, TopK
from tofu.dataflow.rewrites.top_k import MOST
from tofu.errors import GraphError, PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.shares import shares
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.runtime.executor import Executor
from tofu.runtime.instruction_times import initial_values

from .recurrences import INPUTS, OUTPUTS, WEIGHT, Values, learned, linear, planned, recurrence

MIXED = Synchronisation((Server(1), AllReduce()), Partition(0, (1,)))
COLUMNS = Synchronisation((Server(1, proxy=True), Server(0)), Partition(1, (2,)))


class Largest:
    """The exchange of the largest elements, and the errors that workers keep."""

    def __init__(self, workers: int, k: int, feedback: bool = True) -> None:
        self.k = k
        self.feedback = feedback
        self.errors: list[Values] | None = None
        self.workers = workers

    def __call__(self, local: list[Values]) -> Values:
        errors = self.errors or [np.zeros_like(each) for each in local]
        found = np.zeros_like(local[0])
        kept = []
        for error, each in zip(errors, local, strict=True):
            matrix = error + each
            order = np.argsort(-abs(matrix).ravel(), kind="stable")
            taken = np.zeros(matrix.size)
            taken[order[: self.k]] = 1
            sent = taken.reshape(matrix.shape) * matrix
            found += sent
            kept.append(matrix - sent)
        if self.feedback:
            self.errors = kept
        return found


def total(local: list[Values]) -> Values:
    return np.sum(local, axis=0)


@pytest.mark.parametrize("how", [None, MIXED, COLUMNS])
@pytest.mark.parametrize(("workers", "k", "delay"), [(1, 3, 0), (2, 1, 0), (2, 7, 2), (4, 5, 0), (4, 24, 0)])
def test_largest_elements_equal_a_recurrence(
    workers: int, k: int, delay: int, how: Synchronisation | None
) -> None:
    if workers == 1 and how is not None:
        how = Synchronisation((Server(0, proxy=True),))
    found = learned(planned(Rewrite(TopK(k), delay), workers, how))
    for mine, its in zip(found, recurrence(workers, Largest(workers, k), delay), strict=True):
        np.testing.assert_array_equal(mine, its)
    alike = np.array_equal(found[-1], recurrence(workers, total, delay)[-1])
    assert alike == (k == WEIGHT.size), "only all elements lose nothing"
    if k < WEIGHT.size:
        assert (found[-1] != recurrence(workers, Largest(workers, k, feedback=False), delay)[-1]).any()


def test_parts_have_encoders_of_their_own() -> None:
    rows = (1,)
    how = Synchronisation(
        (Server(1), AllReduce()), Partition(0, rows), part_rewrites=(Rewrite(), Rewrite(TopK(4)))
    )
    plan = compile_strategy(linear(), 2, SyncStrategy({"fc_weight": how}))
    assert plan.cost_bytes == 8 * (2 * INPUTS + 2 * (4 + 4)), "a row both ways, and places and values"
    found = learned(plan)
    largest = Largest(2, 4)

    def exchange(local: list[Values]) -> Values:
        return np.concatenate([total([each[:1] for each in local]), largest([each[1:] for each in local])])

    for mine, its in zip(found, recurrence(2, exchange), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("workers", [2, 4])
def test_places_and_values_are_what_moves(workers: int) -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plain = all_reduce(graph, workers)
    sizes = {t.name: prod(t.shape) for t in graph.tensors if t.name in plain.variables}
    encoded = everywhere(plain, TopK(0.01))
    plan = compile_strategy(graph, workers, encoded)
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    moved = sum(2 * 4 * ceil(0.01 * size) for size in sizes.values())
    assert plan.cost_bytes == workers * (workers - 1) * moved
    found = shares(plan.graph, plan, encoded, graph)
    assert sum(each.gradient_bytes + each.fetched_bytes for each in found) == plan.cost_bytes


def everywhere(strategy: SyncStrategy, encoder: TopK) -> SyncStrategy:
    return SyncStrategy(
        {
            name: Synchronisation(how.parts, how.partition, Rewrite(encoder))
            for name, how in strategy.variables.items()
        }
    )


def test_images_learn_from_a_few_elements() -> None:
    """Gradients of four dimensions, in float32: a few elements of them are exchanged."""
    graph = tofu.models.get("lenet", batch=8).training_graph()
    plan = compile_strategy(graph, 2, everywhere(all_reduce(graph, 2), TopK(3)))
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    before = np.random.default_rng(3).standard_normal((50, 20, 5, 5)).astype(np.float32)
    with Executor(lower(plan.graph, plan)) as executor:
        for name, value in initial_values(plan.graph):
            executor.write(name, value)
        executor.write("conv2_weight", before)
        executor.run()
        changed = executor.read("conv2_weight") != before
        errors = executor.read("error(conv2_weight)")
    assert 3 <= changed.sum() <= 6
    assert errors.shape == (2, *before.shape)
    assert not errors[:, changed].all()


def test_files_have_numbers_and_shares(tmp_path: Path) -> None:
    for elements in (3, 0.25):
        plan = planned(Rewrite(TopK(elements)), 2)
        plan.save(tmp_path / "plan.json")
        assert Plan.load(tmp_path / "plan.json") == plan
        entry = {"sync": "all-reduce", "encode": {"topk": elements}}
        read = tofu.sync.parse({"strategy": 1, "variables": {"*": entry}}, linear(), 2)
        assert read.variables["fc_weight"].rewrite == Rewrite(TopK(elements))
        assert tofu.sync.parse(tofu.sync.document(read), linear(), 2) == read
    for wrong, why in ((0, "between 1"), (1.5, "between 0 and 1"), (True, "topk"), ("all", "topk")):
        entry = {"sync": "all-reduce", "encode": {"topk": wrong}}
        with pytest.raises(PlanError, match=why):
            tofu.sync.parse({"strategy": 1, "variables": {"*": entry}}, linear(), 2)


def test_what_cannot_be_exchanged_is_refused() -> None:
    with pytest.raises(GraphError, match=r"has 24 elements, so 25 of them cannot be exchanged"):
        planned(Rewrite(TopK(OUTPUTS * INPUTS + 1)), 2)
    with pytest.raises(GraphError, match="elements is 0"):
        TopK(0)
    with pytest.raises(GraphError, match=r"elements is 1\.0"):
        TopK(1.0)
    narrow = tofu.models.get("mlp", batch=8).training_graph(dtype="float16")
    with pytest.raises(GraphError, match="in float16, in which places of elements are not exact"):
        compile_strategy(narrow, 2, everywhere(all_reduce(narrow, 2), TopK(1)))
    wide = tofu.models.get("mlp", batch=8, hidden=(30000,)).training_graph()
    with pytest.raises(GraphError, match=f"23,520,000 elements, but places are exact up to {MOST:,}"):
        compile_strategy(wide, 2, everywhere(all_reduce(wide, 2), TopK(1)))
    levels = Synchronisation((AllReduce(two_level=True),), None, Rewrite(TopK(2)))
    with pytest.raises(PlanError, match="in two levels, but its gradient is not made as partial results"):
        compile_strategy(linear(), 4, SyncStrategy({"fc_weight": levels}, ((0, 1), (2, 3))))
