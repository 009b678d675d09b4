"""Blocks of operations, made once for equal operators, tasks and holdings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..dataflow.graph import Graph, Operation, Tensor
from ..errors import PlanError
from ..machines.device_kind import DeviceKind
from ..machines.machine import Machine
from ..programs.parts import Holding, Task
from .blocks import OperationBlock
from .build_block import Holdings, build
from .message_times import MessageTimes
from .part_cache import PartCache
from .part_sets import PartSet
from .structure import Like, Structure, structures
from .task_sets import CutOperation, TaskSet, check_workers, cut, distinct, held_parts, task_set
from .times import Source, TaskTimes, TimesOfTasks

LIMIT = 1 << 24
"""The integers in blocks and parts that are kept; beyond it all are forgotten, and made again if needed."""


class BlockCache:
    """Tasks, holdings and blocks for one graph on one machine. Equal ones are one object."""

    def __init__(
        self,
        graph: Graph,
        machine: Machine,
        workers: int,
        times: TaskTimes | None = None,
    ) -> None:
        self.structures = structures(graph)
        """The structures of the graph."""
        self._graph = graph
        self._workers = workers
        self._times = TimesOfTasks(graph, machine, workers, times)
        self.messages = MessageTimes(machine, workers, self._times.profiled)
        self._kind_of = _first_alike(self.messages.ways.kinds)
        self._parts = PartCache()
        self._cuts: dict[tuple[object, ...], CutOperation] = {}
        self._spent: dict[tuple[CutOperation, tuple[int, ...]], tuple[list[int], Sequence[Source]]] = {}
        self._tasks: dict[tuple[CutOperation, tuple[int, ...]], TaskSet] = {}
        self._given: dict[tuple[object, ...], PartSet] = {}
        self._tasks_read: dict[tuple[Like, int], tuple[Sequence[Task], TaskSet]] = {}
        """Tuples of tasks, by their identities, and what they stand for."""
        self._given_read: dict[tuple[object, ...], tuple[object, object, Holdings]] = {}
        """Tuples of holdings and stops, by their identities, and what they stand for."""
        self._holdings: dict[tuple[PartSet, PartSet | None], Holdings] = {}
        self._blocks: dict[tuple[object, ...], OperationBlock] = {}
        self._size = 0

    def tasks(self, structure: Structure, listed: Iterable[tuple[int, Sequence[Task]]]) -> dict[int, TaskSet]:
        """Return the tasks of operations. Raises PlanError unless they tile the iteration spaces.

        Operations that are like each other often share one list, which is read once, and tuples once for all.
        """
        read: dict[tuple[Like, int], tuple[Sequence[Task], TaskSet]] = {}
        found = {}
        for number, tasks in listed:
            key = structure.likes[number], id(tasks)
            known = self._tasks_read.get(key) or read.get(key)
            if known is None:
                known = tasks, self._task_set(self._graph.operations[number], key[0], tasks)
                (self._tasks_read if isinstance(tasks, tuple) else read)[key] = known
            found[number] = known[1]
        return found

    def _task_set(self, operation: Operation, like: Like, tasks: Sequence[Task]) -> TaskSet:
        try:
            boxes = self._cut(operation, like, tasks)
            workers = tuple([task.worker for task in tasks])
            found = self._tasks.get((boxes, workers))
            if found is None:
                check_workers(workers, self._workers)
                spent, sources = self._nanoseconds(operation, boxes, workers)
                found = self._tasks[boxes, workers] = task_set(boxes, workers, spent, sources, self._parts)
        except PlanError as error:
            raise PlanError(f"operation {operation.name!r}: {error}") from error
        return found

    def _cut(self, operation: Operation, like: Like, tasks: Sequence[Task]) -> CutOperation:
        key = like, *[(task.box, task.term, task.read) for task in tasks]
        found = self._cuts.get(key)
        if found is None:
            found = self._cuts[key] = cut(operation, tasks, self._parts)
        return found

    def _nanoseconds(
        self, operation: Operation, boxes: CutOperation, workers: tuple[int, ...]
    ) -> tuple[list[int], Sequence[Source]]:
        """Return the times of tasks, which are equal on devices of one kind, and where they come from."""
        same_kind = tuple([self._kind_of[worker] for worker in workers])
        found = self._spent.get((boxes, same_kind))
        if found is None:
            elements = [np.asarray(each.elements) for each in (*boxes.needed, *boxes.made)]
            found = self._times.of(operation, same_kind, boxes.boxes, elements)
            self._spent[boxes, same_kind] = found
        return found

    def given(
        self, structure: Structure, listed: Iterable[tuple[int, Sequence[Holding], Sequence[Holding] | None]]
    ) -> dict[int, Holdings]:
        """Return holdings of versions, and where they stop. Raises PlanError unless both tile the versions.

        Versions of one shape often share one list, which is read once, and tuples once for all.
        """
        read: dict[tuple[object, ...], tuple[object, object, Holdings]] = {}
        found = {}
        for version, holdings, stop in listed:
            of = self._graph.tensors[structure.versions.tensors[version]]
            key = of.shape, id(holdings), id(stop)
            known = self._given_read.get(key) or read.get(key)
            if known is None:
                home = self._held(of, holdings)
                both = self._joined(home, None if stop is None else self._held(of, stop))
                lasting = isinstance(holdings, tuple) and (stop is None or isinstance(stop, tuple))
                (self._given_read if lasting else read)[key] = known = holdings, stop, both
            found[version] = known[2]
        return found

    def made_by(self, tasks: TaskSet, output: int) -> Holdings:
        """Return the holdings of an output that is held by the workers that make it."""
        return self._joined(distinct(tasks.made[output], self._parts), None)

    def block(
        self, operation: Operation, like: Like, tasks: TaskSet, held: Sequence[Holdings]
    ) -> OperationBlock:
        """Return the block of an operation; `held` are the holdings of the versions that it touches.

        Raises PlanError if no one holds what a task needs.
        """
        key = like, tasks, *held
        found = self._blocks.get(key)
        if found is None:
            if self._size + self._parts.size > LIMIT:
                self._forget()
            try:
                found = build(like.touched, tasks, held, self.messages)
            except PlanError as error:
                raise PlanError(f"operation {operation.name!r}: {error}") from error
            self._blocks[key] = found
            self._size += len(found.words) + len(found.notes)
        return found

    def _forget(self) -> None:
        for cache in (
            self._parts, self._cuts, self._spent, self._tasks, self._given, self._holdings,
            self._blocks, self._tasks_read, self._given_read,
        ):  # fmt: skip
            cache.clear()
        self.messages.forget()
        self._size = 0

    def _held(self, of: Tensor, holdings: Sequence[Holding]) -> PartSet:
        key = of.shape, *[(each.worker, each.region, each.term) for each in holdings]
        found = self._given.get(key)
        if found is None:
            try:
                found = held_parts(of.shape, holdings, self._workers, self._parts)
            except PlanError as error:
                raise PlanError(f"tensor {of.name!r}: {error}") from error
            self._given[key] = found
        return found

    def _joined(self, home: PartSet, stop: PartSet | None) -> Holdings:
        found = self._holdings.get((home, stop))
        if found is None:
            found = self._holdings[home, stop] = Holdings(home, stop)
        return found


def _first_alike(kinds: Sequence[DeviceKind]) -> list[int]:
    """Return, for each worker, the first one whose device is of the same kind."""
    first: dict[DeviceKind, int] = {}
    return [first.setdefault(kind, worker) for worker, kind in enumerate(kinds)]
