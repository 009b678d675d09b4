"""AutoDist's strategies: for every variable its parts, and a synchroniser for each (section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Every worker holds the part, gets the sum of all gradients and updates it."""

    group: int = 0
    """The number of the group whose messages travel together, see `merging`."""


@dataclass(frozen=True, slots=True)
class Server:
    """One worker holds the part, sums the gradients of all and updates it. The others fetch it."""

    worker: int
    """The worker."""

    proxy: bool = False
    """Whether a worker keeps what it fetched, so that the forward and the backward pass share one fetch."""


Synchroniser = AllReduce | Server


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
    """The synchroniser of every part: one more than the partition has bounds."""

    partition: Partition | None = None
    """The parts; None if the variable is whole."""


@dataclass(frozen=True, slots=True)
class SyncStrategy:
    """How all variables of a graph are synchronised. Every worker is a replica."""

    variables: Mapping[str, Synchronisation]
    """The synchronisation of each variable, by name, in the order of the graph."""

    updates_last: bool = False
    """Whether all updates run at the end, so that computations do not wait for gradients on their way."""

    shares: tuple[float, ...] | None = None
    """The part of each gradient that each worker reduces for all, if it is reduced; None for equal parts."""


def evenly(axis: int, extent: int, parts: int) -> Partition:
    """Cut a dimension as TensorFlow does: the first parts are one larger if the extent is not a multiple.

    >>> evenly(0, 10, 4)
    Partition(axis=0, bounds=(3, 6, 8))
    """
    size, larger = divmod(extent, parts)
    sizes = (size + (part < larger) for part in range(parts - 1))
    return Partition(axis, tuple(accumulate(sizes)))
