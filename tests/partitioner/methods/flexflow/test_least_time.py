"""The bound holds for random strategies and for other methods, and one worker meets it."""

from __future__ import annotations

from random import Random

import pytest

import tofu
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.least_time import least_seconds
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import simulated
from tofu.partitioner.plans.space import Space
from tofu.simulator.times import NANOSECONDS

MACHINE = tofu.machines.load("p100-node")


@pytest.mark.parametrize(("model", "workers"), [("lenet", 4), ("mlp", 3), ("lstm", 2)])
def test_no_strategy_takes_less(model: str, workers: int) -> None:
    graph = tofu.models.get(model, batch=24).training_graph()
    soap = find_soap(graph, workers, sums=True)
    strategies, drawn = Strategies(soap, Space()), drawables(soap.decisions, workers)
    least, draw = least_seconds(soap, MACHINE), Random(0)
    assert least > 0
    for _ in range(20):
        strategy = tuple(each.draw(draw) for each in drawn)
        assert least <= simulated(strategies, strategy, MACHINE).nanoseconds / NANOSECONDS
    for method, settings in (("data-parallel", {}), ("recursive", {}), ("anneal", {"proposals": 20})):
        plan = tofu.partition(graph, workers, method, machine=MACHINE, **settings)
        assert least <= tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds


def test_one_worker_takes_no_more() -> None:
    graph = tofu.models.get("lenet", batch=24).training_graph()
    plan = tofu.partition(graph, 1)
    seconds = tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds
    assert least_seconds(find_soap(graph, 1, sums=True), MACHINE) == pytest.approx(seconds, rel=1e-9)


def test_slower_devices_take_longer() -> None:
    graph = tofu.models.get("lenet", batch=512).training_graph()
    soap = find_soap(graph, 4, sums=True)
    p100, k80 = (least_seconds(soap, tofu.machines.load(name)) for name in ("p100-node", "k80-node"))
    assert 2 * p100 < k80
