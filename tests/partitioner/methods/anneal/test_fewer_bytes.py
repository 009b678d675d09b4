"""A chain to fewer bytes never takes more time than its start."""

from __future__ import annotations

from random import Random

import pytest

import tofu
from tofu.partitioner.methods.anneal.fewer_bytes import FewerBytesWalk
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import redraw, simulated
from tofu.partitioner.plans.space import Space
from tofu.simulator.events import NEVER

from ..flexflow.small_graphs import graph_of

MACHINE = tofu.machines.load("p100-node")


@pytest.mark.parametrize("model", ["mlp", "lstm"])
def test_bytes_fall_and_time_stays_within_that_of_the_start(model: str) -> None:
    graph = graph_of(model)
    soap = find_soap(graph, 4, sums=True)
    strategies, drawn = Strategies(soap, Space(feed="batch")), drawables(soap.decisions, 4)
    draw = Random(1)
    start = tuple(each.draw(draw) for each in drawn)
    simulation = simulated(strategies, start, MACHINE)
    walk = FewerBytesWalk(simulation, strategies, start, redraw(drawn))
    first, most = walk.cost, simulation.nanoseconds
    assert first == strategies.plan(start).cost_bytes
    for _ in range(200):
        before = walk.cost
        cost = walk.propose(draw)
        if cost <= before:
            walk.accept()
            assert simulation.nanoseconds <= most
            assert walk.cost == cost
        else:
            walk.refuse()
            assert walk.cost == before
    assert walk.cost < first
    state = tuple(each for each in walk.strategy if each is not None)
    assert walk.cost == strategies.plan(state).cost_bytes


def test_proposals_that_take_longer_are_refused_whatever_they_move() -> None:
    graph = graph_of("mlp")
    soap = find_soap(graph, 4, sums=True)
    strategies, drawn = Strategies(soap, Space(feed="batch")), drawables(soap.decisions, 4)
    plan = tofu.partition(graph, 4, "anneal", machine="p100-node", proposals=50)
    assert plan.step_seconds is not None
    draw, refused = Random(0), 0
    start = tuple(each.draw(draw) for each in drawn)
    simulation = simulated(strategies, start, MACHINE)
    walk = FewerBytesWalk(simulation, strategies, start, redraw(drawn))
    for _ in range(100):
        refused += walk.propose(draw) == NEVER
        walk.refuse()
    assert refused
