"""Strategies that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from unittest.mock import patch

import tofu
from tofu.partitioner.methods.flexflow.configurations import Configuration, drawables
from tofu.partitioner.methods.flexflow.data_parallel import data_parallel
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import StrategyWalk, simulated
from tofu.partitioner.plans.space import Space

from .small_graphs import graph_of


def test_a_proposal_from_the_same_state_is_simulated_once() -> None:
    graph, machine, draw = graph_of("mlp"), tofu.machines.load("p100-node"), Random(0)
    strategies = Strategies(find_soap(graph, 4), Space(feed="batch"))
    drawn = drawables(strategies.soap.decisions, 4)
    choices = [{n: drawn[n].draw(draw)} for n in (2, 2, 3)]

    def move(draw: Random, _: Sequence[Configuration | None]) -> Mapping[int, Configuration]:
        return choices[draw.randrange(len(choices))]

    start = data_parallel(strategies)
    simulation = simulated(strategies, start, machine)
    walk = StrategyWalk(simulation, strategies, start, move)
    with patch.object(simulation, "propose", wraps=simulation.propose) as proposed:
        for number in range(60):
            walk.propose(draw)
            proposal = walk.cost
            state = tuple(each for each in walk.strategy if each is not None)
            assert proposal == simulated(strategies, state, machine).nanoseconds
            if number % 10 == 9:
                walk.accept()
            else:
                walk.refuse()
            state = tuple(each for each in walk.strategy if each is not None)
            assert walk.cost == simulated(strategies, state, machine).nanoseconds
        assert proposed.call_count <= 6 * (len(choices) + 1)


def test_a_proposal_above_its_limit_is_simulated_again_for_a_larger_one() -> None:
    graph, machine = graph_of("mlp"), tofu.machines.load("p100-node")
    strategies = Strategies(find_soap(graph, 4), Space(feed="batch"))
    changes = {2: drawables(strategies.soap.decisions, 4)[2].draw(Random(0))}
    start = data_parallel(strategies)
    simulation = simulated(strategies, start, machine)
    walk, draw = StrategyWalk(simulation, strategies, start, lambda draw, _: changes), Random(0)
    needed = walk.propose(draw)
    walk.refuse()
    fresh = StrategyWalk(simulation, strategies, start, lambda draw, _: changes)
    with patch.object(simulation, "propose", wraps=simulation.propose) as proposed:
        for limit, simulations in ((needed // 3, 1), (needed // 4, 1), (needed, 2), (needed // 2, 2)):
            cost = fresh.propose(draw, limit)
            assert limit < cost <= needed or cost == needed <= limit
            fresh.refuse()
            assert proposed.call_count == simulations
