"""A strategy that changes, with the simulated time of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from random import Random
from typing import NamedTuple

from ....machines.machine import Machine
from ....simulator.block_cache import BlockCache
from ....simulator.simulation import Simulation
from .configurations import Configuration, Drawable
from .strategy import Strategies, Strategy

State = tuple[Configuration | None, ...]
"""The configuration of each decision; None if it does what the first plan says."""

Move = Callable[[Random, Sequence[Configuration | None]], Mapping[int, Configuration]]
"""Draws new configurations of some decisions; none if it draws a move that is not possible."""


class _Simulated(NamedTuple):
    """The cost of a proposal."""

    cost: int
    """The cost, or a smaller one above the limit."""

    limit: float
    """The limit up to which it was simulated."""


class StrategyWalk:
    """A state that moves change. A proposal that was simulated from the same state is not simulated again."""

    def __init__(self, simulation: Simulation, strategies: Strategies, state: State, move: Move) -> None:
        """`simulation` is that of the state."""
        self.strategy = list(state)
        """The configuration of each decision."""
        self._simulation = simulation
        self._strategies = strategies
        self._move = move
        self._earlier: dict[int, Configuration | None] = {}
        self._changes: Mapping[int, Configuration] = {}
        self._known: dict[tuple[tuple[int, Configuration], ...], _Simulated] = {}
        """The costs of the proposals that were made from this state."""
        self._cost = self._cost_of_state()
        self._simulated = False

    @property
    def cost(self) -> int:
        """Return the nanoseconds of an iteration, or what else a class of walks minimises."""
        return self._cost

    def propose(self, draw: Random, limit: float = inf) -> int:
        """Make a move. The cost may be any larger number than `limit` if it exceeds that."""
        self._changes = changes = self._move(draw, self.strategy)
        self._earlier = {number: self.strategy[number] for number in changes}
        for number, configuration in changes.items():
            self.strategy[number] = configuration
        key = tuple(changes.items())
        known = self._known.get(key)
        self._simulated = known is None or known.limit < known.cost <= limit
        if known is None or self._simulated:
            known = self._known[key] = _Simulated(self._simulate(limit), limit)
        self._cost = known.cost
        return self._cost

    def accept(self) -> None:
        """Keep the open proposal."""
        if not self._simulated:
            self._simulate(inf)
        self._simulation.accept()
        if any(self._earlier[number] != each for number, each in self._changes.items()):
            self._known = {}

    def refuse(self) -> None:
        """Go back to what was before the open proposal."""
        for number, configuration in self._earlier.items():
            self.strategy[number] = configuration
        if self._simulated:
            self._simulation.refuse()
        self._cost = self._cost_of_state()

    def _cost_of_state(self) -> int:
        """Return the cost of what is simulated, with the open proposal if there is one."""
        return self._simulation.nanoseconds

    def _simulate(self, limit: float) -> int:
        """Let the simulation make the open proposal, and return its cost."""
        found = self._strategies.changes(self._changes)
        return self._simulation.propose(found.tasks, found.holdings, stops=found.stops, limit=limit)


def redraw(drawn: Sequence[Drawable]) -> Move:
    """Return FlexFlow's move: a random decision takes a random configuration (FlexFlow, section 6.2)."""
    several = [number for number, each in enumerate(drawn) if len(each) > 1]

    def move(draw: Random, state: Sequence[Configuration | None]) -> Mapping[int, Configuration]:
        if not several:
            return {}
        number = several[draw.randrange(len(several))]
        return {number: drawn[number].draw(draw)}

    return move


def simulated(
    strategies: Strategies, strategy: Strategy, machine: Machine, cache: BlockCache | None = None
) -> Simulation:
    """Return the simulation of a strategy. `cache` has what other simulations of the graph made."""
    soap, whole = strategies.soap, strategies.whole(strategy)
    return Simulation(
        soap.graph, machine, soap.workers, whole.tasks, whole.holdings, stops=whole.stops, cache=cache
    )
