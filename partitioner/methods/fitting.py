"""Plans found for a limit of memory, and what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...programs.memory import MemoryFigures
from ..plans.cost import PICOSECONDS_PER_SECOND
from ..plans.plan import Plan
from ..problem.least_scratch import Scratch


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory that a plan needs of its fullest worker, with what is withheld from that."""

    arena: Callable[[Plan], int]
    """Returns the bytes of its arena, and those withheld."""

    workspace: Callable[[Plan], int] | None = None
    """Returns the bytes of the peak besides the arena, which kernels take; None if they do not count."""

    scratch: Scratch | None = None
    """Returns the least scratch of an operation's kernel for a box; None if no bound on it is known."""

    withheld: tuple[int, ...] = ()
    """The bytes that each worker lacks of the highest limit; none if all have the same one."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """A plan found for a limit of memory."""

    plan: Plan
    """The best plan that fits; if none does, the plan with the least peak."""

    cost: int
    """Its cost by the objective."""

    arena_bytes: int
    """The largest arena of a worker, with what is withheld from that worker."""

    workspace_bytes: int | None = None
    """The memory of the fullest worker besides its arena; None if it was not counted."""

    larger: tuple[Fitting, ...] = ()
    """Of the plans found that cost less, the one that needs the least memory, and the cheapest one."""

    without_copies: Fitting | None = None
    """If the plan keeps copies beyond its space, the best plan of the space, whose bound is for the limit."""

    least_bytes: int = 0
    """If the plan does not fit, a lower bound on the memory that the plans of its space need."""

    memory: Callable[[Plan], MemoryFigures] | None = field(default=None, compare=False)
    """Returns the memory that a plan of the graph needs. `search_within` sets it."""

    @property
    def peak_bytes(self) -> int:
        """Return the most that a worker holds, as far as it was counted."""
        return self.arena_bytes + (self.workspace_bytes or 0)


def cost_of(plan: Plan) -> int:
    """Return the cost of a plan by the objective that it was found for: the time of an iteration if known."""
    if plan.step_seconds is not None:
        return round(plan.step_seconds * PICOSECONDS_PER_SECOND)
    timed = plan.transfer_time
    return plan.cost_bytes if timed is None else round(timed.seconds * PICOSECONDS_PER_SECOND)


def by_cost(found: Fitting) -> tuple[int, int]:
    """Return what orders plans by cost, then by arena."""
    return found.cost, found.arena_bytes


def by_memory(found: Fitting) -> tuple[int, int]:
    """Return what orders plans by arena, then by cost."""
    return found.arena_bytes, found.cost
