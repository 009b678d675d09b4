"""Instructions are measured once, by an injected clock, and kept in a profile."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tofu
from tofu.errors import MachineError
from tofu.machines.profile import MeasuredTime, WakeTime
from tofu.machines.profile_file import load_profile, profile_path, save_profile
from tofu.programs import PartitionedGraph, Schedule
from tofu.programs.program import Lane
from tofu.runtime import numpy_engine, processor, profiling
from tofu.runtime.instruction_times import MeasuredRound, ProgramWork, measured_round, usual_times
from tofu.runtime.processor import machine_name, measure_processor
from tofu.runtime.profiling import Processor, Profiler
from tofu.simulator import check_timeline

from ..machines.test_profile_file import MACHINE

TICK = 1e-3


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine file that is not there yet, on a processor of two cores that need not be measured."""
    monkeypatch.setattr(numpy_engine, "processors", lambda: 2)
    monkeypatch.setattr(profiling, "measure_processor", lambda: replace(MACHINE, name=machine_name()))
    return tmp_path / "here.yaml"


def ticking() -> Callable[[], float]:
    """A clock that moves by a tick whenever someone looks at it."""
    count = itertools.count()
    return lambda: next(count) * TICK


def program(batch: int = 8, workers: int = 1) -> PartitionedGraph:
    graph = tofu.models.get("mlp", batch=batch).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


def test_programs_are_measured_once(path: Path) -> None:
    profiler = Profiler(path, Processor(ticking()), rounds=3)
    partitioned = program()
    work = ProgramWork.of(partitioned)
    assert work.places.keys() == {(0, index) for index in range(len(partitioned.programs[0].instructions))}
    added = profiler.add(partitioned)
    assert (added.measured, added.known) == (len(work.amounts), 0)
    assert profiler.machine.profile is not None
    (times,) = profiler.machine.profile.engines
    assert (times.engine, times.threads, times.wakes) == ("numpy", 1, WakeTime(0, 0.0))
    found = {(kind, sizes): each for kind, by_size in times.kinds.items() for sizes, each in by_size.items()}
    assert {each: time.amounts for each, time in found.items()} == work.amounts
    assert max(time.seconds for time in found.values()) == pytest.approx(2 * TICK)
    assert profiler.add(partitioned) == replace(added, measured=0, known=added.measured)
    again = Profiler(path, Processor())
    assert again.machine == profiler.machine
    assert again.add(partitioned).measured == 0
    assert again.add(program(16)).measured > 0
    timeline = tofu.simulate(partitioned, str(path))
    check_timeline(timeline)
    assert timeline.times == "measured"
    count = len(work.places)
    assert timeline.seconds == pytest.approx((2 * count - 1) * TICK)


def test_another_number_of_threads_is_measured_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiler = Profiler(path, Processor(), rounds=1)
    profiler.add(program())
    monkeypatch.setattr(profiling, "default_threads", lambda workers: 2)
    assert profiler.add(program()).known == 0
    assert profiler.machine.profile is not None
    assert [each.threads for each in profiler.machine.profile.engines] == [1, 2]
    assert load_profile(profile_path(path), machine_name()) == profiler.machine.profile


def test_workers_run_at_the_same_time(path: Path) -> None:
    machine = tofu.machines.measure([program(workers=2)], path, rounds=2)
    timeline = tofu.simulate(program(workers=2), machine)
    check_timeline(timeline)
    assert timeline.times == "measured"
    assert timeline.transfer_seconds > 0


