"""The time in which transfers between regions of a tensor occupy the busiest lane of a machine."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from math import inf

import numpy as np

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
    Transfers,
    entry,
)
from ...simulator.part_cache import PartCache
from ...simulator.part_sets import PartSet
from ...simulator.times import NANOSECONDS
from ...support.compiled import Numbers, compiled, numbers, plain, zeros
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
        self._ends, self._lanes = zeros(1), zeros(0)
        """Where the lanes of each way end in the other list, after a zero, and the lanes of all ways."""
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
        there = zeros(len(target.workers))
        if not made:
            transfers = self._messages.fetched(wanted, parts, element)
        else:
            transfers = self._messages.collected(parts, wanted, element)
            same = self._messages.matching(parts, wanted)[0] if source.terms == target.terms else ()
            for number in plain(same) if len(same) else ():
                if number != _NONE:
                    there[number] = 1
        ways = self._messages.ways
        if len(self._ends) <= len(ways.lanes):
            self._ends = numbers(accumulate(map(len, ways.lanes), initial=0))
            self._lanes = numbers(lane for listed in ways.lanes for lane in listed)
        own, occupied = zeros(self._workers), zeros(len(ways.lane_names) + 1)
        return int(_busiest(transfers, there, self._ends, self._lanes, own, occupied)) / NANOSECONDS

    def _set_of(self, regions: WorkerRegions) -> PartSet:
        """Return regions as the simulator has them."""
        found = self._sets.get(regions)
        if found is None:
            boxes = np.array(regions.regions, np.int64).reshape(len(regions.workers), -1, 2)
            pieces = self._parts.pieces(boxes, regions.term, regions.terms)
            found = self._sets[regions] = self._parts.parts(regions.workers, pieces)
        return found


@compiled
def _busiest(
    transfers: Transfers, there: Numbers, ends: Numbers, lanes: Numbers, own: Numbers, occupied: Numbers
) -> int:
    """Return the nanoseconds in which the busiest lane is occupied, of readers or of messages.

    `there` marks the readers whose parts are made where they are wanted. The lanes of a way end before its
    place in `ends`. `own` and `occupied` are zero, for each worker and each lane.
    """
    for reader in range(transfers[READERS]):
        if there[reader] or entry(transfers, 0, KEPT, reader) != _NONE:
            continue
        time = entry(transfers, 0, BEGIN, reader) + entry(transfers, 0, FINISH, reader)
        own[entry(transfers, 0, WORKER, reader)] += time
        first, last = entry(transfers, 0, FIRSTS, reader), entry(transfers, 0, FIRSTS, reader + 1)
        for message in range(first, last):
            way = entry(transfers, 0, WAY, message)
            for place in range(ends[way], ends[way + 1]):
                occupied[lanes[place]] += entry(transfers, 0, TIME, message)
    found = 0
    for each in own:
        found = max(found, each)
    for each in occupied:
        found = max(found, each)
    return int(found)
