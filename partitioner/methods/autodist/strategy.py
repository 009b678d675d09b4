"""AutoDist's strategies: for every variable its parts, and a synchroniser for each (section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from ....dataflow.rewrites.encoders import NO_REWRITE, PartedRewrite, Relay, Rewrite


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Every worker holds the part, gets the sum of all gradients and updates it."""

    group: int = 0
    """The number of the group whose messages belong together. Tofu does not merge messages yet."""

    hosts: int = 1
    """The number of equal groups of neighbouring workers within which gradients are summed first."""

    @property
    def levels(self) -> int:
        """Return the number of hosts, 1 for one level."""
        return self.hosts


@dataclass(frozen=True, slots=True)
class Server:
    """One worker holds the part, sums the gradients of all and updates it. The others fetch it."""

    worker: int
    """The worker."""

    proxy: bool = False
    """Whether a worker keeps what it fetched, so that the forward and the backward pass share one fetch."""

    via: tuple[int, ...] = ()
    """The worker of each host of neighbours through which gradients and the part go; none for one level."""

    @property
    def levels(self) -> int:
        """Return the number of hosts, 1 for one level."""
        return max(len(self.via), 1)


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

    rewrite: Rewrite = NO_REWRITE
    """The rewrite of its gradient. Its relay follows from the parts, see `relay`."""

    part_rewrites: tuple[Rewrite, ...] = ()
    """The rewrite of the gradient of each part; none if all have `rewrite`."""

    rows: bool = False
    """Whether workers exchange indices and rows if the variable is sparse and this moves less."""

    @property
    def relay(self) -> Relay | None:
        """Return the tensor that is relayed, if the first part has two levels."""
        part = self.parts[0]
        if part.levels == 1:
            return None
        return Relay.GRADIENT if isinstance(part, AllReduce) else Relay.PARAMETER

    @property
    def whole_rewrite(self) -> Rewrite:
        """Return the rewrite of the gradient with its relay and with those of parts."""
        if not self.part_rewrites or self.partition is None:
            return replace(self.rewrite, relay=self.relay)
        parts = PartedRewrite(self.partition.axis, self.partition.bounds, self.part_rewrites)
        return replace(self.rewrite, relay=self.relay, parts=parts)


@dataclass(frozen=True, slots=True)
class SyncStrategy:
    """How all variables of a graph are synchronised. Every worker is a replica."""

    variables: Mapping[str, Synchronisation]
    """The synchronisation of each variable, by name, in the order of the graph."""

    @property
    def rewrites(self) -> dict[str, Rewrite]:
        """Return the rewrites of the gradients of variables, of those that have any."""
        found = {name: how.whole_rewrite for name, how in self.variables.items()}
        return {name: each for name, each in found.items() if each != NO_REWRITE}


def evenly(axis: int, extent: int, parts: int) -> Partition:
    """Cut a dimension as TensorFlow does: the first parts are one larger if the extent is not a multiple.

    >>> evenly(0, 10, 4)
    Partition(axis=0, bounds=(3, 6, 8))
    """
    size, larger = divmod(extent, parts)
    sizes = (size + (part < larger) for part in range(parts - 1))
    return Partition(axis, tuple(accumulate(sizes)))
