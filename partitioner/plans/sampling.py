"""How a random search draws: what a plan records of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from ...errors import PlanError

PROPOSALS = 2000
"""The proposals of each chain if neither proposals nor seconds are given."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The budget, the seed and the temperature of a random search. The same values give the same plan, unless
    there is a limit of seconds.
    """

    seed: int = 0
    """The seed of all that is drawn."""

    proposals: int | None = None
    """The most proposals of a chain; None for `PROPOSALS`, or as many as fit into the seconds."""

    beta: float = 2000.0
    """The inverse temperature: a proposal that makes an iteration longer by 1 / beta of the first strategy's
    time is accepted with probability 1 / e.
    """

    seconds: float | None = None
    """The most seconds of the search. Another run may then find another plan."""

    slower: float = 0.0
    """How much longer than with the fastest plan that is found an iteration may take, if fewer bytes move;
    0.05 allows 5% more.
    """

    def check(self) -> None:
        """Raise PlanError for values that cannot be."""
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise PlanError(f"the seed is {self.seed!r}; give a whole number, 0 or larger")
        count = self.proposals
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise PlanError(f"the number of proposals is {count!r}; give a whole number, 1 or larger")
        given = [("beta", self.beta)] + ([] if self.seconds is None else [("seconds", self.seconds)])
        for name, value in given:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and isfinite(value) and value > 0):
                raise PlanError(f"{name} is {value!r}; give a number larger than 0")
        number = isinstance(self.slower, int | float) and not isinstance(self.slower, bool)
        if not (number and isfinite(self.slower) and self.slower >= 0):
            raise PlanError(f"slower is {self.slower!r}; give a number, 0 or larger")

    @property
    def most(self) -> int | None:
        """The most proposals of a chain; None for as many as fit into the seconds."""
        return PROPOSALS if self.proposals is None and self.seconds is None else self.proposals
