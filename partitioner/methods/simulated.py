"""The arguments of methods that minimise the simulated time of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ..plans.plan import Plan
from ..plans.sampling import Sampling
from ..plans.space import Space


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a random search has come."""

    seconds: float
    """The simulated time of an iteration of the best plan so far."""

    chain: int
    """The number of the chain that runs, from 1 on."""

    chains: int
    """The number of chains."""

    proposals: int
    """The proposals of all chains so far."""

    per_second: float
    """The proposals per second."""


Watch = Callable[[SearchProgress], None]
"""Called with the progress, at most ten times a second."""


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
    """Returns the plans of the methods that simulate nothing and take seconds, of those that can make one."""

    excess: Callable[[Plan], int]
    """Returns the bytes by which a plan exceeds the memory of a worker; 0 if it fits."""
