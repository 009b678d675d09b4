"""A walk to fewer bytes takes no more time than the first state."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import tofu
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


@pytest.mark.parametrize("model", OPTIONS)
def test_bytes_fall_and_time_does_not_rise(model: str) -> None:
    graph = graph_of(model)
    soap = find_soap(graph, 4, sums=True)
    strategies, drawn = Strategies(soap, Space(feed="batch")), drawables(soap.decisions, 4)
    draw = Random(2)
    first = tuple(each.draw(draw) for each in drawn)
    start = strategies.plan(first)
    nanoseconds = simulation(graph, start, MACHINE).nanoseconds
    walk = FewerBytesWalk(simulated(strategies, first, MACHINE), strategies, first, redraw(drawn))
    assert walk.cost == start.cost_bytes
    chain = metropolis(walk, draw, lambda _: 1.0)
    for _ in range(300):
        next(chain)
    found = strategies.plan(tuple(each for each in walk.strategy if each is not None))
    assert walk.cost == found.cost_bytes < start.cost_bytes
    assert simulation(graph, found, MACHINE).nanoseconds <= nanoseconds


def test_the_last_chain_of_annealing_is_one_to_fewer_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Timed, Timed, bool]] = []
    chain = search._Annealing._chain

    def noted(self: Any, chains: Any, start: Timed, draw: Random, *, fewer_bytes: bool = False) -> Timed:
        made.append((start, chain(self, chains, start, draw, fewer_bytes=fewer_bytes), fewer_bytes))
        return made[-1][1]

    monkeypatch.setattr(search._Annealing, "_chain", noted)
    plan = tofu.partition(graph_of("mlp"), 4, "anneal", machine=MACHINE, proposals=40)
    assert [fewer for _, _, fewer in made] == [False] * (len(made) - 1) + [True]
    start, found, _ = made[-1]
    assert found.nanoseconds <= start.nanoseconds
    assert plan.cost_bytes <= min(start.plan.cost_bytes, found.plan.cost_bytes)
    assert plan.step_seconds <= start.nanoseconds / NANOSECONDS
