"""Whole operations, and the values that pass between them, as arrays.

A *node* is an operation, or a tensor that lives across iterations. A node's *values* are what it makes: one
for each output of an operation, or the tensor itself. A value reaches a worker once, whatever its readers
there. A node that overwrites another one's values shares its worker: one of them *leads*, the others follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....support.integer_lists import IntegerLists
from ....support.integers import Integers


@dataclass(frozen=True, eq=False)
class PlacementGraph:
    """Nodes in an order in which every value is made before it is read, `n` of them, and `v` values."""

    names: tuple[str, ...]
    """The name of each node."""

    nanoseconds: Integers
    """The time of each node on each kind of device: `[kinds, n]`; 0 for tensors."""

    maker: Integers
    """The node that makes each value: `[v]`."""

    sent_bytes: Integers
    """The bytes that cross to a worker that reads a value: `[v]`."""

    stored_bytes: Integers
    """The bytes that a value occupies on its maker's worker: `[v]`; 0 if it overwrites another one."""

    readers: IntegerLists
    """The nodes that read each value, in ascending order."""

    after: IntegerLists
    """For each node those that overwrite what it reads, and so run after it."""

    leader: Integers
    """The node whose worker each node shares: `[n]`; its own number if it leads."""

    lasting: npt.NDArray[np.bool_]
    """Whether each value occupies memory throughout: `[v]`."""

    scratch_bytes: Integers
    """The memory that each node needs while it runs, besides its values: `[n]`."""

    in_place: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Pairs of a value and one that its maker reads whose memory it may take over: `[pairs, 2]`, by maker,
    then by value, then in the order in which they are tried. Both have as many bytes. The first one does
    not last, and if the other one does, only its copies are taken over. See `taking_over`.
    """

    shared_nodes: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """The nodes that neighbouring workers share, see `neighbourhoods`; the bytes that their values store, and
    their scratch, are those of one part.
    """

    parts: int = 1
    """The number of neighbouring workers that share a node."""

    @property
    def count(self) -> int:
        """Return the number of nodes."""
        return len(self.names)

    @cached_property
    def shared(self) -> npt.NDArray[np.bool_]:
        """Tell which nodes neighbouring workers share: `[n]`."""
        found = np.zeros(self.count, bool)
        found[self.shared_nodes] = True
        return found

    @cached_property
    def whole_bytes(self) -> Integers:
        """Return the bytes that all parts of each value store: `[v]`."""
        return np.where(self.shared[self.maker], self.parts * self.stored_bytes, self.stored_bytes)

    @cached_property
    def values(self) -> IntegerLists:
        """Return the values of each node."""
        return IntegerLists.grouped(self.maker, np.arange(len(self.maker)), self.count)

    @cached_property
    def inputs(self) -> IntegerLists:
        """Return the values that each node reads, in ascending order."""
        return IntegerLists.grouped(self.readers.entries, self.readers.row_of_entries, self.count)

    @cached_property
    def edges(self) -> Integers:
        """Return all pairs of nodes of which the second runs after the first, once: `[edges, 2]`, sorted."""
        read = np.stack([self.maker[self.readers.row_of_entries], self.readers.entries], axis=1)
        ordered = np.stack([self.after.row_of_entries, self.after.entries], axis=1)
        return np.unique(np.concatenate([read, ordered]), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class PlacementDevices:
    """The times and the memory of `w` workers, for placers."""

    kind: Integers
    """The row of `PlacementGraph.nanoseconds` that holds for each worker: `[w]`."""

    latency: Integers
    """The nanoseconds of a message without bytes: `[w, w]`, from the row's worker to the column's."""

    per_byte: npt.NDArray[np.float64]
    """The nanoseconds of each byte of a message: `[w, w]`."""

    memory_bytes: Integers | None
    """The memory of each worker: `[w]`; None if there is no limit."""

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return len(self.kind)

    def first(self, workers: int) -> PlacementDevices:
        """Return the devices of the first workers."""
        memory = None if self.memory_bytes is None else self.memory_bytes[:workers]
        between = slice(workers), slice(workers)
        return PlacementDevices(self.kind[:workers], self.latency[between], self.per_byte[between], memory)

    @property
    def mean_latency(self) -> float:
        """Return the mean nanoseconds of a message without bytes between two workers."""
        return _between(self.latency)

    @property
    def mean_per_byte(self) -> float:
        """Return the mean nanoseconds of each byte between two workers."""
        return _between(self.per_byte)


def _between(pairs: npt.NDArray[np.float64] | Integers) -> float:
    """Return the mean over pairs of different workers; 0 if there is one worker."""
    others = ~np.eye(len(pairs), dtype=bool)
    return float(pairs[others].mean()) if others.any() else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class NodeSchedule:
    """Where and when every node runs, if nothing but workers and messages takes time."""

    worker: Integers
    """The worker of each node: `[n]`."""

    order: Integers
    """All nodes in the order in which they run: `[n]`."""

    nanoseconds: int
    """The time until all have ended."""
