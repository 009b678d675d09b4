"""The arguments of methods that minimise the simulated time of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ..plans.plan import Plan
from ..plans.sampling import Sampling
from ..plans.space import Space
from .worker_memory import WorkerMemory


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a random search has come."""

    seconds: float
    """The simulated time of an iteration of the best plan so far."""

    chain: int
    """The number of the chain that runs, from 1 on; 0 as long as starts are planned."""

    chains: int
    """The number of chains; 0 as long as starts are planned."""

    proposals: int
    """The proposals of all chains so far."""

    per_second: float
    """The proposals per second of all chains so far."""


Watch = Callable[[SearchProgress], None]
"""Called with the progress, whenever a better plan is found, and otherwise at most ten times a second."""


@dataclass(frozen=True, slots=True)
class SimulatedSearch:
    """A graph and a machine, with the budget of a search."""

    graph: Graph
    """The graph."""

    workers: int
    """The number of workers."""

    space: Space
    """The plans that are searched, as far as they say where inputs arrive."""

    machine: Machine
    """The machine on which iterations are simulated."""

    sampling: Sampling
    """The seed and the budget."""

    watch: Watch | None
    """Called with the progress."""

    plans: Callable[[], Iterable[Plan]]
    """Returns the plans of the methods that simulate nothing, take seconds for the graph and can make one."""

    memory: WorkerMemory | None
    """The memory of each worker; None if there is no limit."""

    inside: Callable[[int], Plan]
    """Returns the plan of the method `refine` for fewer workers, in steps and without copies."""

    groups: int | None = None
    """The groups of workers on which operations are placed; None to search for the best number."""

    inside_memory: Callable[[], Plan] | None = None
    """Returns the plan of `inside` for all workers that needs least memory, or fits it; None without a limit.
    """

    def excess(self, plan: Plan) -> int:
        """Return the bytes by which a plan exceeds the memory of a worker; 0 if it fits."""
        return 0 if self.memory is None else self.memory.excess(plan)

    def lacking(self, plan: Plan) -> int:
        """Return the bytes that arenas have to leave for other things, if a plan's do not; 0 if they do."""
        return 0 if self.memory is None else self.memory.lacking(plan)
