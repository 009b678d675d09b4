"""Cards and their instructions are measured by events, on the stand-in, whose commands take a tick each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result

import tofu
from tofu.errors import ExecutionError, MachineError
from tofu.machines.profile import CardHost, EngineTimes, MeasuredTime, Profile, WakeTime
from tofu.machines.profile_file import load_profile, profile_path, save_profile
from tofu.machines.write_machine import save_machine
from tofu.operators.kernels_version import kernels_version
from tofu.partitioner import simulation
from tofu.programs import PartitionedGraph
from tofu.runtime.cuda import card_times
from tofu.runtime.cuda.card_times import EVENT_SECONDS, Cards, card_round, measure_cards
from tofu.runtime.cuda.inspection import Card
from tofu.runtime.instruction_times import ProgramWork
from tofu.runtime.profiling import Profiler
from tofu.runtime.timing import StepSeconds
from tofu.simulator import check_timeline

from ...machines.test_profile_file import HOST, MACHINE
from .bench import Bench, over
from .graphs import graph
from .host_machine import TICK
from .stand_in import StandIn, installed

CARD = Card(0, "NVIDIA H100 80GB HBM3", "9.0", 70 * 10**9, 80 * 10**9)


@pytest.fixture
def cuda(host: Bench, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    small = partial(measure_cards, size=16, copied_bytes=1 << 12)
    monkeypatch.setattr(card_times, "measure_cards", small)
    return installed(StandIn(host.new_machine(1).kernels), monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "box.yaml"


def program(workers: int) -> PartitionedGraph:
    return over(graph("mlp-adam"), workers)


def test_cards_are_measured(host: Bench) -> None:
    machine = measure_cards(host.new_machine(3), "box", CARD, size=8, copied_bytes=1 << 10)
    assert (machine.devices, machine.level_names) == (("gpu0", "gpu1", "gpu2"), ("gpu",))
    (kind,) = set(machine.kinds)
    assert (kind.name, kind.memory_bytes, kind.engine) == ("nvidia-h100-80gb-hbm3", 80 * 10**9, "cuda")
    assert kind.start_seconds == pytest.approx(TICK)
    assert dict(kind.flops_per_second).keys() == {"float32", "float64", "float16", "bfloat16"}
    assert {rate for _, rate in kind.flops_per_second} == {2 * 8**3 / TICK}
    assert 0 < machine.levels[0].bytes_per_second <= kind.bytes_per_second
    older = measure_cards(
        host.new_machine(1), "box", replace(CARD, capability="7.5"), size=8, copied_bytes=1 << 10
    )
    assert "bfloat16" not in dict(older.kind(0).flops_per_second)


def test_programs_are_measured_once(cuda: StandIn, path: Path) -> None:
    one, two = program(1), program(2)
    profiler = Profiler(path, Cards(), rounds=3)
    assert profiler.machine.name == "nvidia-h100-80gb-hbm3-2"
    works = [ProgramWork.of(each) for each in (one, two)]
    added = [profiler.add(each) for each in (one, two)]
    assert [(each.measured, each.known) for each in added] == [(len(work.amounts), 0) for work in works]
    again = Profiler(path, Cards())
    assert again.machine == profiler.machine
    assert [again.add(each).measured for each in (one, two)] == [0, 0]
    profile = again.machine.profile
    assert profile is not None
    assert profile.host == CardHost(
        CARD.name, 2, "for CUDA 13.0", "12.9", "14.0", "13.1.0", "14.0", kernels_version("cuda")
    )
    assert [(each.engine, each.threads, each.wakes) for each in profile.engines] == [
        ("cuda", 1, WakeTime(0, 0.0)),
        ("cuda", 2, WakeTime(0, 0.0)),
    ]
    for times, work in zip(profile.engines, works, strict=True):
        found = {(kind, sizes): time for kind, of in times.kinds.items() for sizes, time in of.items()}
        assert {each: time.amounts for each, time in found.items()} == work.amounts
        assert all(time.seconds >= TICK and time.spread_seconds == 0.0 for time in found.values())
    timeline = tofu.simulate(one, str(path))
    check_timeline(timeline)
    assert timeline.times == "measured"
    own = profile.engines[0].kinds
    expected = sum(own[kind][sizes].seconds for kind, sizes in works[0].places.values())
    assert timeline.seconds == pytest.approx(expected, rel=1e-3)
    partitioned = tofu.simulate(two, str(path))
    check_timeline(partitioned)
    assert partitioned.times == "measured"
    assert partitioned.transfer_seconds > 0
    plan = tofu.partition(graph("mlp-adam"), 2)
    assert simulation(graph("mlp-adam"), plan, again.machine).seconds == partitioned.seconds


def test_times_below_the_resolution_of_events_are_not_zero() -> None:
    partitioned = program(1)
    work = ProgramWork.of(partitioned)
    found = card_round(StepSeconds(partitioned), work)
    assert {seconds for each in found.seconds.values() for seconds in each} == {EVENT_SECONDS}


def test_workers_that_share_a_card_are_not_measured(cuda: StandIn, path: Path) -> None:
    profiler = Profiler(path, Cards(), rounds=1)
    with pytest.raises(MachineError, match=r"3 workers need 3 devices, but machine 'nvidia-h100.*' has 2"):
        profiler.add(program(3))
    path.write_text(path.read_text() + "workers: [gpu1, gpu1]\n")
    with pytest.raises(MachineError, match=r"2 workers of machine .* share 1 of its cards.* at most 1$"):
        Profiler(path, Cards()).add(program(2))
    assert Profiler(path, Cards(), rounds=1).add(program(1)).measured > 0


def test_profiles_of_other_cards_and_versions_are_left_alone(
    cuda: StandIn, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Profiler(path, Cards(), rounds=1).add(program(1))
    before = profile_path(path).read_bytes()
    installed(replace(cuda, version="15.0"), monkeypatch)
    with pytest.raises(MachineError, match=r"measured with cupy '14.0', but here it is '15.0'; delete"):
        tofu.machines.measure([program(1)], path, device="gpu")
    installed(cuda, monkeypatch).names = ("NVIDIA H200",)
    with pytest.raises(
        MachineError, match=r"describes 'nvidia-h100-.*', but this machine is 'nvidia-h200-2'"
    ):
        tofu.machines.measure([program(1)], path, device="gpu")
    cuda.names = (CARD.name, "NVIDIA H200")
    with pytest.raises(MachineError, match=r"different cards: NVIDIA H100 80GB HBM3, NVIDIA H200; let CUDA_"):
        Cards()
    assert profile_path(path).read_bytes() == before
    found = load_profile(profile_path(path), "nvidia-h100-80gb-hbm3-2")
    save_profile(replace(found, host=replace(found.host, kernels="0123456789ab")), profile_path(path))
    with pytest.raises(MachineError, match=f"kernels 0123456789ab, but .* kernels {kernels_version('cuda')}"):
        tofu.simulate(program(1), str(path))


def test_times_of_the_other_engine_are_refused(cuda: StandIn, path: Path) -> None:
    Profiler(path, Cards(), rounds=1).add(program(1))
    text = path.read_text()
    path.write_text(text.replace("in_turn: false", "in_turn: true"))
    with pytest.raises(
        MachineError, match=r"times of the engine cuda, but .* the engine numpy, since `in_turn`"
    ):
        tofu.simulate(program(1), str(path))
    path.write_text(text)
    times = {"def f": {(1,): MeasuredTime(1.0, 0.0, (1, 1, 1))}}
    name = "nvidia-h100-80gb-hbm3-2"
    engines = (EngineTimes("numpy", 1, 1, WakeTime(0, 0.0), times),)
    save_profile(Profile(name, HOST, engines, ""), profile_path(path))
    with pytest.raises(MachineError, match=r"times of the engine numpy, but .* run the engine cuda"):
        tofu.simulate(program(1), str(path))
    profile_path(path).unlink()
    save_machine(replace(MACHINE, name=name), path)
    with pytest.raises(MachineError, match=r"`in_turn: true`, which run the engine numpy, but cuda is"):
        Profiler(path, Cards())


def test_times_for_another_number_of_cards_are_refused(cuda: StandIn, path: Path) -> None:
    Profiler(path, Cards(), rounds=1).add(program(1))
    said = r"has times for 1 card, but .* run on 2; .* `tofu profile MODEL --workers 2 --device gpu`"
    with pytest.raises(MachineError, match=said):
        tofu.simulate(program(2), str(path))


def test_the_command_measures_every_card(cuda: StandIn, path: Path, tofu: Callable[..., Result]) -> None:
    arguments = ("profile", "mlp", "--batch", "8", "--device", "gpu", "--save", str(path))
    first = tofu(*arguments)
    assert first.exit_code == 0, first.output
    assert re.search(r"mlp on 2 workers: \d+ measured, 0 known before", first.output)
    assert "2 workers: 0 measured" in tofu(*arguments).output


def test_without_a_card_nothing_is_written(cuda: StandIn, path: Path, tofu: Callable[..., Result]) -> None:
    cuda.cards = 0
    result = tofu("profile", "mlp", "--device", "gpu", "--save", str(path))
    assert result.exit_code == 2
    assert "no card was found on this machine" in result.output
    assert list(path.parent.iterdir()) == []
    with pytest.raises(ExecutionError, match="no card was found"):
        Cards()


@pytest.mark.gpu
def test_the_cards_of_this_machine_are_profiled(path: Path) -> None:
    machine = tofu.machines.measure([program(1)], path, device="gpu")
    assert machine.kind(0).rate("float32") > 1e11
    assert 1e-7 < machine.kind(0).start_seconds < 1e-4
    timeline = tofu.simulate(program(1), machine)
    assert timeline.times == "measured"
    assert 0 < timeline.seconds < 1
