"""Blocks of operations, made once for equal operators, tasks and holdings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from ..machines.device_kind import DeviceKind
from ..machines.machine import Machine
from ..programs.parts import Holding, Task
from .blocks import OperationBlock
from .build_block import Holdings, build
from .message_times import MessageTimes
from .part_cache import PartCache
from .part_sets import PartSet
from .structure import Like, Structure
from .task_sets import CutOperation, TaskSet, check_workers, cut, distinct, held_parts, task_set
from .times import Source, TaskTimes, TimesOfTasks

LIMIT = 1 << 24
"""The integers in blocks and parts that are kept; beyond it all are forgotten, and made again if needed."""


class KnownBlocks:
    """Blocks of one graph on one machine with what they are made of, for simulations of many plans."""

    def __init__(self, graph: Graph, machine: Machine, workers: int, times: TaskTimes | None = None) -> None:
        """`times` gives the times of tasks, which are the machine's otherwise."""
        self.graph = graph
        self.workers = workers
        self.times = TimesOfTasks(graph, machine, workers, times)
        self.messages = MessageTimes(machine, workers, self.times.profiled)
        self.parts = PartCache()
        self.cuts: dict[tuple[object, ...], CutOperation] = {}
        self.spent: dict[tuple[CutOperation, tuple[int, ...]], tuple[list[int], Sequence[Source]]] = {}
        self.tasks: dict[tuple[CutOperation, tuple[int, ...]], TaskSet] = {}
        self.given: dict[tuple[object, ...], PartSet] = {}
        self.holdings: dict[tuple[PartSet, PartSet | None], Holdings] = {}
        self.blocks: dict[tuple[object, ...], OperationBlock] = {}
        self._size = 0

    def add(self, key: tuple[object, ...], block: OperationBlock) -> None:
        """Keep a block."""
        self.blocks[key] = block
        self._size += len(block.words) + len(block.notes)

    def make_room(self) -> None:
        """Forget everything if it has become too much."""
        if self._size + self.parts.size > LIMIT:
            caches = (
                self.parts, self.cuts, self.spent, self.tasks, self.given, self.holdings, self.blocks,
            )  # fmt: skip
            for cache in caches:
                cache.clear()
            self.messages.forget()
            self._size = 0


class BlockCache:
    """Tasks, holdings and blocks of a graph with its versions. Equal ones are one object."""

    def __init__(self, structure: Structure, known: KnownBlocks) -> None:
        self._structure = structure
        self._known = known
        self._kind_of = _first_alike(known.messages.ways.kinds)

    def tasks(self, listed: Iterable[tuple[int, Sequence[Task]]]) -> dict[int, TaskSet]:
        """Return the tasks of operations. Raises PlanError unless they tile the iteration spaces.

        Operations that are like each other often share one list, which is read once.
        """
        read: dict[tuple[Like, int], tuple[Sequence[Task], TaskSet]] = {}
        found = {}
        for number, tasks in listed:
            key = self._structure.likes[number], id(tasks)
            known = read.get(key)
            if known is None:
                known = read[key] = tasks, self._task_set(self._known.graph.operations[number], tasks)
            found[number] = known[1]
        return found

    def _task_set(self, operation: Operation, tasks: Sequence[Task]) -> TaskSet:
        try:
            boxes = self._cut(operation, tasks)
            workers = tuple([task.worker for task in tasks])
            found = self._known.tasks.get((boxes, workers))
            if found is None:
                check_workers(workers, self._known.workers)
                spent, sources = self._nanoseconds(operation, boxes, workers)
                found = self._known.tasks[boxes, workers] = task_set(
                    boxes, workers, spent, sources, self._known.parts
                )
        except PlanError as error:
            raise PlanError(f"operation {operation.name!r}: {error}") from error
        return found

    def _cut(self, operation: Operation, tasks: Sequence[Task]) -> CutOperation:
        key = self._structure.likes[operation.index], *[(task.box, task.term, task.read) for task in tasks]
        found = self._known.cuts.get(key)
        if found is None:
            found = self._known.cuts[key] = cut(operation, tasks, self._known.parts)
        return found

    def _nanoseconds(
        self, operation: Operation, boxes: CutOperation, workers: tuple[int, ...]
    ) -> tuple[list[int], Sequence[Source]]:
        """Return the times of tasks, which are equal on devices of one kind, and where they come from."""
        same_kind = tuple([self._kind_of[worker] for worker in workers])
        found = self._known.spent.get((boxes, same_kind))
        if found is None:
            elements = [np.asarray(each.elements) for each in (*boxes.needed, *boxes.made)]
            found = self._known.times.of(operation, same_kind, boxes.boxes, elements)
            self._known.spent[boxes, same_kind] = found
        return found

    def given(
        self, listed: Iterable[tuple[int, Sequence[Holding], Sequence[Holding] | None]]
    ) -> dict[int, Holdings]:
        """Return holdings of versions, and where they stop. Raises PlanError unless both tile the versions.

        Versions of one shape often share one list, which is read once.
        """
        read: dict[tuple[object, ...], tuple[object, object, Holdings]] = {}
        found = {}
        for version, holdings, stop in listed:
            shape = self._known.graph.tensors[self._structure.versions.tensors[version]].shape
            key = shape, id(holdings), id(stop)
            known = read.get(key)
            if known is None:
                home = self._held(version, holdings)
                both = self._joined(home, None if stop is None else self._held(version, stop))
                known = read[key] = holdings, stop, both
            found[version] = known[2]
        return found

    def made_by(self, tasks: TaskSet, output: int) -> Holdings:
        """Return the holdings of an output that is held by the workers that make it."""
        return self._joined(distinct(tasks.made[output], self._known.parts), None)

    def block(self, operation: Operation, tasks: TaskSet, held: Sequence[Holdings]) -> OperationBlock:
        """Return the block of an operation; `held` are the holdings of the versions that it touches.

        Raises PlanError if no one holds what a task needs.
        """
        like = self._structure.likes[operation.index]
        key = like, tasks, *held
        found = self._known.blocks.get(key)
        if found is None:
            self._known.make_room()
            try:
                found = build(like.touched, tasks, held, self._known.messages)
            except PlanError as error:
                raise PlanError(f"operation {operation.name!r}: {error}") from error
            self._known.add(key, found)
        return found

    def _held(self, version: int, holdings: Sequence[Holding]) -> PartSet:
        of = self._known.graph.tensors[self._structure.versions.tensors[version]]
        key = of.shape, *[(each.worker, each.region, each.term) for each in holdings]
        found = self._known.given.get(key)
        if found is None:
            try:
                found = held_parts(of.shape, holdings, self._known.workers, self._known.parts)
            except PlanError as error:
                raise PlanError(f"tensor {of.name!r}: {error}") from error
            self._known.given[key] = found
        return found

    def _joined(self, home: PartSet, stop: PartSet | None) -> Holdings:
        found = self._known.holdings.get((home, stop))
        if found is None:
            found = self._known.holdings[home, stop] = Holdings(home, stop)
        return found


def _first_alike(kinds: Sequence[DeviceKind]) -> list[int]:
    """Return, for each worker, the first one whose device is of the same kind."""
    first: dict[DeviceKind, int] = {}
    return [first.setdefault(kind, worker) for worker, kind in enumerate(kinds)]
