"""Blocks of operations, made once for equal operators, tasks and holdings."""

from __future__ import annotations

from collections.abc import Sequence

from ..analyzer.indices.region import Region
from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from ..machines.machine import Machine
from ..programs.parts import Holding, Task
from .blocks import Block, Holdings, Touched, build, touched
from .part_sets import PartSet, part_set
from .pricing import Prices
from .task_sets import TaskSet, distinct, held_parts, task_set
from .times import TaskTimes

LIMIT = 1 << 24
"""The integers in blocks and parts that are kept; beyond it all are forgotten, and made again if needed."""

Like = tuple[object, ...]
"""An operator with element types and the way in which it touches tensors."""


class BlockCache:
    """Tasks, holdings and blocks for one graph on one machine. Equal ones are one object."""

    def __init__(self, graph: Graph, machine: Machine, workers: int, times: TaskTimes) -> None:
        self._graph = graph
        self._workers = workers
        self._times = times
        self.prices = Prices(machine, workers)
        self.roots = _roots(graph)
        """The tensor whose storage each tensor has."""
        self.tensors: list[tuple[int, ...]] = []
        """The tensors that each operation touches: those that it reads, each once, then those that it makes."""
        self._touched: list[Touched] = []
        self._likes: list[Like] = []
        known: dict[Like, Like] = {}
        for operation in graph.operations:
            how, tensors = touched(graph, operation, self.roots)
            like = operation.bound, how, *[graph.tensors[tensor].dtype for tensor in tensors]
            self._likes.append(known.setdefault(like, like))
            self._touched.append(how)
            self.tensors.append(tensors)
        self._parts: dict[tuple[object, ...], PartSet] = {}
        self._holdings: dict[tuple[PartSet, PartSet | None], Holdings] = {}
        self._given: dict[tuple[object, ...], PartSet] = {}
        self._tasks: dict[tuple[object, ...], TaskSet] = {}
        self._blocks: dict[tuple[object, ...], Block] = {}
        self._size = 0

    def tasks(self, operation: Operation, tasks: Sequence[Task]) -> TaskSet:
        """Return tasks. Raises PlanError unless they tile the operation's iteration space."""
        key = id(self._likes[operation.index]), tuple(tasks)
        found = self._tasks.get(key)
        if found is None:
            try:
                found = task_set(operation, key[1], self._workers, self._times, self._part_set)
            except PlanError as error:
                raise PlanError(f"operation {operation.name!r}: {error}") from error
            self._tasks[key] = found
        return found

    def given(self, tensor: int, holdings: Sequence[Holding], stop: Sequence[Holding] | None) -> Holdings:
        """Return holdings of a tensor. Raises PlanError unless they tile it, and `stop` as well."""
        home = self._held(tensor, holdings)
        return self._joined(home, None if stop is None else self._held(tensor, stop))

    def made_by(self, tasks: TaskSet, output: int) -> Holdings:
        """Return the holdings of an output that is held where it is made."""
        return self._joined(distinct(tasks.made[output], self._part_set), None)

    def block(self, operation: Operation, tasks: TaskSet, held: Sequence[Holdings]) -> Block:
        """Return the block of an operation; `held` are the holdings of the tensors that it touches.

        Raises PlanError if no one holds what a task needs.
        """
        key = id(self._likes[operation.index]), tasks, *held
        found = self._blocks.get(key)
        if found is None:
            if self._size > LIMIT:
                self._forget()
            try:
                found = build(self._touched[operation.index], tasks, held, self.prices)
            except PlanError as error:
                raise PlanError(f"operation {operation.name!r}: {error}") from error
            self._blocks[key] = found
            self._size += len(found.words)
        return found

    def _forget(self) -> None:
        for cache in (self._parts, self._holdings, self._given, self._tasks, self._blocks):
            cache.clear()
        self.prices.forget()
        self._size = 0

    def _held(self, tensor: int, holdings: Sequence[Holding]) -> PartSet:
        of = self._graph.tensors[tensor]
        key = of.shape, tuple(holdings)
        found = self._given.get(key)
        if found is None:
            try:
                found = held_parts(of.shape, key[1], self._workers, self._part_set)
            except PlanError as error:
                raise PlanError(f"tensor {of.name!r}: {error}") from error
            self._given[key] = found
        return found

    def _joined(self, home: PartSet, stop: PartSet | None) -> Holdings:
        return self._holdings.setdefault((home, stop), Holdings(home, stop))

    def _part_set(
        self, workers: Sequence[int], regions: Sequence[Region], term: Sequence[int], terms: int
    ) -> PartSet:
        key = tuple(workers), tuple(regions), tuple(term), terms
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = part_set(*key)
            self._size += len(found.bounds)
        return found


def _roots(graph: Graph) -> list[int]:
    """Return the tensor whose storage each tensor has."""
    roots: list[int] = []
    for tensor in graph.tensors:
        roots.append(tensor.index if tensor.alias is None else roots[tensor.alias])
    return roots
