"""A walk to plans that move fewer bytes and take no more than some time.

    cost       the bytes that move in an iteration
    limit      an iteration takes at most a time that is given; other proposals are refused

Many transfers are hidden behind computations, so what they move costs no time, and a search for time alone
leaves it as it is. Implemented in: `FewerBytesWalk`.
"""

from __future__ import annotations

from ....simulator.events import NEVER
from ....simulator.simulation import Simulation
from ..flexflow.strategy import Strategies
from ..flexflow.walk import Move, State, StrategyWalk


class FewerBytesWalk(StrategyWalk):
    """A state that moves change, none of which takes longer than a limit."""

    def __init__(
        self, simulation: Simulation, strategies: Strategies, state: State, move: Move, most: int
    ) -> None:
        """`simulation` is that of the state, and an iteration takes at most `most` nanoseconds."""
        self._most = most
        super().__init__(simulation, strategies, state, move)

    def _cost_of_state(self) -> int:
        return sum(self._simulation.moved())

    def _simulate(self, limit: float) -> int:
        """Let the simulation make the open proposal, and return its bytes; `NEVER` if it takes too long."""
        return self._cost_of_state() if super()._simulate(self._most) <= self._most else NEVER
