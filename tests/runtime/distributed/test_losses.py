"""A process that is killed, stops, fails or leaves: all others end soon, and say who it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.programs.program import PartitionedGraph
from tofu.runtime.distributed.processes import Processes
from tofu.runtime.executor import Executor

from .forked import forked, results
from .test_same_bits import values_for

COUNT = 4
KILLED_SECONDS = 10.0
"""A second, and what a busy machine adds."""


@pytest.fixture(scope="module")
def partitioned() -> PartitionedGraph:
    graph = tofu.models.get("mlp", batch=12).training_graph()
    return tofu.lower(graph, tofu.partition(graph, COUNT))


def training(
    partitioned: PartitionedGraph,
    disturb: Callable[[Processes, int], None] = lambda processes, iteration: None,
) -> Callable[[Processes], Any]:
    """Return a run that says when it has begun, and trains until it fails."""

    def work(processes: Processes) -> None:
        executor = Executor(partitioned, make_engine=processes.engine())
        for name, value in values_for(partitioned.graph).items():
            executor.write(name, value)
        executor.run()
        processes.say("begun")  # type: ignore[attr-defined]
        for iteration in range(1_000_000):
            disturb(processes, iteration)
            executor.run()

    return work


@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("transport", ["tcp", pytest.param("gloo", marks=pytest.mark.torch)])
def test_killed(partitioned: PartitionedGraph, victim: int, transport: str) -> None:
    if transport == "gloo":
        pytest.importorskip("torch")
    with forked(COUNT, training(partitioned), transport=transport) as running:
        for number in range(COUNT):
            assert running.said(number) == "begun"
        time.sleep(0.1)
        os.kill(running.pid(victim), signal.SIGKILL)
        assert running.ended(20) < KILLED_SECONDS
        for number in set(range(COUNT)) - {victim}:
            said = running.said(number)
            assert said.startswith("ExecutionError")
            assert f"process {victim} (worker {victim} on " in said, said
            assert "was lost" in said


@pytest.mark.parametrize("victim", [0, 3])
def test_stopped(partitioned: PartitionedGraph, victim: int) -> None:
    with forked(COUNT, training(partitioned), timeout_seconds=1.5) as running:
        for number in range(COUNT):
            assert running.said(number) == "begun"
        os.kill(running.pid(victim), signal.SIGSTOP)
        started = time.monotonic()
        for number in set(range(COUNT)) - {victim}:
            said = running.said(number)
            assert f"process {victim} (" in said, said
            assert "has sent nothing for" in said
        assert time.monotonic() - started < 1.5 + KILLED_SECONDS


def test_an_error_in_one_is_the_error_of_all(partitioned: PartitionedGraph) -> None:
    def disturb(processes: Processes, iteration: int) -> None:
        if processes.number == 2 and iteration == 3:
            raise processes.fail(ValueError("the disk of process 2 is full"))

    for said in results(COUNT, both(training(partitioned, disturb))):
        assert "the disk of process 2 is full" in said


@pytest.mark.parametrize("wrong", [(0,), (2,), (0, 1, 2, 3)])
@pytest.mark.parametrize("transport", ["tcp", pytest.param("gloo", marks=pytest.mark.torch)])
def test_a_step_that_fails_ends_all(
    partitioned: PartitionedGraph, wrong: tuple[int, ...], transport: str
) -> None:
    """Others wait for messages that do not come, and the process itself may wait for theirs."""
    if transport == "gloo":
        pytest.importorskip("torch")

    def work(processes: Processes) -> float:
        executor = Executor(partitioned, make_engine=processes.engine(), detect_nan=True)
        for name, value in values_for(partitioned.graph).items():
            executor.write(name, value)
        executor.run()
        if processes.number in wrong:
            for name, value in values_for(partitioned.graph).items():
                if value.dtype.kind == "f":
                    executor.write(name, np.full_like(value, np.nan))
        started = time.monotonic()
        with pytest.raises(ExecutionError, match=r"worker \d, .*, iteration 1: .* is not a number"):
            executor.run()
        return time.monotonic() - started

    for said in results(COUNT, work, transport=transport):
        assert isinstance(said, float), said
        assert said < KILLED_SECONDS


def test_an_interrupt_in_one_ends_all(partitioned: PartitionedGraph) -> None:
    def disturb(processes: Processes, iteration: int) -> None:
        if processes.number == 2 and iteration == 3:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            signal.signal(signal.SIGALRM, signal.default_int_handler)

    told = results(COUNT, both(training(partitioned, disturb)))
    assert told[2].startswith("KeyboardInterrupt")
    for number in (0, 1, 3):
        assert "process 2 " in told[number], told
        assert "was interrupted" in told[number], told


def test_one_that_leaves_early_is_named(partitioned: PartitionedGraph) -> None:
    def disturb(processes: Processes, iteration: int) -> None:
        if processes.number == 1 and iteration == 3:
            raise KeyError("a mistake of the script")

    told = results(COUNT, both(training(partitioned, disturb)))
    assert "KeyError" in told[1]
    for number in (0, 2, 3):
        assert "process 1 (" in told[number], told
        assert "ended with KeyError: 'a mistake of the script'" in told[number], told


@pytest.mark.parametrize("interrupted", [0, 2])
def test_an_interrupt_between_iterations_is_told(partitioned: PartitionedGraph, interrupted: int) -> None:
    def disturb(processes: Processes, iteration: int) -> None:
        if processes.number == interrupted and iteration == 3:
            raise KeyboardInterrupt

    told = results(COUNT, both(training(partitioned, disturb)))
    assert told[interrupted].startswith("KeyboardInterrupt")
    for number in set(range(COUNT)) - {interrupted}:
        assert f"process {interrupted} (" in told[number], told
        assert "was interrupted" in told[number], told


def test_one_that_has_finished_is_told_from_one_that_failed(partitioned: PartitionedGraph) -> None:
    def work(processes: Processes) -> None:
        if processes.number == 1:
            raise SystemExit(0)
        processes.any(True)

    told = results(COUNT, work)
    for number in (0, 2, 3):
        assert "ended before the others" in told[number], told


def test_scripts_that_do_different_things_are_told(partitioned: PartitionedGraph) -> None:
    def work(processes: Processes) -> None:
        if processes.number:
            processes.any(True)
        else:
            processes.text(lambda: "")

    for said in results(2, work):
        assert "wants to share a flag" in said
        assert "all processes must run the same script" in said


@pytest.mark.parametrize("other", [0, 1])
def test_an_iteration_of_one_alone_is_told(partitioned: PartitionedGraph, other: int) -> None:
    """One waits for messages of an iteration, and the others for an exchange, of which one is named."""
    unlike = [number for number in range(1, COUNT) if other in (0, number)]

    def work(processes: Processes) -> None:
        executor = Executor(partitioned, make_engine=processes.engine())
        executor.run()
        if processes.number == other:
            executor.run()
        executor.read("fc1_weight")

    begun = time.monotonic()
    for said in results(COUNT, work):
        assert any(f"process {number} (" in said for number in unlike)
        assert "wants to " in said
        assert "end an iteration" in said
        assert "all processes must run the same script" in said
    assert time.monotonic() - begun < 3 * KILLED_SECONDS


def test_a_difference_is_named_before_the_first_step(partitioned: PartitionedGraph) -> None:
    graph = partitioned.graph
    other = tofu.lower(graph, tofu.partition(graph, COUNT, "data-parallel"))

    def work(processes: Processes) -> None:
        Executor(other if processes.number == 3 else partitioned, make_engine=processes.engine())

    for said in results(COUNT, work):
        assert "differ in the programs" in said
        assert "process 3 (worker 3 on " in said


def both(work: Callable[[Processes], Any]) -> Callable[[Processes], Any]:
    """Leave out what a run says when it has begun."""

    def quiet(processes: Processes) -> Any:
        processes.say = lambda text: None  # type: ignore[attr-defined]
        return work(processes)

    return quiet


def test_errors_are_of_the_package(partitioned: PartitionedGraph) -> None:
    def work(processes: Processes) -> str:
        def make() -> str:
            raise tofu.DataError("there is no disk")

        with pytest.raises(tofu.DataError, match="there is no disk"):
            processes.text(make)
        with pytest.raises(ExecutionError, match="differ in the seed: 0 and 1"):
            processes.agree({"the seed": str(processes.number)})
        return "done"

    assert results(3, work) == ["done"] * 3
