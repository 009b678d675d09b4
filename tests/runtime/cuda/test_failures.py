"""Failures of the CUDA engine, and their messages."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from tofu.errors import ExecutionError
from tofu.programs.memory import MemoryPlan
from tofu.programs.program import PartitionedGraph
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.engine import Watch
from tofu.runtime.executor import Executor
from tofu.runtime.timing import StepSeconds

from .bench import Bench, learned, over, start
from .graphs import graph
from .guards import intact
from .host_machine import TICK


def test_the_operation_that_makes_what_is_no_number_is_named(bench: Bench) -> None:
    """It is the same one, and the same number, on both engines."""
    partitioned, values = over(graph("mlp-adam"), 2), start(graph("mlp-adam"))
    weight = next(name for name in values if name.endswith("fc2_weight"))
    values[weight][1, 2] = np.nan
    said = []
    for executor in (Executor(partitioned, detect_nan=True), bench.executor(partitioned, detect_nan=True)):
        with executor, pytest.raises(ExecutionError, match=r"worker \d, .*fc2.*is not a number") as caught:
            learned(executor, values)
        place, tensor = re.match(r"(worker .*?\)).*: (\S+\[.*?\]) is not", str(caught.value), re.S).groups()
        said.append((place, tensor))
    assert said[0] == said[1]


def test_every_operator_is_timed(bench: Bench) -> None:
    partitioned, values = over(graph("mlp-adam"), 2), start(graph("mlp-adam"))
    with Executor(partitioned, timed=True) as processor, bench.executor(partitioned, timed=True) as executor:
        learned(processor, values, steps=1)
        learned(executor, values, steps=1)
        assert executor.operator_seconds.keys() == processor.operator_seconds.keys()
        assert min(executor.operator_seconds.values()) > 0
    assert bench.machine.captures == 0


def test_an_instruction_takes_as_long_as_its_commands(host: Bench) -> None:
    """By the stand-in's clocks, whatever runs in other streams meanwhile; waits do not count.

    Without access between the cards, transfers copy piece by piece.
    """
    partitioned, values = over(graph("residual"), 2), start(graph("residual"))
    seconds = StepSeconds(partitioned)

    def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> CudaEngine:
        return host.maker(islands=[0, 1])(partitioned, memory, replace(watch, seconds=seconds))

    with Executor(partitioned, make_engine=make) as executor:
        learned(executor, values, steps=2)
    issued = [[len(each) * TICK for each in prepared.commands] for prepared in host.engine._prepared]
    assert seconds.seconds == issued
    assert max(map(max, issued)) > TICK


def test_an_index_that_is_none_is_named(bench: Bench) -> None:
    """Of a row of the embedding; nothing else is written, and the engine does not continue."""
    partitioned, values = over(graph("lstm"), 2), start(graph("lstm"))
    values["data"] = np.array(values["data"], np.float32)
    values["data"][3, 1] = 0.5
    with bench.executor(partitioned) as executor:
        with pytest.raises(ExecutionError, match=r"worker \d, .*embed.*iteration 0: an index .* outside"):
            learned(executor, values)
        assert executor.failed
        assert intact(bench.machine)
        with pytest.raises(ExecutionError, match=r"stopped earlier \(worker \d, .*make a new one"):
            executor.run()


def test_too_little_memory_is_said_before_any_is_taken(bench: Bench) -> None:
    partitioned = over(graph("mlp-adam"), 2)
    with pytest.raises(ExecutionError, match="the card has 1000 bytes"):
        bench.executor(partitioned, limit_bytes=1000)
    assert bench.machine.blocks == []


def test_a_closed_engine_does_not_run(bench: Bench) -> None:
    executor = bench.executor(over(graph("mlp-adam"), 2))
    executor.close()
    with pytest.raises(ExecutionError, match=r"stopped earlier \(closed\)"):
        executor.run()


def test_an_iteration_fails_that_is_closed_meanwhile(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = host.executor(over(graph("mlp-adam"), 2))
    synchronize = host.machine.synchronize

    def closing() -> None:
        synchronize()
        executor.close()

    monkeypatch.setattr(host.machine, "synchronize", closing)
    with pytest.raises(ExecutionError, match="the executor was closed during run"):
        executor.run()


@pytest.mark.gpu
def test_an_iteration_without_end_is_given_up(cards: Bench) -> None:
    """Here it has one, later: what it uses is not freed before."""
    with cards.executor(over(graph("mlp-adam"), 2), watchdog_seconds=0.3) as executor:
        cards.machine.stall_seconds = 2.0
        begun = time.monotonic()
        with pytest.raises(ExecutionError, match=r"no progress for 0.3 s: worker \d on gpu\(\d\)"):
            executor.run()
    assert time.monotonic() - begun < 1.5
    time.sleep(2.5)