def test_profiles_and_machines_of_others_are_left_alone(path: Path) -> None:
    profiler = Profiler(path, Processor(), rounds=1)
    profiler.add(program())
    profile = profiler.machine.profile
    assert profile is not None
    other = replace(profile, host=replace(profile.host, numpy="1.0"))
    save_profile(other, profile_path(path))
    before = profile_path(path).read_bytes()
    with pytest.raises(MachineError, match=r"measured with numpy '1.0', but here it is '.+'; delete"):
        Profiler(path, Processor())
    assert profile_path(path).read_bytes() == before
    profile_path(path).unlink()
    text = path.read_text()
    path.write_text(text.replace(machine_name(), "elsewhere"))
    with pytest.raises(MachineError, match=rf"describes 'elsewhere', but this machine is '{machine_name()}'"):
        Profiler(path, Processor())
    path.write_text(text.replace("in_turn: true", "in_turn: false"))
    with pytest.raises(MachineError, match=r"with `in_turn: false`, which run the engine cuda, but numpy is"):
        Profiler(path, Processor())


def test_nothing_is_measured_in_no_rounds(path: Path) -> None:
    with pytest.raises(MachineError, match="rounds is 0; measuring takes at least one"):
        tofu.machines.measure([program()], path, rounds=0)
    with pytest.raises(MachineError, match="device is 'tpu'; it must be 'cpu' or 'gpu'"):
        tofu.machines.measure([program()], path, device="tpu")
    assert not path.exists()


def test_a_round_by_hand() -> None:
    """Thread 0 runs two instructions; thread 1 waits for the first, and wakes 3 s after it ends."""
    waits: Any = Schedule(((((),) * 2), (((0, 0),), ((0, 1),), ())), ((Lane.COMPUTE,) * 2,) * 2, ())
    places = [[(0, 0), (0, 1)], [(1, 0), (1, 1), (1, 2)]]
    moments = [[(1.0, 11.0), (12.0, 15.0)], [(14.0, 20.0), (21.0, 22.0), (24.0, 25.0)]]
    work = ProgramWork(
        {(0, 0): ("a", ()), (0, 1): ("b", ()), (1, 0): ("a", ()), (1, 1): ("b", ()), (1, 2): ("c", ())}, {}
    )
    found = measured_round(places, waits, moments, work)
    assert found.wakes == [3.0]
    assert found.seconds == {("a", ()): [10.0, 6.0], ("b", ()): [4.0, 2.0], ("c", ()): [3.0]}


def test_unusual_rounds_do_not_count() -> None:
    """Of five rounds the shortest and the longest are left out; all count for the spread."""
    a, b = ("a", ()), ("b", (1,))
    rounds = [
        MeasuredRound({a: [1.0, 3.0], b: [b_seconds]}, [wake])
        for b_seconds, wake in ((4.0, 1.0), (5.0, 2.0), (9.0, 3.0), (1.0, 50.0), (1000.0, 50.0))
    ]
    work = ProgramWork({}, {a: (1,), b: (2,)})
    found = usual_times(4, rounds, work)
    assert found.kernel_threads == 4
    assert found.wakes == WakeTime(3, 2.0)
    assert found.times == {a: MeasuredTime(2.0, 0.0, (1,)), b: MeasuredTime(6.0, 5.0, (2,))}
    assert usual_times(1, rounds[:1], work).times[b] == MeasuredTime(4.0, 0.0, (2,))


def test_wakes_are_averaged() -> None:
    assert WakeTime(1, 4.0).joined(WakeTime(3, 8.0)) == WakeTime(4, 7.0)
    assert WakeTime(0, 0.0).joined(WakeTime(0, 0.0)) == WakeTime(0, 0.0)


@pytest.mark.parametrize("count", [1, 2])
def test_processors_are_measured(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "processors", lambda: count)
    machine = measure_processor(size=16, copied_bytes=1 << 12)
    assert len(machine.devices) == len(machine.kinds) == count
    kind = machine.kind(0)
    assert kind.in_turn
    assert (kind.wake_seconds > 0) == (count > 1)
    assert kind.rate("float32") > 0
    assert kind.start_seconds > 0
    assert kind.memory_bytes is not None
    assert machine.devices_of(2 * count) == tuple(worker // 2 for worker in range(2 * count))
