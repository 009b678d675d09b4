"""Frontiers of step time and memory: no point beats another one, and none is below what is proven."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tofu
from tofu import api
from tofu.dataflow.recompute import recomputed
from tofu.errors import PlanError
from tofu.partitioner import Simulations, least_peak_bytes, partition, peak_bytes
from tofu.partitioner.methods.frontier import FrontierPoint, unbeaten
from tofu.partitioner.methods.frontier_bounds import least_seconds
from tofu.partitioner.problem.classes import build_problem
from tofu.simulator.times import task_times

MACHINE = "dgx-1-v100"


@pytest.fixture(scope="module")
def graph():
    return tofu.models.get("mlp", batch=32).training_graph()


@pytest.fixture(scope="module")
def found(graph):
    return tofu.frontier(graph, 4, MACHINE)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=8))
def test_what_is_left_is_what_nothing_beats(pairs):
    points = [FrontierPoint(float(seconds), peak, None) for seconds, peak in pairs]
    left = {(p.seconds, p.peak_bytes) for p in unbeaten(points)}
    beaten = {(s, m) for s, m in pairs if any(t <= s and n <= m and (t, n) != (s, m) for t, n in pairs)}
    assert left == {(s, m) for s, m in pairs} - beaten


def test_points_are_what_their_plans_take(graph, found):
    assert len(found.points) > 1
    for point in found.points:
        own = recomputed(graph, point.recompute)
        point.plan.verify(own)
        assert point.peak_bytes == peak_bytes(own, point.plan)
        assert point.seconds == tofu.simulate(tofu.lower(own, point.plan), MACHINE).seconds
        assert point.plan.step_seconds == point.seconds
    for one, other in pairwise(found.points):
        assert one.peak_bytes < other.peak_bytes
        assert one.seconds > other.seconds


def test_nothing_is_below_what_is_proven(graph, found):
    assert found.lower[0].peak_bytes == least_peak_bytes(graph, 4)
    for one, other in pairwise(found.lower):
        assert one.peak_bytes < other.peak_bytes
        assert one.seconds > other.seconds
    for point in found.points:
        assert point.peak_bytes >= found.lower[0].peak_bytes
        proven = [stair.seconds for stair in found.lower if stair.peak_bytes <= point.peak_bytes]
        assert point.seconds >= proven[-1] > 0


def test_slow_links_raise_the_bound(graph, found):
    """On links that are far slower than the devices, the bytes within the memory decide."""
    fast = tofu.machines.load(MACHINE)
    slow = replace(fast, levels=tuple(replace(level, bytes_per_second=1e7) for level in fast.levels))
    moving = tofu.frontier(graph, 4, slow, recompute=(1,))
    assert moving.lower[-1].seconds > 10 * found.lower[-1].seconds
    for point in moving.points:
        proven = [stair.seconds for stair in moving.lower if stair.peak_bytes <= point.peak_bytes]
        assert point.seconds >= proven[-1]


def test_with_little_memory_activations_are_computed_again():
    """Where plans of the graph itself need more memory, only the other graph counts."""
    graph = tofu.models.get("mlp", batch=4096).training_graph()
    again, machine = recomputed(graph, 8), tofu.machines.load(MACHINE)
    needs = {each: least_peak_bytes(each, 2) for each in (again, graph)}
    computing = {
        each: least_seconds(build_problem(each), 2, task_times(each, machine, 2), equal_devices=True)
        for each in needs
    }
    assert needs[again] < needs[graph]
    assert computing[again] > computing[graph]
    found = tofu.frontier(graph, 2, machine)
    stairs = [(stair.peak_bytes, stair.seconds) for stair in found.lower]
    assert stairs[0] == (needs[again], pytest.approx(computing[again]))
    assert stairs[-1] == (needs[graph], pytest.approx(computing[graph]))
    plans = [
        (each, partition(each, 2, method, replicate=False))
        for each in needs
        for method in ("recursive", "refine", "equal-chop", "all-row")
    ]
    taken = [(peak_bytes(each, plan), tofu.simulate(tofu.lower(each, plan), machine)) for each, plan in plans]
    taken += [(point.peak_bytes, point) for point in found.points]
    for peak, timed in taken:
        assert timed.seconds >= [seconds for memory, seconds in stairs if memory <= peak][-1]


@pytest.mark.parametrize("workers", [1, 2, 3, 6])
def test_no_plan_computes_in_less(graph, workers):
    """The bound is below the busiest worker of every method's plan; with one worker it is its time."""
    problem = build_problem(graph)
    machine = tofu.machines.load("dgx-1-v100")
    least = least_seconds(problem, workers, task_times(graph, machine, workers), equal_devices=True)
    for method in ("recursive", "all-row", "spartan", "equal-chop", "data-parallel"):
        line = tofu.simulate(tofu.lower(graph, partition(graph, workers, method)), machine)
        assert least <= line.compute_seconds + 1e-12
        assert workers > 1 or line.compute_seconds == pytest.approx(least)


