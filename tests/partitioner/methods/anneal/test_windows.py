"""Windows of decisions that are solved exactly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

import tofu
from tofu.partitioner.methods.anneal.neighbours import Neighbours
from tofu.partitioner.methods.anneal.windows import WINDOW, DecisionWindows
from tofu.partitioner.methods.flexflow.configurations import Configuration, drawables
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.plans.space import Space

from ..flexflow.small_graphs import graph_of


class Case:
    """A random strategy of a graph on four workers."""

    def __init__(self, model: str, seed: int) -> None:
        graph, machine = graph_of(model), tofu.machines.load("p100-node")
        self.soap = find_soap(graph, 4, sums=True)
        self.drawn = drawables(self.soap.decisions, 4)
        self.neighbours = Neighbours(self.soap)
        strategies = Strategies(self.soap, Space(feed="batch"))
        self.windows = DecisionWindows(strategies, self.drawn, self.neighbours, machine)
        draw = Random(seed)
        self.state = [each.draw(draw) for each in self.drawn]

    def seconds(self, state: Sequence[Configuration], near: Sequence[int]) -> float:
        """Return the sum of all tables of some decisions."""
        alone = sum(self.windows._alone(number, state[number]) for number in near)
        pairs = {
            pair
            for number in near
            for other in self.neighbours.of(number)
            for pair in ((number, other), (other, number))
        }
        return alone + sum(self.windows._moved(one, state[one], other, state[other]) for one, other in pairs)


@pytest.mark.parametrize(("model", "seed"), [("mlp", 0), ("mlp", 1), ("lstm", 2)])
def test_windows_take_the_least_sum_of_all_combinations(model: str, seed: int) -> None:
    case = Case(model, seed)
    middle = len(case.state) // 2
    near = [middle, *list(case.neighbours.of(middle))[:1]]
    draw = Random(seed)
    values = [case.windows._values(draw, case.state, number) for number in near]
    least = float("inf")
    for chosen in product(*values):
        state = list(case.state)
        for number, each in zip(near, chosen, strict=True):
            state[number] = each
        least = min(least, case.seconds(state, near))
    found = list(case.state)
    for number, each in case.windows.solved(Random(seed), case.state, near).items():
        found[number] = each
    assert case.seconds(found, near) == pytest.approx(least)
    assert case.seconds(found, near) < case.seconds(case.state, near)


def test_decisions_that_no_configuration_describes_stay() -> None:
    case = Case("mlp", 0)
    state: list[Configuration | None] = [None] * len(case.state)
    assert case.windows.solved(Random(0), state, range(len(state))) == {}
    state[3] = case.state[3]
    assert set(case.windows.solved(Random(0), state, range(len(state)))) == {3}


def test_windows_are_small() -> None:
    case = Case("mlp", 0)
    assert len(case.windows.solved(Random(0), case.state, range(len(case.state)))) == WINDOW
