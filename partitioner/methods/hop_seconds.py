"""The time in which transfers between regions of a tensor occupy the busiest lane of a machine."""

from __future__ import annotations

from functools import cached_property
from itertools import zip_longest
from math import inf

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...machines.machine import Machine
from ...simulator.message_times import (
    BEGIN,
    FINISH,
    FIRSTS,
    KEPT,
    READERS,
    TIME,
    WAY,
    WORKER,
    ElementKind,
    MessageTimes,
)
from ...simulator.part_cache import PartCache
from ...simulator.part_sets import PartSet
from ...simulator.times import NANOSECONDS
from ..costs.movement import WorkerRegions

Groups = tuple[int, ...]
"""The number of each worker's group."""

_NONE = -1


class Hops:
    """The times of hops on a machine, each found once."""

    def __init__(self, machine: Machine, workers: int) -> None:
        self._machine = machine
        self._workers = workers
        self._messages = MessageTimes(machine, workers, None)
        self._parts = PartCache()
        self._sets: dict[WorkerRegions, PartSet] = {}
        self._elements: dict[int, ElementKind] = {}
        self._lanes = np.zeros((0, 0), np.int64)
        """The lanes of the ways that are known, as `_lanes_of_ways` returns them."""
        self._known: dict[tuple[WorkerRegions, WorkerRegions, int, bool], float] = {}

    @cached_property
    def levels(self) -> list[Groups]:
        """The groups of workers at each level that has several of them, of several workers."""
        devices = self._machine.devices_of(self._workers)
        found = dict.fromkeys(tuple([of[device] for device in devices]) for of in self._machine.groups)
        return [groups for groups in found if 1 < len(set(groups)) < len(groups)]

    def seconds(
        self, source: WorkerRegions, target: WorkerRegions, itemsize: int, made: bool = False
    ) -> float:
        """Return the time in which the busiest lane is occupied; infinity if the source lacks something.

        `made` says that targets are collected from what tasks make, instead of fetched from a version.
        """
        key = source, target, itemsize, made
        found = self._known.get(key)
        if found is None:
            try:
                found = self._found(source, target, itemsize, made)
            except PlanError:
                found = inf
            self._known[key] = found
            self._messages.forget()
        return found

    def _found(self, source: WorkerRegions, target: WorkerRegions, itemsize: int, made: bool) -> float:
        element = self._elements.setdefault(itemsize, ElementKind("", itemsize, ""))
        parts, wanted = self._set_of(source), self._set_of(target)
        there = np.zeros(len(target.workers), np.bool_)
        if not made:
            transfers = self._messages.fetched(wanted, parts, element)
        else:
            transfers = self._messages.collected(parts, wanted, element)
            if source.terms == target.terms:
                same = np.asarray(self._messages.matching(parts, wanted)[0])
                there[same[same != _NONE]] = True
        return self._busiest(np.asarray(transfers), there) / NANOSECONDS

    def _busiest(self, transfers: npt.NDArray[np.int64], there: npt.NDArray[np.bool_]) -> int:
        """Return the nanoseconds in which the busiest lane is occupied, of readers or of messages.

        `there` marks the readers whose parts are made where they are wanted.
        """

        def listed(head: int, count: int) -> npt.NDArray[np.int64]:
            return transfers[transfers[head] : transfers[head] + count]

        readers = int(transfers[READERS])
        reading = (listed(KEPT, readers) == _NONE) & ~there
        spent = (listed(BEGIN, readers) + listed(FINISH, readers)) * reading
        firsts = listed(FIRSTS, readers + 1)
        times = listed(TIME, firsts[-1]) * reading.repeat(np.diff(firsts))
        lanes = self._lanes_of_ways()[listed(WAY, firsts[-1])]
        own = np.bincount(listed(WORKER, readers), spent)
        occupied = np.bincount(lanes.ravel(), times.repeat(lanes.shape[1]))[1:]
        return int(max(own.max(initial=0), occupied.max(initial=0)))

    def _lanes_of_ways(self) -> npt.NDArray[np.int64]:
        """Return the number of each lane of each way plus 1, and 0 for ways with fewer lanes."""
        ways = self._messages.ways.lanes
        if len(self._lanes) < len(ways):
            of_lanes = zip_longest(*ways, fillvalue=_NONE)
            self._lanes = np.array(list(of_lanes), np.int64).reshape(-1, len(ways)).T + 1
        return self._lanes

    def _set_of(self, regions: WorkerRegions) -> PartSet:
        """Return regions as the simulator has them."""
        found = self._sets.get(regions)
        if found is None:
            boxes = np.array(regions.regions, np.int64).reshape(len(regions.workers), -1, 2)
            pieces = self._parts.pieces(boxes, regions.term, regions.terms)
            found = self._sets[regions] = self._parts.parts(regions.workers, pieces)
        return found
