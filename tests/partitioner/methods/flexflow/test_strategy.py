"""Strategies: what plans say is simulated, and runs."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies, Strategy
from tofu.partitioner.methods.flexflow.walk import StrategyWalk, redraw, simulated
from tofu.partitioner.plans.space import Space
from tofu.runtime.executor import Executor

from ....runtime.test_partitioned_training import require_bits_of_one_worker, single, start_values, training
from .small_graphs import OPTIONS, graph_of

MACHINE = tofu.machines.load("pcie-8")


def drawn(graph: Any, workers: int, seed: int, sums: bool = True) -> tuple[Strategies, Strategy, list[Any]]:
    soap = find_soap(graph, workers, sums)
    sets = drawables(soap.decisions, workers)
    draw = Random(seed)
    return Strategies(soap, Space(feed="batch")), tuple(each.draw(draw) for each in sets), sets


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", OPTIONS)
def test_random_strategies_are_plans_that_take_the_simulated_time(model: str, seed: int) -> None:
    graph, workers = graph_of(model), (4, 6, 8, 3)[seed]
    strategies, strategy, _ = drawn(graph, workers, seed)
    plan = strategies.plan(strategy)
    tofu.verify(graph, plan)
    found = simulated(strategies, strategy, MACHINE)
    assert tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds == found.seconds


@pytest.mark.parametrize("model", OPTIONS)
def test_a_walk_ends_where_its_strategy_begins(model: str) -> None:
    """Accepted or refused, the time is that of a new simulation of the strategy."""
    strategies, strategy, sets = drawn(graph_of(model), 4, 5)
    walk = StrategyWalk(simulated(strategies, strategy, MACHINE), strategies, strategy, redraw(sets))
    draw = Random(2)
    for number in range(60):
        proposed = walk.propose(draw)
        assert walk.cost == proposed
        if number % 3:
            walk.refuse()
        else:
            walk.accept()
    known = tuple(each for each in walk.strategy if each is not None)
    assert walk.cost == simulated(strategies, known, MACHINE).nanoseconds


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("network", "steps"), [("perceptron", 2), ("convolutional", 1)])
def test_random_strategies_train_as_one_worker_does(network: str, steps: int, seed: int) -> None:
    """To the bit, since all sums are exact."""
    graph = training(network)
    strategies, strategy, _ = drawn(graph, (2, 4, 6, 8, 5, 4)[seed], seed)
    plan = strategies.plan(strategy)
    require_bits_of_one_worker(network, plan, steps)


def test_recurrent_strategies_train_as_one_worker_does() -> None:
    graph, expected = training("recurrent"), single("recurrent", 3)
    for seed in range(3):
        strategies, strategy, _ = drawn(graph, 4, seed)
        with Executor(tofu.lower(graph, strategies.plan(strategy))) as executor:
            for name, value in start_values(graph):
                executor.write(name, value if "label" not in name else abs(value))
            for _ in range(3):
                executor.run()
            for name, value in expected.items():
                np.testing.assert_allclose(executor.read(name), value, rtol=1e-11, atol=1e-12, err_msg=name)
