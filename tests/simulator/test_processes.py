"""Simulated processes: time lines that the checker accepts, and what links and messages add to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.errors import MachineError
from tofu.machines.device_kind import DeviceKind
from tofu.machines.machine import Level, Machine
from tofu.machines.profile import EngineTimes, Host, MeasuredTime, Profile, WakeTime
from tofu.programs import plan_memory, schedule
from tofu.programs.instruction_work import message_kind
from tofu.programs.messages import messages
from tofu.programs.process_messages import messages_of
from tofu.programs.program import BufferKind, PartitionedGraph
from tofu.simulator import check_timeline
from tofu.simulator.times import ITERATION, NOTICED

KIND = DeviceKind("process", 1 << 30, 10e9, (("float32", 50e9),), 1e-6, True, 20e-6, True)
SLOW = 1e6
"""Bytes in a second of a link that decides the time of everything."""


def machine(workers: int, bandwidth: float = 1e9, latency: float = 0.0) -> Machine:
    names = tuple(f"process{number}" for number in range(workers))
    level = Level("process", bandwidth, latency)
    return Machine("run", (level,), names, (tuple(range(workers)),), 1 << 30, (KIND,) * workers)


def lowered(model: str, workers: int, method: str = "recursive") -> PartitionedGraph:
    graph = tofu.models.get(model, batch=12).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers, method))


@pytest.mark.parametrize("method", ["recursive", "data-parallel", "partitioned-ps"])
@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("tight", [False, True])
def test_time_lines_pass_the_checker(method: str, workers: int, tight: bool) -> None:
    partitioned = lowered("lenet", workers, method)
    waits = schedule(partitioned, plan_memory(partitioned)) if tight else None
    timeline = tofu.simulate(partitioned, machine(workers), waits)
    check_timeline(timeline)
    assert timeline.moved_bytes == partitioned.planned_bytes
    assert timeline.critical_path_seconds <= timeline.seconds
    assert timeline.busiest_lane_seconds <= timeline.seconds
    assert len(timeline.shares) == workers
    assert "process 0 sent" in timeline.lanes


def test_two_workers_of_each_process_share_it() -> None:
    partitioned = lowered("mlp", 4)
    timeline = tofu.simulate(partitioned, machine(2))
    check_timeline(timeline)
    assert timeline.moved_bytes == partitioned.planned_bytes
    crossing = sum(message.nbytes for message in messages_of(partitioned, (0, 0, 1, 1)))
    assert crossing < partitioned.planned_bytes


def test_memory_that_is_used_again_takes_no_less_time() -> None:
    partitioned = lowered("lenet", 4)
    waits = schedule(partitioned, plan_memory(partitioned))
    assert (
        tofu.simulate(partitioned, machine(4), waits).seconds
        >= tofu.simulate(partitioned, machine(4)).seconds
    )


def test_a_slow_link_decides() -> None:
    """All bytes of one direction cross one link."""
    partitioned = lowered("mlp", 2)
    sent = [each.nbytes for each in messages_of(partitioned, (0, 1)) if each.sender == 0]
    timeline = tofu.simulate(partitioned, machine(2, SLOW))
    assert timeline.seconds >= sum(sent) / SLOW
    assert timeline.seconds < 1.2 * sum(sent) / SLOW + tofu.simulate(partitioned, machine(2)).seconds


@pytest.mark.parametrize("delay", [1e-3, 1e-2])
def test_delays_add_to_chains_of_messages_and_to_the_end(delay: float) -> None:
    partitioned = lowered("mlp", 2)
    soon, late = (tofu.simulate(partitioned, machine(2, latency=each)).seconds for each in (0.0, delay))
    count = len(messages_of(partitioned, (0, 1)))
    assert 3 * delay <= late - soon <= (count + 2) * delay


def profile(partitioned: PartitionedGraph, sent: float, received: float) -> Profile:
    """Return the times of messages, of a notice and of what is around an iteration."""
    kinds = {
        message_kind(part): {
            (len(message.pieces) if part is BufferKind.SENT else 1, message.nbytes): MeasuredTime(
                seconds, 0.0, (1, len(message.pieces), message.nbytes)
            )
            for message in messages_of(partitioned, (0, 1))
        }
        for part, seconds in ((BufferKind.SENT, sent), (BufferKind.RECEIVED, received))
    }
    kinds[NOTICED] = {(): MeasuredTime(5e-5, 0.0, (1,))}
    kinds[ITERATION] = {(): MeasuredTime(7e-3, 0.0, (1,))}
    host = Host("processor", 2, "2", "blas", "kernels")
    times = EngineTimes("processes", 2, 1, WakeTime(1, 1e-5), kinds)
    return Profile("run", host, (times,), "run.profile.json")


def test_measured_messages_take_their_times() -> None:
    partitioned = lowered("mlp", 2)
    found = replace(machine(2), profile=profile(partitioned, 2e-3, 3e-3))
    timeline = tofu.simulate(partitioned, found)
    check_timeline(timeline)
    spans = {part: timeline.lanes[f"process 0 {part}"] for part in ("sent", "received")}
    for part, seconds in (("sent", 2e-3), ("received", 3e-3)):
        lengths = {span.end_nanoseconds - span.start_nanoseconds for span in spans[part]}
        assert lengths == {round(seconds * 1e9)}
    without = replace(found.profile, engines=(replace(found.profile.engines[0], kinds={}),))  # type: ignore[arg-type, union-attr, type-var]
    faster = tofu.simulate(partitioned, replace(found, profile=without))
    assert timeline.seconds - faster.seconds > 7e-3


def test_what_processes_cannot_have_is_refused() -> None:
    partitioned = lowered("mlp", 2)
    with pytest.raises(MachineError, match="have messages of their own"):
        tofu.simulate(partitioned, machine(2), messages=messages(partitioned))
    graph = partitioned.graph
    with pytest.raises(MachineError, match="plans that change are not simulated on processes"):
        tofu.partitioner.simulation(graph, tofu.partition(graph, 2), machine(2))


def test_machine_files_say_which_devices_are_processes() -> None:
    text = {
        "machine": "run",
        "kind": "process",
        "kinds": {
            "process": {
                "memory_bandwidth": "10 GB/s",
                "rates": {"float32": "50 GFLOP/s"},
                "kernel_start": "1 us",
                "in_turn": True,
                "process": True,
            }
        },
        "levels": [{"name": "cable", "bandwidth": "12.5 MB/s", "latency": "100 us"}],
        "devices": ["a", "b"],
    }
    found = tofu.machines.machine_file.decode_machine(text)
    assert found.processes
    assert found.kind(0).engine == "processes"
    text["kinds"]["process"]["in_turn"] = False  # type: ignore[index]
    with pytest.raises(MachineError, match=r"process is true, but .*in_turn is not"):
        tofu.machines.machine_file.decode_machine(text)
