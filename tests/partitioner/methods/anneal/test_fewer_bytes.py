"""A walk to fewer bytes takes no more time than the first state."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods.anneal import search
from tofu.partitioner.methods.anneal.fewer_bytes import FewerBytesWalk
from tofu.partitioner.methods.anneal.rewrites import Timed
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.metropolis import metropolis
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import redraw, simulated
from tofu.partitioner.plans.simulation import simulation
from tofu.partitioner.plans.space import Space
from tofu.simulator.times import NANOSECONDS

from ...lowering.assignments import MODELS, network, random_plan
from ..flexflow.small_graphs import OPTIONS, graph_of

MACHINE = tofu.machines.load("p100-node")


@pytest.mark.parametrize("name", MODELS)
def test_a_simulation_moves_the_bytes_of_its_plan(name: str) -> None:
    graph = network(name)
    plan = random_plan(graph, 4, 1)
    assert sum(simulation(graph, plan, MACHINE).moved()) == plan.cost_bytes


def walked(model: str, times: float) -> tuple[Any, Any]:
    """Return a random plan, and what a walk makes of it in at most `times` its time."""
    graph = graph_of(model)
    soap = find_soap(graph, 4, sums=True)
    strategies, drawn = Strategies(soap, Space(feed="batch")), drawables(soap.decisions, 4)
    draw = Random(2)
    first = tuple(each.draw(draw) for each in drawn)
    state = simulated(strategies, first, MACHINE)
    most = int(state.nanoseconds * times)
    walk = FewerBytesWalk(state, strategies, first, redraw(drawn), most)
    chain = metropolis(walk, draw, lambda _: 1.0)
    for _ in range(300):
        next(chain)
    found = strategies.plan(tuple(each for each in walk.strategy if each is not None))
    assert walk.cost == found.cost_bytes
    assert simulation(graph, found, MACHINE).nanoseconds <= most
    return strategies.plan(first), found


@pytest.mark.parametrize("model", OPTIONS)
def test_bytes_fall_and_time_keeps_to_a_limit(model: str) -> None:
    start, found = walked(model, 1.0)
    assert found.cost_bytes < start.cost_bytes
    _, slower = walked(model, 1.5)
    assert slower.cost_bytes < start.cost_bytes


def test_the_last_chain_of_annealing_is_one_to_fewer_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Timed, Timed, int | None]] = []
    chain = search._Annealing._chain

    def noted(self: Any, chains: Any, start: Timed, draw: Random, most: int | None = None) -> Timed:
        made.append((start, chain(self, chains, start, draw, most), most))
        return made[-1][1]

    monkeypatch.setattr(search._Annealing, "_chain", noted)
    settings = {"machine": MACHINE, "proposals": 40}
    plan = tofu.partition(graph_of("mlp"), 4, "anneal", **settings)
    start, found, most = made[-1]
    assert [each for _, _, each in made] == [None] * (len(made) - 1) + [start.nanoseconds]
    assert found.nanoseconds <= start.nanoseconds
    assert plan.cost_bytes == found.plan.cost_bytes <= start.plan.cost_bytes
    assert plan.step_seconds == found.nanoseconds / NANOSECONDS
    slower = tofu.partition(graph_of("mlp"), 4, "anneal", slower=0.5, **settings)
    again, found, most = made[-1]
    assert again == start
    assert most == int(1.5 * start.nanoseconds)
    assert slower.cost_bytes == found.plan.cost_bytes <= start.plan.cost_bytes
    assert found.nanoseconds <= most
    assert slower.sampling is not None
    assert slower.sampling.slower == 0.5


def test_the_plan_of_fewest_bytes_in_the_allowed_time_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that find nothing leave the starts, of which the fastest one does not move the fewest bytes."""
    seen, moved = list[Timed](), list[int]()
    starts = search._Annealing._starts

    def noted(self: Any) -> list[Timed]:
        seen[:] = seen or starts(self)  # the same, however much slower plans may be
        return seen

    monkeypatch.setattr(search._Annealing, "_starts", noted)
    monkeypatch.setattr(search._Annealing, "_chain", lambda self, chains, start, draw, most=None: start)
    for slower in (0.0, 0.7, 1.0):
        plan = tofu.partition(
            graph_of("lenet"), 4, "anneal", machine=MACHINE, proposals=1, memory="unlimited", slower=slower
        )
        within = [each for each in seen if each.nanoseconds <= seen[0].nanoseconds * (1 + slower)]
        moved.append(plan.cost_bytes)
        assert plan.cost_bytes == min(each.plan.cost_bytes for each in within)
    assert moved[0] > moved[1] > moved[2]


def test_other_methods_give_up_no_time() -> None:
    with pytest.raises(PlanError, match="gives up no time"):
        tofu.partition(graph_of("mlp"), 4, "flexflow", machine=MACHINE, proposals=1, slower=0.1)
    with pytest.raises(PlanError, match="slower is -1"):
        tofu.partition(graph_of("mlp"), 4, "anneal", machine=MACHINE, proposals=1, slower=-1)
