"""How a random search draws: what a plan records of it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import PlanError
from ...support.checked_argument import is_number, shown

PROPOSALS = 2000
"""The proposals of each chain if neither proposals nor seconds are given."""

SEEDS = 2**64
"""The number of seeds."""


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
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < SEEDS:
            raise PlanError(f"the seed is {shown(self.seed)}; give a whole number from 0 to 2**64 - 1")
        count = self.proposals
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise PlanError(f"the number of proposals is {shown(count)}; give a whole number, 1 or larger")
        given = [("beta", self.beta)] + ([] if self.seconds is None else [("seconds", self.seconds)])
        for name, value in given:
            if not (_is_finite(value) and value > 0):
                raise PlanError(f"{name} is {shown(value)}; give a finite number larger than 0")
        if not (_is_finite(self.slower) and self.slower >= 0):
            raise PlanError(f"slower is {shown(self.slower)}; give a finite number, 0 or larger")

    def of_trials(self) -> Sampling:
        """Return what a search that makes a number of trials draws by: no temperature, and no seconds."""
        return Sampling(self.seed, self.proposals, slower=self.slower)

    @property
    def most(self) -> int | None:
        """The most proposals of a chain; None for as many as fit into the seconds."""
        return PROPOSALS if self.proposals is None and self.seconds is None else self.proposals


def _is_finite(value: object) -> bool:
    """Return whether a value is an integer or a float, not a boolean, that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_number(value)
