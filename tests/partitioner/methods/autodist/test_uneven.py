"""Unequal shares of all-reduces, and updates at the end: the bits of one worker, and the bytes of shares."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tofu
from tofu.errors import PlanError
from tofu.partitioner import lower
from tofu.partitioner.methods.autodist.builders import all_reduce, ps_load_balancing
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.gradient_groups import gradient_groups
from tofu.partitioner.methods.autodist.merging import merge
from tofu.partitioner.methods.autodist.strategy import SyncStrategy
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy
from tofu.partitioner.methods.autodist.uneven import share_bounds
from tofu.programs.check_program import check_program
from tofu.programs.program import Reduce

from ....runtime.test_partitioned_training import single, training
from .embedded import embedded
from .test_compiling import require_bits, trained

SHARES = (0.6, 0.0, 0.3, 0.1)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shares", [None, SHARES])
def test_they_train_the_bits_of_one_worker(shares: tuple[float, ...] | None, last: bool) -> None:
    graph = training("perceptron")
    for build in (all_reduce, ps_load_balancing):
        strategy = SyncStrategy(build(graph, 4).variables, updates_last=last, shares=shares)
        require_bits(trained(graph, compile_strategy(graph, 4, strategy), 2), single("perceptron", 2))


def test_a_worker_without_a_share_reduces_nothing() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    plain = all_reduce(graph, 4)
    plan = compile_strategy(graph, 4, SyncStrategy(plain.variables, shares=SHARES))
    reduced = [
        sum(p.buffers[i.target].nbytes for i in p.instructions if isinstance(i, Reduce))
        for p in lower(graph, plan).programs
    ]
    assert reduced[1] == 0
    assert reduced[0] > 1.5 * reduced[2] > 3 * reduced[3] > 0
    assert plan.cost_bytes == compile_strategy(graph, 4, plain).cost_bytes


@given(st.integers(1, 60), st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda s: sum(s) > 0.1))
def test_shares_cover_a_dimension_in_order(extent: int, shares: list[float]) -> None:
    bounds = share_bounds(extent, shares)
    assert bounds[0] == 0
    assert bounds[-1] == extent
    assert bounds == sorted(bounds)


def test_updates_last_come_after_all_others() -> None:
    graph = embedded()
    strategy = SyncStrategy(all_reduce(graph, 4).variables, updates_last=True)
    plan = compile_strategy(graph, 4, strategy)
    assert plan.written_order is not None
    last = [name.startswith("update") for name in plan.order]
    assert last == sorted(last)
    assert sum(last) == 3


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([1, 2, 3, 9]), st.booleans())
def test_merged_programs_are_right(size: int, last: bool) -> None:
    graph = tofu.models.get("lenet", batch=8).training_graph()
    strategy = SyncStrategy(all_reduce(graph, 4, chunk_size=size).variables, updates_last=last, shares=SHARES)
    program = lower(graph, compile_strategy(graph, 4, strategy))
    merged = merge(graph, program, strategy)
    check_program(graph, 4, program.planned_bytes, merged.program)
    assert merged.messages.count <= len(gradient_groups(graph, strategy)) * 4 * 3 * 2
    assert sum(message.nbytes for message in merged.messages) == program.planned_bytes


def test_files_keep_them() -> None:
    graph = embedded()
    strategy = SyncStrategy(all_reduce(graph, 4).variables, updates_last=True, shares=SHARES)
    document = strategy_document(strategy)
    assert (document["updates"], document["shares"]) == ("last", list(SHARES))
    assert parse_strategy(document, graph, 4) == strategy


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"updates": "lats"}, "updates is 'lats'; did you mean 'last'"),
        ({"shares": [1]}, "shares has 1 entries for 4 workers; write one for each"),
        ({"shares": [1, 0, -1, 0]}, r"shares\[2\] is -1; it must be a number from 0 to 1"),
        ({"shares": [0, 0, 0, float("nan")]}, r"shares\[3\] is nan; it must be a number"),
        ({"shares": [0, 0, 0, True]}, r"shares\[3\] is true; it must be a number"),
        ({"shares": [0, 0, 0, 0]}, "shares are all 0; give a worker a part"),
    ],
)
def test_mistakes_in_files_are_named(entry: dict[str, object], message: str) -> None:
    graph = embedded()
    document = {**strategy_document(all_reduce(graph, 4)), **entry}
    with pytest.raises(PlanError, match=message):
        parse_strategy(document, graph, 4)


@pytest.mark.parametrize("shares", [(1.0,), (1.0, -1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (float("nan"),) * 4])
def test_shares_that_cannot_be_are_refused(shares: tuple[float, ...]) -> None:
    graph = embedded()
    with pytest.raises(PlanError, match="give one for each worker, none of them negative"):
        compile_strategy(graph, 4, SyncStrategy(all_reduce(graph, 4).variables, shares=shares))
