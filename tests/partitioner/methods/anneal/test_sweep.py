"""The decisions that weigh most take even splits over all workers, either dimension being the outer one."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import pytest

import tofu
from tofu.dataflow.graph import Phase
from tofu.partitioner.methods.anneal.neighbours import Neighbours
from tofu.partitioner.methods.anneal.open_decisions import OpenDecisions
from tofu.partitioner.methods.anneal.sweep import Sweep, even_splits
from tofu.partitioner.methods.budget import Budget
from tofu.partitioner.methods.flexflow.chains import Visited
from tofu.partitioner.methods.flexflow.configurations import Holders, drawables
from tofu.partitioner.methods.flexflow.data_parallel import data_parallel
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import simulated
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.space import Space
from tofu.simulator.simulation import Simulation

WORKERS = 8
GRAPH = tofu.models.get("lstm", batch=64, steps=2, layers=1, hidden=64, vocabulary=4096).training_graph()
MACHINE = tofu.machines.load("2x-p100-node")
SOAP = find_soap(GRAPH, WORKERS, sums=True)
DRAWN = drawables(SOAP.decisions, WORKERS)


def swept(fixed: range | tuple[()] = (), seconds: float | None = None) -> tuple[Strategies, list[Visited]]:
    """Sweep data parallelism."""
    strategies = Strategies(SOAP, Space(feed="batch"))
    start = data_parallel(strategies)
    budget = Budget(Sampling(seconds=seconds), None)
    decisions = OpenDecisions(SOAP, DRAWN, fixed)
    first = simulated(strategies, start, MACHINE)
    return strategies, Sweep(first, strategies, start, decisions, Neighbours(SOAP), budget).run()


def changed_in(before: Visited, after: Visited) -> list[int]:
    """Return the decisions of which two states differ."""
    pairs = zip(before.state, after.state, strict=True)
    return [number for number, (old, new) in enumerate(pairs) if old != new]


def phase_of(decision: int) -> Phase:
    """Return the phase of a decision."""
    return GRAPH.operations[SOAP.decisions[decision].operations[0]].phase


@pytest.mark.parametrize("decision", SOAP.decisions[:40], ids=lambda each: str(each.operations[0]))
def test_splits_use_every_worker_once(decision) -> None:
    found = list(even_splits(decision, WORKERS))
    assert len(found) == len(set(found))
    for each in found:
        assert sorted(each.workers) == list(range(WORKERS))
        assert prod(each.degrees) == WORKERS
        assert sum(degree > 1 for degree in each.degrees) <= 2
        assert all(d <= dim.extent for d, dim in zip(each.degrees, decision.dimensions, strict=True))
        split = [dim for d, dim in zip(each.degrees, decision.dimensions, strict=True) if d > 1]
        assert each.holders is Holders.PARTS or any(dim.reduces for dim in split)


def test_either_dimension_is_the_outer_one() -> None:
    decision = next(each for each in SOAP.decisions if min(d.extent for d in each.dimensions[:2]) >= WORKERS)
    degrees = (2, 4, *(1,) * (len(decision.dimensions) - 2))
    found = {each.workers for each in even_splits(decision, WORKERS) if each.degrees == degrees}
    assert found == {(0, 1, 2, 3, 4, 5, 6, 7), (0, 2, 4, 6, 1, 3, 5, 7)}


def test_each_state_takes_less_time_and_what_its_plan_takes() -> None:
    strategies, found = swept()
    costs = [each.cost for each in found]
    assert len(costs) > 1
    assert costs == sorted(set(costs), reverse=True)
    plan = strategies.plan(tuple(each for each in found[-1].state if each is not None))
    tofu.verify(GRAPH, plan)
    assert tofu.simulate(tofu.lower(GRAPH, plan), MACHINE).seconds * 1e9 == pytest.approx(costs[-1])


def test_it_finds_an_order_that_is_never_drawn() -> None:
    """One dimension is split between the two nodes and another one within each."""
    _, found = swept()
    changed = changed_in(found[0], found[-1])
    assert changed
    assert any(
        found[-1].state[number] not in set(map(DRAWN[number].__getitem__, range(len(DRAWN[number]))))
        for number in changed
    )


def test_neighbours_take_what_goes_with_a_split() -> None:
    """Updates change with the gradients that they read, and operations with others of their phase."""
    _, found = swept()
    tied = OpenDecisions(SOAP, DRAWN, ()).tied
    together = [changed_in(before, after) for before, after in pairwise(found)]
    phases = {tuple(map(phase_of, changed)) for changed in together if not tied.keys() & changed}
    assert (Phase.BACKWARD, Phase.UPDATE) in phases
    assert (Phase.BACKWARD, Phase.BACKWARD) in phases


@pytest.mark.parametrize(
    ("absent", "swept_at_all"), [(["moved"], True), (["deciding"], True), (["moved", "deciding"], False)]
)
def test_bytes_and_time_are_weights(absent: list[str], swept_at_all: bool, monkeypatch) -> None:
    for weights in absent:
        monkeypatch.setattr(Simulation, weights, lambda simulation: [0] * len(GRAPH.operations))
    assert (len(swept()[1]) > 1) is swept_at_all


def test_fixed_decisions_stay() -> None:
    _, found = swept(fixed=range(len(SOAP.decisions)))
    assert len(found) == 1


def test_it_ends_if_no_seconds_are_left() -> None:
    _, found = swept(seconds=1e-9)
    assert len(found) == 1
