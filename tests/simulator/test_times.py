"""Times that were measured, fitted to those, or estimated, and where each comes from."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import tofu
from tofu.errors import MachineError
from tofu.machines.machine import Machine
from tofu.machines.machine_file import with_profile
from tofu.machines.profile import EngineTimes, MeasuredTime, Profile, Sizes, WakeTime
from tofu.programs.instruction_work import box_sizes, computations, kind_of, transfers
from tofu.programs.program import Compute, PartitionedGraph
from tofu.runtime.instruction_times import ProgramWork
from tofu.simulator import check_timeline, simulate
from tofu.simulator.fitted import fit
from tofu.simulator.times import task_times, times_on

from ..machines.test_profile_file import HOST, MACHINE

Times = dict[str, dict[Sizes, MeasuredTime]]
UNITS = (3e-6, 2e-9, 5e-10)
"""The seconds of a start, an operation and a byte, with which test machines compute."""


def program(workers: int = 2) -> PartitionedGraph:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


def profiled(kinds: Times, threads: int = 2) -> Machine:
    return with_profile(
        MACHINE,
        Profile("box", HOST, (EngineTimes("numpy", threads, 1, WakeTime(0, 0.0), kinds),), "box.json"),
    )


def computed(partitioned: PartitionedGraph) -> Times:
    """Times of all computations."""
    found: Times = {}
    for (kind, sizes), amounts in ProgramWork.of(partitioned).amounts.items():
        if kind.startswith("def "):
            seconds = sum(unit * amount for unit, amount in zip(UNITS, amounts, strict=True))
            found.setdefault(kind, {})[sizes] = MeasuredTime(seconds, 0.0, amounts)
    return found


def moved(partitioned: PartitionedGraph, seconds: float) -> Times:
    """Times of all transfers, of one length."""
    found: Times = {}
    for each in transfers(partitioned):
        found.setdefault(each.kind, {})[each.sizes] = MeasuredTime(seconds, 0.0, each.amounts)
    return found


def test_all_times_are_measured() -> None:
    partitioned = program()
    found = simulate(partitioned, profiled(computed(partitioned) | moved(partitioned, 1e-3)))
    check_timeline(found)
    count = sum(len(each.instructions) for each in partitioned.programs)
    assert found.times == "measured"
    assert found.time_shares.keys() == {"measured"}
    assert found.time_shares["measured"].instructions == count
    for worker, each in enumerate(partitioned.programs):
        spans = found.lanes[f"worker {worker} transfer"]
        assert {span.end_nanoseconds - span.start_nanoseconds for span in spans} == {1_000_000}
        assert len(spans) == sum(not isinstance(i, Compute) for i in each.instructions)


def test_work_of_other_sizes_is_fitted_exactly_if_it_follows_a_line() -> None:
    """The profile knows other batches. The machine computes by `UNITS`, so fits and times agree."""
    partitioned = program()
    known = computed(partitioned)
    for batch in (16, 32, 64):
        graph = tofu.models.get("mlp", batch=batch).training_graph()
        for kind, by_size in computed(tofu.lower(graph, tofu.partition(graph, 2))).items():
            known.setdefault(kind, {}).update(by_size)
    own = computed(partitioned)
    others = {
        kind: {sizes: time for sizes, time in times.items() if sizes not in own.get(kind, {})}
        for kind, times in known.items()
    }
    fitted = times_on(partitioned, profiled({kind: times for kind, times in others.items() if times}))
    compared = 0
    for (worker, index), (kind, sizes) in ProgramWork.of(partitioned).places.items():
        if others.get(kind):
            expected = own[kind][sizes].seconds * 1e9
            assert fitted.nanoseconds[worker][index] == pytest.approx(expected, rel=0.05)
            compared += 1
    assert compared == fitted.shares["fitted"].instructions > 10


def test_the_weakest_source_names_the_times() -> None:
    partitioned = program()
    known = computed(partitioned) | moved(partitioned, 1e-5)
    kind = next(kind for kind, times in known.items() if kind.startswith("def ") and len(times) > 1)
    less = {name: times for name, times in known.items() if name != kind}
    found = simulate(partitioned, profiled(less))
    assert found.times == "estimated"
    count = sum(len(each.instructions) for each in partitioned.programs)
    assert sum(each.instructions for each in found.time_shares.values()) == count
    assert 0 < found.time_shares["estimated"].instructions < found.time_shares["measured"].instructions
    halved = dict(list(known[kind].items())[1:])
    assert simulate(partitioned, profiled(known | {kind: halved})).times == "fitted"


def test_profiles_of_other_threads_are_refused() -> None:
    partitioned = program(1)
    with pytest.raises(MachineError, match=r"'box.json' has times for 2 threads, but .* run on 1"):
        simulate(partitioned, profiled(computed(partitioned)))
    assert simulate(program(4), profiled(computed(program(4)))).seconds > 0


def test_attached_kernels_and_attributes_are_other_work() -> None:
    def kinds(symbol: tofu.sym.Symbol) -> set[str]:
        graph = tofu.inference_graph(symbol, {"data": (4, 2, 8, 8)})
        return {kind for kind, _ in ProgramWork.of(tofu.lower(graph, tofu.partition(graph, 1))).amounts}

    data = tofu.sym.Variable("data")
    one, two = (
        kinds(
            tofu.sym.Convolution(
                data, num_filter=2, kernel=(3, 3), stride=(step, step), no_bias=True, name="c"
            )
        )
        for step in (1, 2)
    )
    assert len(one) == len(two)
    assert not {kind for kind in one if "Convolution" in kind} & two
    (convolution,) = (kind for kind in one if "Convolution" in kind)
    assert "float32" in convolution
    assert "by tofu.operators.kernels.convolution" in convolution


def test_fits_recover_the_units() -> None:
    draw = random.Random(1)
    rows = [(1, draw.randrange(10**6), draw.randrange(10**6)) for _ in range(50)]
    seconds = [sum(a * b for a, b in zip(row, UNITS, strict=True)) for row in rows]
    found = fit(rows, seconds, (1e-6, 1e-9, 1e-9))
    for row, measured in zip(rows, seconds, strict=True):
        assert found.seconds(row) == pytest.approx(measured, rel=0.02)


def test_fits_are_never_negative_and_scale_with_work() -> None:
    """One size says how much slower than estimated the work is; that holds for other sizes, too."""
    found = fit([(1, 1000, 1000)], [3e-4], (1e-6, 1e-7, 1e-8))
    assert found.seconds((1, 1000, 1000)) == pytest.approx(3e-4, rel=1e-3)
    assert found.seconds((1, 10_000, 10_000)) == pytest.approx(3e-3, rel=0.02)
    falling = fit([(1, 1, 10), (1, 1, 1000)], [1e-3, 1e-6], (1e-6, 1e-9, 1e-9))
    assert min(falling.units) >= 0
    assert fit([(1, 0, 0)], [1e-3], (0.0, 1e-9, 1e-9)).seconds((1, 0, 0)) == 0


def test_searches_see_measured_times() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    known = computed(program())
    machine = profiled(known)
    times = task_times(graph, machine, 2)
    for group in computations(program()):
        workers = np.array([worker for worker, _ in group.places])
        taken = times(group.operation, workers, group.boxes).tolist()
        sizes = box_sizes(group.operation, group.boxes)
        measured = [known[kind_of(graph, group.operation)][each].seconds * 1e9 for each in sizes]
        assert taken == pytest.approx(measured, abs=1)
    plan = tofu.partition(graph, 2, machine=machine, objective="step-time")
    assert plan.step_seconds == simulate(tofu.lower(graph, plan), machine).seconds


def test_profiles_do_not_change_other_machines() -> None:
    partitioned = program()
    assert (
        simulate(
            partitioned, replace(profiled({"x": {(): MeasuredTime(1.0, 0.0, (1,))}}), profile=None)
        ).times
        == "estimated"
    )
