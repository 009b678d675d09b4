"""The Metropolis chain (FlexFlow, section 6.1), over states of any kind.

    cost(S)        the cost of a state, the lower the better
    acceptance     a proposal S* is accepted with probability min(1, exp(beta (cost(S) - cost(S*))))

The number that decides is drawn before the proposal is made, and gives the most that it may cost: a walk need
not find out what a proposal costs that exceeds it.

If proposals are symmetric, states are visited with probabilities that are proportional to exp(-beta cost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, log
from random import Random
from typing import Protocol


class Walk(Protocol):
    """A state that changes by proposals."""

    @property
    def cost(self) -> int:
        """Return the cost of the state, with the open proposal if there is one."""

    def propose(self, draw: Random, limit: float) -> int:
        """Change the state at random, and return its cost, or any larger number than `limit` if it exceeds
        that. The change is open until it is decided.
        """

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
        limit = cost + _allowed(draw, beta(number))
        proposed = walk.propose(draw, limit)
        accepted = proposed <= limit
        if accepted:
            walk.accept()
            cost = proposed
        else:
            walk.refuse()
        yield accepted
        number += 1


def _allowed(draw: Random, beta: float) -> float:
    """Return by how much a proposal may be worse: more than x with probability exp(-beta x)."""
    drawn = draw.random()
    return log(1 / drawn) / beta if drawn and beta else inf
