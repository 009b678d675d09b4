"""How operations use memory, as far as it is known, in arrays. Equal uses are kept once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...dataflow.graph import Graph
from ...support.integers import Integers
from ..costs.movement import Movements, WorkerRegions
from .memory_use import MemoryUse, WorkerUse


@dataclass(frozen=True, slots=True, eq=False)
class TouchedTensors:
    """The tensors that the operations of a graph touch."""

    graph: Graph
    """The graph."""

    roots: Integers
    """The tensors whose memory the tensors have that operations touch, operation after operation."""

    counts: Integers
    """The number of those of each operation."""

    firsts: Integers
    """The place of the first of those of each operation."""

    homes: Integers
    """The tensors that overwrite none."""

    itemsizes: Integers
    """The bytes of an element of those."""

    lasting: npt.NDArray[np.bool_]
    """Which of those are there when an iteration begins, and last beyond it."""

    kept: npt.NDArray[np.bool_]
    """Which of those are there when it ends."""

    @classmethod
    def of(cls, graph: Graph) -> TouchedTensors:
        """Return the tensors that the operations of a graph touch."""
        own = [tensor for tensor in graph.tensors if tensor.alias is None]
        lasting = {graph.roots[tensor.index] for tensor in graph.tensors if tensor.role.persistent}
        kept = lasting | {graph.roots[tensor] for tensor in graph.outputs}
        return cls(
            graph,
            np.array(graph.roots, np.int64)[graph.alike.touched],
            graph.alike.counts,
            graph.alike.counts.cumsum() - graph.alike.counts,
            np.array([tensor.index for tensor in own], np.int64),
            np.array([tensor.itemsize for tensor in own], np.int64),
            np.array([tensor.index in lasting for tensor in own], np.bool_),
            np.array([tensor.index in kept for tensor in own], np.bool_),
        )


@dataclass(frozen=True, slots=True, eq=False)
class UseTables:
    """How an operation uses the memory of one worker, see `WorkerUse`, in arrays."""

    own: Integers
    """The size of each buffer of its own."""

    contents: Integers
    """The slots of the tensors that these hold, and the numbers of their kinds, `[2, buffers]`."""

    copied: tuple[Integers, ...]
    """The sizes of the parts of copies."""

    touched: Integers
    """The buffers that it touches, `[4, touched]`."""

    overwriting: Integers
    """Which output may take over which input, `[6, pairs]`."""

    @classmethod
    def of(cls, use: WorkerUse) -> UseTables:
        return cls(
            np.array(use.own, np.int64),
            np.array(use.contents, np.int64).reshape(-1, 2).T,
            tuple([np.array(sizes, np.int64) for sizes in use.copied]),
            np.array(use.touched, np.int64).reshape(-1, 4).T,
            np.array(use.overwriting, np.int64).reshape(-1, 6).T,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """How an operation uses memory."""

    ticks: int
    """The ticks until the next operation begins."""

    last: int
    """The tick of its last instruction."""

    tables: tuple[int, ...]
    """For each worker the number of its tables."""


class KnownUses:
    """The uses of memory that are known of plans in the same steps. Equal ones have equal numbers."""

    def __init__(self, workers: int, factors: tuple[int, ...]) -> None:
        self.movements = Movements(workers, factors)
        self.uses: dict[tuple[int, ...], Use] = {}
        """The uses of operations, by the numbers of what they depend on."""
        self.tables: list[UseTables] = []
        """The uses of single workers, by their numbers."""
        self.parts: list[Integers] = []
        """The elements of a worker's parts of a tensor, by their numbers."""
        self.numbers: dict[Hashable, int] = {}
        """The numbers of forms, regions and pairs of them."""
        self._table_numbers: dict[WorkerUse, int] = {}
        self._parts_numbers: dict[tuple[int, ...], int] = {}
        self._held: dict[WorkerRegions, tuple[int, ...]] = {}
        self._workers = workers

    def number(self, value: Hashable) -> int:
        """Return the number of a value."""
        return self.numbers.setdefault(value, len(self.numbers))

    def held(self, regions: WorkerRegions) -> tuple[int, ...]:
        """Return for each worker the number of its parts of a tensor."""
        found = self._held.get(regions)
        if found is None:
            each: list[list[int]] = [[] for _ in range(self._workers)]
            for worker, elements in zip(regions.workers, regions.elements, strict=True):
                each[worker].append(elements)
            found = self._held[regions] = tuple([self._parts_number(tuple(own)) for own in each])
        return found

    def add(self, key: tuple[int, ...], made: MemoryUse) -> Use:
        """Remember the use of an operation."""
        numbers = tuple([self._table_number(use) for use in made.workers])
        found = self.uses[key] = Use(made.ticks, made.last, numbers)
        return found

    def _parts_number(self, elements: tuple[int, ...]) -> int:
        found = self._parts_numbers.get(elements)
        if found is None:
            found = self._parts_numbers[elements] = len(self.parts)
            self.parts.append(np.array(elements, np.int64))
        return found

    def _table_number(self, use: WorkerUse) -> int:
        found = self._table_numbers.get(use)
        if found is None:
            found = self._table_numbers[use] = len(self.tables)
            self.tables.append(UseTables.of(use))
        return found
