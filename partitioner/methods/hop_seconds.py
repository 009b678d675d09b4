"""The time in which transfers between regions of a tensor occupy the busiest lane of a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf

from ...errors import PlanError
from ...machines.machine import Machine
from ...programs.cover import Parts as Pieces
from ...programs.cover import elements
from ..costs.movement import Movements, WorkerRegions

Groups = tuple[int, ...]
"""The number of each worker's group."""


class Hops:
    """The times of hops on a machine, each found once."""

    def __init__(self, machine: Machine, movements: Movements, workers: int) -> None:
        self._machine = machine
        self._movements = movements
        self._devices = machine.devices_of(workers)
        self._known: dict[tuple[WorkerRegions, WorkerRegions, int, bool], float] = {}

    @cached_property
    def levels(self) -> list[Groups]:
        """The groups of workers at each level that has several of them, of several workers."""
        found = dict.fromkeys(tuple([of[device] for device in self._devices]) for of in self._machine.groups)
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
            lanes: dict[str, float] = {}
            try:
                for reader, count, terms in self._read(source, target, made):
                    self._occupy(lanes, source, reader, count * itemsize, terms, itemsize)
                found = max(lanes.values(), default=0.0)
            except PlanError:
                found = inf
            self._known[key] = found
        return found

    def _read(
        self, source: WorkerRegions, target: WorkerRegions, made: bool
    ) -> Iterator[tuple[int, int, list[Pieces]]]:
        """Yield every reader that lacks something, its elements and the parts that it reads of each term."""
        if not made:
            for number, fetch in enumerate(self._movements.fetches(target, source)):
                if not isinstance(fetch, int):
                    yield target.workers[number], target.elements[number], [fetch.parts]
            return
        kept = set(self._movements.kept(source, target))
        for number, assemblies in enumerate(self._movements.collections(source, target)):
            if number not in kept:
                yield target.workers[number], target.elements[number], [each.parts for each in assemblies]

    def _occupy(
        self,
        lanes: dict[str, float],
        source: WorkerRegions,
        reader: int,
        nbytes: int,
        terms: Sequence[Pieces],
        itemsize: int,
    ) -> None:
        """Add the time in which a transfer occupies lanes."""
        sent: Counter[int] = Counter()
        for parts in terms:
            for number, region in parts:
                sent[source.workers[number]] += elements(region) * itemsize
        own, device = sent.pop(reader, 0), self._devices[reader]
        kind = self._machine.kind(device)
        touched = (len(terms) + 1) * nbytes if len(terms) > 1 else 2 * own
        own_lane = f"worker {reader}"
        lanes[own_lane] = lanes.get(own_lane, 0.0) + kind.start_seconds + touched / kind.bytes_per_second
        for sender, moved in sent.items():
            if self._devices[sender] != device:
                path = self._machine.path(self._devices[sender], device)
                for lane in path.lanes:
                    lanes[lane] = lanes.get(lane, 0.0) + path.seconds(moved)
