"""The memory of each worker, for methods that make whole plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """A limit, and the way to see whether a plan keeps it."""

    nbytes: int
    """The most that a worker may hold, and that is withheld from it."""

    arena: Callable[[Plan], int]
    """Returns the most that the arena of a worker and what is withheld from it take."""

    workspace: Callable[[Plan], int] | None
    """Returns the bytes of the fullest worker besides these; None if they do not count."""

    withheld: tuple[int, ...] = ()
    """The bytes that each worker lacks of the limit, if devices differ; none if all have as much."""

    within: Callable[..., Plan] | None = None
    """Given other settings, returns the plan that they lead to within the limit, or with the least excess."""

    def limits(self, workers: int) -> tuple[int, ...]:
        """Return the most that each worker may hold."""
        return tuple(self.nbytes - each for each in self.withheld or (0,) * workers)

    def excess(self, plan: Plan) -> int:
        """Return the bytes by which a plan exceeds the limit; 0 if it fits."""
        return max(self.arena(plan) + self._besides(plan) - self.nbytes, 0)

    def lacking(self, plan: Plan) -> int:
        """Return the bytes that arenas have to leave for other things, if a plan's do not; 0 if they do."""
        besides = self._besides(plan)
        return besides if self.arena(plan) + besides > self.nbytes else 0

    def _besides(self, plan: Plan) -> int:
        return 0 if self.workspace is None else self.workspace(plan)
