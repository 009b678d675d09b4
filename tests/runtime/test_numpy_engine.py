"""The NumPy engine: which thread runs what, and transfers next to computations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tofu.dataflow.graph import Role
from tofu.programs import plan_memory, schedule
from tofu.programs.program import Lane, MultiFetch
from tofu.runtime.engine import Watch
from tofu.runtime.executor import Executor
from tofu.runtime.numpy_engine import NumpyEngine, served_lanes

PATIENCE_SECONDS = 20.0


@pytest.mark.parametrize("threads", range(1, 9))
def test_results_do_not_depend_on_the_number_of_threads(toys: Any, threads: int) -> None:
    for seed in range(5):
        toy, partitioned, values = toys.random_toy(seed, workers=4, operations=8)
        with Executor(partitioned, threads=threads) as executor:
            for name, value in values.items():
                executor.write(name, value)
            executor.run()
            expected = toy.expected(values)
            for name in values:
                np.testing.assert_array_equal(executor.read(name), expected[name])
            assert executor.fetched_bytes == partitioned.planned_bytes


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_every_lane_is_served_once_and_in_order(toys: Any, workers: int) -> None:
    _, partitioned, _ = toys.random_toy(1, workers=workers, operations=8)
    plan = schedule(partitioned, plan_memory(partitioned))
    everything = sorted(
        (w, i) for w, program in enumerate(partitioned.programs) for i in range(len(program.instructions))
    )
    for threads in range(1, 2 * workers + 1):
        served = [plan.in_order(lanes) for lanes in served_lanes(range(workers), threads)]
        assert len(served) == threads
        assert sorted(place for places in served for place in places) == everything
        for places in served:
            ticks = [plan.ticks[worker][index] for worker, index in places]
            assert ticks == sorted(ticks)
        for lane in Lane:
            for worker in range(workers):
                own = {
                    thread
                    for thread, places in enumerate(served)
                    for w, i in places
                    if (w, plan.lanes[w][i]) == (worker, lane)
                }
                assert len(own) <= 1
        if threads > workers:
            assert all(len({plan.lanes[w][i] for w, i in places}) <= 1 for places in served)


def waiting(done: Callable[[], bool]) -> Callable[[Any], Callable[[], None]]:
    """A kernel that copies its input once `done` says so."""

    def prepare(call: Any) -> Callable[[], None]:
        def run() -> None:
            last = time.monotonic() + PATIENCE_SECONDS
            while not done():
                assert time.monotonic() < last, "the transfer did not run next to the computation"
                time.sleep(0.001)
            call.outputs[0][...] = call.inputs["a"]

        return run

    return prepare


def test_a_transfer_runs_next_to_an_earlier_computation(toys: Any) -> None:
    """Worker 1 computes until it sees what it fetches for the operation after."""
    engines: list[NumpyEngine] = []
    toy = toys.Toy(2)
    x = toy.tensor("x", 4, Role.DATA, [(0, 4), (4, 4)])
    y = toy.tensor("y", 4, Role.DATA, [(0, 0), (0, 4)])
    one = [(0, 0), (0, 4)]
    slow = toys.FakeBound(
        toys.FakeDescription(("a",), "slow"),
        ("i",),
        frozenset(),
        waiting(lambda: bool(engines[0].buffers[1][target].any())),
    )
    a = toy.apply(slow, [y], "a", cuts=one, work=one)
    b = toy.apply(toys.ADD, [x, x], "b", cuts=one, work=one)
    partitioned = toy.lower([a, b])
    instructions = partitioned.programs[1].instructions
    target = next(each.target for each in instructions if isinstance(each, MultiFetch))
    memory = plan_memory(partitioned)
    plan = schedule(partitioned, memory)
    watch = Watch(PATIENCE_SECONDS)
    engines.append(NumpyEngine(partitioned, memory, plan, watch=watch, threads=4))
    try:
        (engine,) = engines
        for name, tensor in (("x", x), ("y", y)):
            for worker, buffer in partitioned.homes[tensor]:
                engine.write(worker, buffer, np.full(4, 7.0 if name == "x" else 5.0))
        engine.run()
        for tensor, value in ((a, 5), (b, 14)):
            for worker, buffer in partitioned.homes[tensor]:
                assert (engine.read(worker, buffer) == value).all()
    finally:
        engines[0].close()
