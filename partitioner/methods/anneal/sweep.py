"""Even splits over all workers for the decisions that weigh most, one decision after the other.

    decisions    up to `DECISIONS`, each with at least `SHARE` of all bytes that move, or of the time on the
                 chain of jobs that decides the time of the iteration. The heaviest one is first; those that
                 are tied are one
    splits       along one dimension, or along two of which either is the outer one: neighbouring workers have
                 the same part of the outer one. Partial results may have any holders
    accepted     what makes an iteration faster, as the simulator finds it
    neighbours   if none of the splits does, those that alone make an iteration at most `HOPEFUL` times as
                 long are tried together with the decisions that touch the same tensors: those of the same
                 phase, or the updates, take what goes with the split (`neighbours`)
    stop         if none of these makes it faster either

On a machine of several nodes one dimension is split among nodes and the other within each. Configurations
that chains draw have the dimensions of an operation in their own order alone, so chains seldom find the other
one. Implemented in: `Sweep.run`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import permutations
from random import Random

import numpy as np

from ....dataflow.graph import Phase
from ....simulator.simulation import Simulation
from ..budget import Budget
from ..flexflow.chains import Visited
from ..flexflow.configurations import Configuration, Holders, divisors
from ..flexflow.soap import Decision
from ..flexflow.strategy import Strategies
from ..flexflow.walk import State, StrategyWalk
from .neighbours import Neighbours
from .open_decisions import OpenDecisions

DECISIONS = 8
SHARE = 1 / 16
HOPEFUL = 1.1
"""The time of an iteration, over that of the fastest state so far, up to which neighbours are tried."""


class Sweep:
    """A sweep from the state of a simulation."""

    def __init__(
        self,
        simulation: Simulation,
        strategies: Strategies,
        state: State,
        open_decisions: OpenDecisions,
        neighbours: Neighbours,
        budget: Budget,
    ) -> None:
        self._simulation = simulation
        self._soap = strategies.soap
        self._open = open_decisions
        self._neighbours = neighbours
        self._budget = budget
        self._proposed: Mapping[int, Configuration] = {}
        self._walk = StrategyWalk(simulation, strategies, state, lambda draw, now: self._proposed)
        self._found = [Visited(self._walk.cost, state)]
        self._draw = Random(0)

    def run(self) -> list[Visited]:
        """Return the first state, and each that takes less time than all before.

        The sweep also ends if the budget has no seconds left.
        """
        for spreading in (False, True):
            before = self._walk.cost + 1
            while self._walk.cost < before:
                before = self._walk.cost
                for number in self._heaviest():
                    for configuration in even_splits(self._soap.decisions[number], self._soap.workers):
                        if self._budget.spent:
                            return self._found
                        self._try(number, configuration, spreading)
        return self._found

    def _try(self, number: int, configuration: Configuration, spreading: bool) -> None:
        """Try a configuration of a decision alone, and if it is spreading with its neighbours."""
        together = self._open.together(number)
        hopeful = self._takes(dict.fromkeys(together, configuration))
        if hopeful and spreading and len(together) == 1:
            for phase in dict.fromkeys((self._phase(number), Phase.UPDATE)):
                self._takes(self._with_neighbours(number, configuration, phase))

    def _takes(self, changes: Mapping[int, Configuration]) -> bool:
        """Keep changes if an iteration takes less time.

        Return whether it takes at most `HOPEFUL` times as long. It does if nothing changes.
        """
        walk, most = self._walk, HOPEFUL * self._walk.cost
        self._proposed = self._open.changed(changes, walk.strategy)
        if not self._proposed:
            return True
        before, cost = walk.cost, walk.propose(self._draw, most)
        if cost < before:
            walk.accept()
            self._found.append(Visited(cost, tuple(walk.strategy)))
            self._budget.show(cost)
        else:
            walk.refuse()
        return cost <= most

    def _with_neighbours(
        self, number: int, configuration: Configuration, phase: Phase
    ) -> dict[int, Configuration]:
        """Return what a decision and its neighbours of a phase take."""
        others = [other for other in self._neighbours.of(number) if self._phase(other) is phase]
        carried = {other: self._neighbours.carried(number, configuration, other) for other in others}
        return {number: configuration} | {other: each for other, each in carried.items() if each is not None}

    def _phase(self, number: int) -> Phase:
        return self._soap.graph.operations[self._soap.decisions[number].operations[0]].phase

    def _heaviest(self) -> list[int]:
        """Return one decision of each group of tied ones that has much weight, the heaviest group first."""
        shares: dict[int, float] = {}
        for of_operations in (self._simulation.moved(), self._simulation.deciding()):
            weights, groups = self._open.weights(of_operations), Counter[int]()
            for number in self._open.numbers:
                groups[self._open.together(number)[0]] += weights[number]
            whole = max(sum(weights), 1)
            for number, weight in groups.items():
                shares[number] = max(shares.get(number, 0.0), weight / whole)
        heaviest = sorted(shares, key=shares.__getitem__, reverse=True)[:DECISIONS]
        return [number for number in heaviest if shares[number] >= SHARE]


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
