"""AutoDist's strategies: for every variable its parts, and a synchroniser for each (section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ....dataflow.rewrites.encoders import NO_REWRITE, PartedRewrite, Rewrite
from ....errors import PlanError
from ....support.checked_argument import require_count

DATA_PARALLEL = "data-parallel"
"""The base of a strategy that names none."""

GROUP_LIMIT = 2**31 - 1
"""The highest number of a group in a file."""


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Every worker that reads the part holds it, gets the sum of all gradients and updates it."""

    group: int = 0
    """The number of the group whose messages travel together, see `merging`."""

    order: tuple[int, ...] = ()
    """All replicas, in the order in which they take shares to reduce; none for ascending numbers."""

    two_level: bool = False
    """Whether each group of replicas sums its gradients first, so that one sum leaves it."""


@dataclass(frozen=True, slots=True)
class Server:
    """One worker holds the part, sums the gradients of all and updates it. The others fetch it."""

    worker: int
    """The worker."""

    proxy: bool = False
    """Whether a worker keeps what it fetched, so that the forward and the backward pass share one fetch."""

    via: tuple[int, ...] = ()
    """For each group of replicas the worker that sums its gradients, and keeps a copy of the part for it."""

    group: int | None = None
    """The number of the group whose messages travel together, see `merging`; None if it is in none."""

    by_arrival: bool = False
    """Whether it applies each gradient by itself, in the order in which they arrive, and never sums them.

    Every worker then keeps what it pulled after its own gradient, and reads that.
    """


Synchroniser = AllReduce | Server


def has_two_levels(sync: Synchroniser) -> bool:
    """Tell whether gradients are summed in groups of replicas first."""
    return sync.two_level if isinstance(sync, AllReduce) else bool(sync.via)


@dataclass(frozen=True, slots=True)
class Partition:
    """Parts of a variable along one dimension."""

    axis: int
    """The dimension."""

    bounds: tuple[int, ...]
    """The places between neighbouring parts, in ascending order."""


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """How one variable is synchronised."""

    parts: tuple[Synchroniser, ...]
    """The synchroniser of every part. Those of a grid are in row-major order."""

    partition: Partition | tuple[Partition, ...] | None = None
    """The parts, or those of several dimensions, which make a grid; None if the variable is whole."""

    rewrite: Rewrite = NO_REWRITE
    """How its gradient is encoded and delayed."""

    part_rewrites: tuple[Rewrite, ...] = ()
    """How the gradient of each part is encoded and delayed; none if all have `rewrite`."""

    factors: bool = False
    """Whether every holder computes all of its gradient, from factors that it fetches: sufficient factors."""

    rows: bool = False
    """Whether workers exchange indices and rows if the variable is sparse and this moves less."""

    masked: bool = False
    """Whether lookups are sums of masked rows, each of the rows that a worker has."""

    @property
    def cuts(self) -> tuple[Partition, ...]:
        """Return the cuts of dimensions."""
        match self.partition:
            case None:
                return ()
            case Partition() as cut:
                return (cut,)
            case cuts:
                return cuts

    @property
    def by_arrival(self) -> bool:
        """Tell whether a server applies gradients in the order in which they arrive."""
        return any(isinstance(part, Server) and part.by_arrival for part in self.parts)

    @property
    def group(self) -> int | None:
        """Return the group of the first part that is in one. The gradient of a variable waits as a whole."""
        return next((part.group for part in self.parts if part.group is not None), None)

    @property
    def whole_rewrite(self) -> Rewrite:
        """Return the rewrite of the gradient, with those of parts and what servers apply by arrival."""
        if self.masked:
            return replace(self.rewrite, masked=True)
        if self.by_arrival:
            return replace(self.rewrite, by_arrival=True)
        if not self.part_rewrites:
            return self.rewrite
        (cut,) = self.cuts
        return replace(self.rewrite, parts=PartedRewrite(cut.axis, cut.bounds, self.part_rewrites))


@dataclass(frozen=True, slots=True)
class Written:
    """Where a strategy was written, for errors that show when it is compiled."""

    file: str
    """The file, in words."""

    base: str | None
    """The place of its base; None if it names none."""

    variables: Mapping[str, str]
    """The place of the entry of each variable."""


@dataclass(frozen=True, slots=True)
class SyncStrategy:
    """How all variables of a graph are synchronised."""

    variables: Mapping[str, Synchronisation]
    """The synchronisation of each variable, by name, in the order of the graph."""

    replicas: tuple[tuple[int, ...], ...] = ()
    """The workers that run the model, in groups for sums in two levels; none for all workers in one group.

    Other workers are servers only.
    """

    base: str | None = None
    """The plan file, or the method, whose plan is synchronised; None for data parallelism."""

    updates_last: bool = False
    """Whether all updates run at the end, so that computations do not wait for gradients on their way."""

    shares: tuple[float, ...] | None = None
    """The part of each gradient that each worker reduces for all, if it is reduced; None for equal parts."""

    together: bool = False
    """Whether the gradients of a group wait for each other, so that their pieces travel together."""

    written: Written | None = field(default=None, compare=False, repr=False)
    """Where it was written; None if it was not read from a file."""

    @property
    def rewrites(self) -> dict[str, Rewrite]:
        """Return the rewrites of the gradients of variables, of those that have any."""
        found = {name: how.whole_rewrite for name, how in self.variables.items()}
        return {name: each for name, each in found.items() if each != NO_REWRITE}

    def groups(self, workers: int) -> tuple[tuple[int, ...], ...]:
        """Return the groups of replicas, of a number of workers."""
        return self.replicas or (tuple(range(workers)),)


def evenly(axis: int, extent: int, parts: int) -> Partition:
    """Cut a dimension as TensorFlow does: the first parts are one larger if the extent is not a multiple.

    >>> evenly(0, 10, 4)
    Partition(axis=0, bounds=(3, 6, 8))

    Raises PlanError unless there is one part or more.
    """
    require_count(extent, "extent", PlanError)
    require_count(parts, "parts", PlanError, 1)
    size, larger = divmod(extent, parts)
    sizes = (size + (part < larger) for part in range(parts - 1))
    return Partition(axis, tuple(accumulate(sizes)))
