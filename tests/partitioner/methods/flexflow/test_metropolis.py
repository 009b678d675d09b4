"""The chain visits states as often as it should."""

from __future__ import annotations

from itertools import islice
from math import exp
from random import Random

from tofu.partitioner.methods.flexflow.metropolis import metropolis

STATES = 50
PROPOSALS = 1_000_000
APART = 25
"""The number of visited states of which one is counted, since neighbouring ones depend on each other."""


class Toy:
    """States with costs, proposed with equal probabilities."""

    def __init__(self) -> None:
        draw = Random(3)
        self.costs = [draw.randrange(1000) for _ in range(STATES)]
        self.state = self.earlier = 0

    @property
    def cost(self) -> int:
        return self.costs[self.state]

    def propose(self, draw: Random, limit: float) -> int:
        self.earlier, self.state = self.state, draw.randrange(STATES)
        return self.cost

    def accept(self) -> None:
        pass

    def refuse(self) -> None:
        self.state = self.earlier


def chi_square(counts: list[int], costs: list[int], beta: float) -> float:
    weights = [exp(-beta * cost) for cost in costs]
    expected = [sum(counts) * weight / sum(weights) for weight in weights]
    return sum((count - wanted) ** 2 / wanted for count, wanted in zip(counts, expected, strict=True))


def test_visits_are_distributed_as_the_exponential_of_the_cost() -> None:
    toy, beta, counts = Toy(), 1 / 500, [0] * STATES
    for number, _ in enumerate(islice(metropolis(toy, Random(7), lambda _: beta), PROPOSALS)):
        if number % APART == 0:
            counts[toy.state] += 1
    assert chi_square(counts, toy.costs, beta) < 85.4, "the quantile of 0.999 with 49 degrees of freedom"
    assert chi_square(counts, toy.costs, beta * 1.1) > 85.4
    assert chi_square(counts, toy.costs, 0.0) > 1000


def test_a_cold_chain_only_improves_and_knows_the_number_of_the_proposal() -> None:
    toy, numbers, costs = Toy(), [], [10**6]

    def beta(number: int) -> float:
        numbers.append(number)
        return 1e9

    for accepted in islice(metropolis(toy, Random(0), beta), 500):
        assert accepted == (toy.cost <= costs[-1] and toy.state != toy.earlier) or toy.state == toy.earlier
        assert toy.cost <= costs[-1]
        costs.append(toy.cost)
    assert toy.cost == min(toy.costs)
    assert numbers == sorted(numbers)
    assert numbers[-1] > 400
