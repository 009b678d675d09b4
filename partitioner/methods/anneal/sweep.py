"""Even splits over all workers for the decisions that move most, one decision after the other.

    decisions    up to `DECISIONS`, each of which moves at least `SHARE` of all bytes, the one that moves most
                 first; those that are tied are one
    splits       along one dimension, or along two of which either is the outer one: neighbouring workers have
                 the same part of the outer one. Partial results may have any holders
    accepted     what makes an iteration faster, as the simulator finds it
    stop         if none of the decisions makes it faster

On a machine of several nodes one dimension is split among nodes and the other within each. Configurations
that chains draw have the dimensions of an operation in their own order alone, so chains seldom find the other
one. Implemented in: `sweep`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from random import Random

import numpy as np

from ....simulator.simulation import Simulation
from ..budget import Budget
from ..flexflow.chains import Visited
from ..flexflow.configurations import Configuration, Holders, divisors
from ..flexflow.soap import Decision
from ..flexflow.strategy import Strategies
from ..flexflow.walk import State, StrategyWalk
from .open_decisions import OpenDecisions

DECISIONS = 8
SHARE = 1 / 16


def sweep(
    simulation: Simulation,
    strategies: Strategies,
    state: State,
    open_decisions: OpenDecisions,
    budget: Budget,
) -> list[Visited]:
    """Return the first state, of which `simulation` is, and each that takes less time than all before.

    The sweep also ends if the budget has no seconds left.
    """
    proposed: dict[int, Configuration] = {}
    walk = StrategyWalk(simulation, strategies, state, lambda draw, now: proposed)
    found, draw, before = [Visited(walk.cost, state)], Random(0), walk.cost + 1
    while walk.cost < before:
        before = walk.cost
        for number in _heaviest(open_decisions, simulation.moved()):
            together = open_decisions.tied.get(number, (number,))
            for configuration in even_splits(strategies.soap.decisions[number], strategies.soap.workers):
                if budget.spent:
                    return found
                proposed = open_decisions.changed(dict.fromkeys(together, configuration), walk.strategy)
                least = walk.cost - 1
                if proposed and walk.propose(draw, least) <= least:
                    walk.accept()
                    found.append(Visited(walk.cost, tuple(walk.strategy)))
                    budget.show(walk.cost)
                elif proposed:
                    walk.refuse()
    return found


def even_splits(decision: Decision, workers: int) -> Iterator[Configuration]:
    """Yield the configurations with one task on each worker that split one dimension or two."""
    for split in _splits(len(decision.dimensions), workers):
        degrees = [split.get(place, 1) for place in range(len(decision.dimensions))]
        if any(d > each.extent for d, each in zip(degrees, decision.dimensions, strict=True)):
            continue
        grid = np.arange(workers).reshape(tuple(split.values()))
        in_order = grid.transpose(sorted(range(len(split)), key=list(split).__getitem__))
        reduces = any(decision.dimensions[place].reduces for place in split)
        for holders in Holders if reduces else (Holders.PARTS,):
            yield Configuration(tuple(degrees), tuple(in_order.ravel().tolist()), holders)


def _splits(dimensions: int, workers: int) -> Iterator[Mapping[int, int]]:
    """Yield degrees by dimension, the outer one first."""
    for place in range(dimensions):
        yield {place: workers}
    for outer, inner in permutations(range(dimensions), 2):
        for degree in divisors(workers)[1:-1]:
            yield {outer: degree, inner: workers // degree}


def _heaviest(open_decisions: OpenDecisions, moved: Sequence[int]) -> list[int]:
    """Return one decision of each group of tied ones that moves much, the group that moves most first."""
    weights = open_decisions.weights(moved)
    groups = Counter[int]()
    for number in open_decisions.numbers:
        groups[open_decisions.tied.get(number, (number,))[0]] += weights[number]
    least = max(SHARE * sum(weights), 1)
    return [number for number, weight in groups.most_common(DECISIONS) if weight >= least]
