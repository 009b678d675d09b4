"""Processes measure the instructions of programs and their messages, once, and simulations use the times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.machines.write_machine import save_machine
from tofu.programs.instruction_work import message_kind
from tofu.programs.process_messages import messages_of
from tofu.programs.program import BufferKind, PartitionedGraph
from tofu.runtime.distributed import process_times
from tofu.runtime.distributed.process_times import ProcessProfiler
from tofu.runtime.distributed.processes import Processes
from tofu.simulator import check_timeline
from tofu.simulator.times import ITERATION, NOTICED

from ...machines.test_profile_file import MACHINE
from .forked import results

ROUNDS = 3


def lowered(workers: int, model: str = "mlp") -> PartitionedGraph:
    graph = tofu.models.get(model, batch=12).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates of the processor, which take a while to measure."""
    monkeypatch.setattr(process_times, "measure_processor", lambda: MACHINE)


@pytest.mark.parametrize("count", [2, 3])
def test_all_work_is_measured_once(count: int, tmp_path: Path) -> None:
    program, path = lowered(count), tmp_path / "run.yaml"

    def work(processes: Processes) -> list[tuple[int, int]]:
        profiler = ProcessProfiler(processes, path, rounds=ROUNDS)
        added = [profiler.add(each) for each in (program, program, lowered(count, "lenet"))]
        assert (profiler.first is None) == bool(processes.number)
        return [(each.measured, each.known) for each in added]

    first, *others = results(count, work)
    assert not isinstance(first, str), first
    assert first[0][0] > 0
    assert first[0][1] == 0
    assert first[1] == (0, first[0][0])
    assert first[2][0] > 0
    assert all(measured == 0 for other in others for measured, _ in other)
    machine = tofu.machines.load(str(path))
    assert machine.processes
    assert len(machine.devices) == count
    assert machine.profile is not None
    (times,) = machine.profile.engines
    assert (times.engine, times.threads) == ("processes", count)
    for message in messages_of(program, range(count)):
        sent = times.kinds[message_kind(BufferKind.SENT)]
        received = times.kinds[message_kind(BufferKind.RECEIVED)]
        assert 0 < sent[len(message.pieces), message.nbytes].seconds < 1
        assert 0 < received[1, message.nbytes].seconds < 1
    assert 0 < times.kinds[NOTICED][()].seconds < 1
    assert 0 < times.kinds[ITERATION][()].seconds < 1
    timeline = tofu.simulate(program, machine)
    check_timeline(timeline)
    assert timeline.times == "measured"
    assert timeline.seconds > times.kinds[ITERATION][()].seconds
    larger = tofu.models.get("mlp", batch=36).training_graph()
    again = tofu.simulate(tofu.lower(larger, tofu.partition(larger, count)), machine)
    assert again.times in ("fitted", "estimated")


def test_a_file_of_threads_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    def work(processes: Processes) -> Any:
        name = process_times.ProcessHardware(processes).name
        if not processes.number:
            save_machine(replace(MACHINE, name=name), path)
        ProcessProfiler(processes, path)

    (said, _) = results(2, work)
    assert "devices with" in said


def test_programs_for_other_numbers_of_workers_are_refused(tmp_path: Path) -> None:
    def work(processes: Processes) -> Any:
        ProcessProfiler(processes, tmp_path / "run.yaml", rounds=ROUNDS).add(lowered(4))

    for said in results(2, work):
        assert "4 workers, but the processes run 2" in said


@pytest.mark.torch
def test_another_transport_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def work(processes: Processes) -> str:
        processes.exchange("begin", b"")  # neither ends while the other still connects
        with pytest.raises(ExecutionError, match="over the transport tcp"):
            ProcessProfiler(processes, tmp_path / "run.yaml")
        return "done"

    assert results(2, work, transport="gloo") == ["done"] * 2