@pytest.mark.parametrize("workers", [2, 6, 8])
def test_the_order_of_steps_does_not_change_what_is_computed(workers):
    """On equal devices the bound over how often variables are split is that over all sequences."""
    graph = tofu.models.get("lenet", batch=12).training_graph()
    problem, machine = build_problem(graph), tofu.machines.load(MACHINE)
    times = task_times(graph, machine, workers)
    few, all_of_them = (
        least_seconds(problem, workers, times, equal_devices=equal_devices) for equal_devices in (True, False)
    )
    assert few == pytest.approx(all_of_them, rel=1e-12)


def test_operations_that_can_be_split_in_many_ways_count():
    """A convolution over 32 workers has more sequences than are listed, but few numbers of splits."""
    graph = tofu.models.get("lenet", batch=64).training_graph()
    problem, machine = build_problem(graph), tofu.machines.load("4x-dgx-1-v100")
    times = task_times(graph, machine, 32)
    few, listed = (
        least_seconds(problem, 32, times, equal_devices=equal_devices) for equal_devices in (True, False)
    )
    assert few > listed


def test_every_plan_is_simulated_once(graph, monkeypatch):
    """Searches meet the same plan at several limits; each is measured once, and all are candidates."""
    simulated = []

    class Counted(Simulations):
        def of(self, plan):
            simulated.append((self._graph, plan))
            return super().of(plan)

    monkeypatch.setattr(api, "Simulations", Counted)
    found = tofu.frontier(graph, 4, MACHINE)
    choices = [
        (own.fingerprint, *plan.strategies.items(), *plan.layouts.items(), *plan.copies.items())
        for own, plan in simulated
    ]
    assert len(set(choices)) == len(choices) > len(found.points)
    for own, plan in simulated:
        seconds, peak = tofu.simulate(tofu.lower(own, plan), MACHINE).seconds, peak_bytes(own, plan)
        assert any(p.seconds <= seconds and p.peak_bytes <= peak for p in found.points)


def test_plans_are_chosen_by_memory_or_by_time(found):
    first, last = found.points[0], found.points[-1]
    assert found.plan(memory=last.peak_bytes) is last.plan
    assert found.plan(memory=last.peak_bytes - 1) is found.points[-2].plan
    assert found.plan(seconds=first.seconds) is first.plan
    assert found.plan(memory="unlimited") is found.plan(memory="1GB") is last.plan
    with pytest.raises(PlanError, match="seconds is '1ms'"):
        found.plan(seconds="1ms")
    with pytest.raises(PlanError, match=r"every plan in steps needs at least .* \(proven\)"):
        found.plan(memory=first.peak_bytes - 1)
    with pytest.raises(PlanError, match=r"every plan in steps takes at least .* \(proven\)"):
        found.plan(seconds=last.seconds / 2)
    for given_both in ({}, {"memory": 1, "seconds": 1.0}):
        with pytest.raises(PlanError, match="give one of both"):
            found.plan(**given_both)


def test_more_than_the_memory_is_left_out(graph, found):
    limit = found.points[-1].peak_bytes - 1
    narrower = tofu.frontier(graph, 4, MACHINE, memory=limit)
    assert [p.seconds for p in narrower.points] == [p.seconds for p in found.points[:-1]]
    with pytest.raises(PlanError, match="no plan is searched within 1,000 bytes: every plan"):
        tofu.frontier(graph, 4, MACHINE, memory=1000, recompute=(1,))


def test_a_machine_must_say_how_fast_it_is(graph):
    machine = tofu.machines.machine.uniform("box", [("gpu", 4, 1e9)])
    with pytest.raises(tofu.MachineError, match="does not say how fast"):
        tofu.frontier(graph, 4, machine)
