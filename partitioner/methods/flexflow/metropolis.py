"""The Metropolis chain (FlexFlow, section 6.1), over states of any kind.

    cost(S)        the cost of a state, the lower the better
    acceptance     a proposal S* is accepted with probability min(1, exp(beta (cost(S) - cost(S*))))

If proposals are symmetric, states are visited with probabilities that are proportional to exp(-beta cost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp
from random import Random
from typing import Protocol


class Walk(Protocol):
    """A state that changes by proposals."""

    @property
    def cost(self) -> int:
        """Return the cost of the state, with the open proposal if there is one."""

    def propose(self, draw: Random) -> int:
        """Change the state at random, and return its cost. The change is open until it is decided."""

    def accept(self) -> None:
        """Keep the open proposal."""

    def refuse(self) -> None:
        """Go back to the state before the open proposal."""


def metropolis(walk: Walk, draw: Random, beta: Callable[[int], float]) -> Iterator[bool]:
    """Walk without end. Yield after each proposal whether it was accepted.

    `beta` gives the inverse temperature of a proposal by its number, from 0 on.
    """
    number, cost = 0, walk.cost
    while True:
        worse = walk.propose(draw) - cost
        accepted = worse <= 0 or draw.random() < exp(-beta(number) * worse)
        if accepted:
            walk.accept()
            cost += worse
        else:
            walk.refuse()
        yield accepted
        number += 1
