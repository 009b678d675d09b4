"""Computations between two waits are issued as one, and nothing waits for more than before."""

from __future__ import annotations

from itertools import product

import pytest

import tofu
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.programs import plan_memory
from tofu.programs.process_messages import messages_of
from tofu.programs.program import Lane
from tofu.programs.schedule import schedule
from tofu.runtime.cuda.compute_runs import compute_runs
from tofu.runtime.distributed.process_view import process_view

from .graphs import graph

WORKERS = 4


@pytest.mark.parametrize("places", [(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 2, 3)])
@pytest.mark.parametrize("name", ["mlp", "residual", "lstm"])
def test_a_run_waits_at_its_beginning_and_is_awaited_at_its_end(name: str, places: tuple[int, ...]) -> None:
    trained = graph(name)
    program = tofu.lower(trained, compile_strategy(trained, WORKERS, all_reduce(trained, WORKERS)))
    view = process_view(program, plan_memory(program), messages_of(program, places), places, 0)
    waits = schedule(view.partitioned, view.memory)
    awaited = {wait for own in waits.waits for each in own for wait in each}
    order = waits.in_order(product(range(WORKERS), Lane))
    runs = compute_runs([(place,) for place in order], waits, awaited)
    assert sorted(place for run in runs for place in run) == sorted(order)
    done: set[tuple[int, int]] = set()
    for run in runs:
        lanes = {(worker, waits.lanes[worker][index]) for worker, index in run}
        assert len(lanes) == 1
        assert list(run) == sorted(run)
        assert not any(waits.waits[worker][index] for worker, index in run[1:])
        assert awaited.isdisjoint(run[:-1])
        own = [wait for worker, index in run for wait in waits.waits[worker][index]]
        assert {wait for wait in own if wait[0] < WORKERS} <= done, "they wait for what was issued before"
        done.update(run)
    assert sum(len(run) > 1 for run in runs) > 0
    transfers = [run for run in runs if waits.lanes[run[0][0]][run[0][1]] is not Lane.COMPUTE]
    assert all(len(run) == 1 for run in transfers)
