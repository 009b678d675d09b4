"""The memory of each worker, for methods that make whole plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """A limit, and the way to see whether a plan keeps it."""

    nbytes: int
    """The most that a worker may hold."""

    peak: Callable[[Plan], int]
    """Returns the memory of a plan's fullest worker."""

    def excess(self, plan: Plan) -> int:
        """Return the bytes by which a plan exceeds the limit; 0 if it fits."""
        return max(self.peak(plan) - self.nbytes, 0)
