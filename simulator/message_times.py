"""Transfers between parts with their ways and times, found once for each pair of sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Region
from ..machines.machine import Machine
from ..programs.cover import cover
from ..support.compiled import plain
from .part_sets import PartSet, Readings, collected, fetched
from .times import NANOSECONDS, ProfiledTimes, Source, in_proportion
from .ways import Ways


@dataclass(frozen=True, slots=True, eq=False)
class ElementKind:
    """The elements of a tensor. Compared by identity."""

    dtype: str
    """The name of the type."""

    nbytes: int
    """The bytes of one element."""

    reducer: str
    """The name of what combines the tensor's terms."""


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """How parts are read, part by part, and the time that it takes. A part that its reader has takes none."""

    readings: Readings
    """From whom each reader reads how much."""

    begins: list[int]
    """The time before the messages of each part."""

    times: list[int]
    """The time of each message."""

    ways: list[int]
    """The way of each message."""

    nbytes: list[int]
    """The bytes of each message."""

    finishes: list[int]
    """The time after the messages of each part."""

    sources: list[Source]
    """Where the times of each part come from."""


class MessageTimes:
    """Transfers on a machine: over its links, or as its profile says."""

    def __init__(self, machine: Machine, workers: int, profiled: ProfiledTimes | None) -> None:
        self._workers = workers
        self._profiled = profiled
        self.ways = Ways(machine, workers, None if profiled is None else profiled.wake_nanoseconds)
        self.computing: list[int] = self.ways.computing.tolist()
        """The way of each worker's computations; -1 if it has a device of its own."""
        self.runners: list[list[int]] = self.ways.runners.tolist()
        """The lanes that run each worker's computations, and its transfers."""
        self._starts = np.rint([k.start_seconds * NANOSECONDS for k in self.ways.kinds]).astype(np.int64)
        self._per_byte = np.array([NANOSECONDS / kind.bytes_per_second for kind in self.ways.kinds])
        self._known: dict[tuple[PartSet, PartSet, ElementKind, bool], Transfers] = {}

    def fetched(self, needed: PartSet, held: PartSet, element: ElementKind) -> Transfers:
        """Return how the parts that tasks need are read. Raises PlanError if no one holds some of it."""
        key = needed, held, element, True
        found = self._known.get(key)
        if found is None:
            read = fetched(needed, held, self._workers)
            found = self._known[key] = self._timed(read, needed, held, element)
        return found

    def collected(self, made: PartSet, wanted: PartSet, element: ElementKind) -> Transfers:
        """Return how wanted parts are read from those that are made. Raises PlanError as `fetched`."""
        key = made, wanted, element, False
        found = self._known.get(key)
        if found is None:
            read = collected(made, wanted, self._workers)
            found = self._known[key] = self._timed(read, wanted, made, element)
        return found

    def forget(self) -> None:
        """Forget all transfers, so that they need no memory."""
        self._known.clear()

    def _timed(self, readings: Readings, readers: PartSet, held: PartSet, element: ElementKind) -> Transfers:
        workers = np.array(readers.workers, np.int64)
        counts = np.diff(readings.firsts)
        of_message = np.repeat(workers, counts).tolist()
        ways = [self.ways.number(*pair) for pair in zip(readings.sources, of_message, strict=True)]
        nbytes = np.array(readings.elements, np.int64) * element.nbytes
        if readings.terms > 1:
            touched = (readings.terms + 1) * np.array(readers.pieces.elements, np.int64)
        else:
            touched = 2 * np.array(readings.own, np.int64)
        touched *= element.nbytes
        found = Transfers(
            readings,
            self._starts[workers].tolist(),
            self.ways.nanoseconds(np.array(ways, np.int64), nbytes).tolist(),
            ways,
            nbytes.tolist(),
            np.rint(touched * self._per_byte[workers]).astype(np.int64).tolist(),
            ["estimated"] * len(workers),
        )
        if self._profiled is not None:
            for reader in range(len(workers)):
                if readings.kept[reader] < 0:
                    self._measure(found, readers, held, element, reader, int(touched[reader]))
        return found

    def _measure(
        self,
        found: Transfers,
        readers: PartSet,
        held: PartSet,
        element: ElementKind,
        reader: int,
        touched: int,
    ) -> None:
        """Use the times of the profile for one transfer, if it has times of its kind."""
        assert self._profiled is not None
        readings, worker = found.readings, readers.workers[reader]
        verb = f"reduce by {element.reducer}" if readings.terms > 1 else "fetch"
        sizes: list[int] = []
        for number, region in self._pieces(readings, readers, held, reader):
            lengths = [upper - lower for lower, upper in region]
            sizes += (int(held.workers[number] != worker), *lengths)
        begin, end = readings.firsts[reader], readings.firsts[reader + 1]
        pieces = len(sizes) // (1 + len(readers.pieces.regions[reader]))
        amounts = pieces, touched, sum(found.nbytes[begin:end])
        given, source = self._profiled.transfer(f"{verb} {element.dtype}", tuple(sizes), amounts)
        found.sources[reader] = source
        if given:
            jobs = [found.begins[reader], *found.times[begin:end], found.finishes[reader]]
            found.begins[reader], *found.times[begin:end], found.finishes[reader] = in_proportion(jobs, given)

    def _pieces(
        self, readings: Readings, readers: PartSet, held: PartSet, reader: int
    ) -> list[tuple[int, Region]]:
        """Return the pieces of a part as programs have them: the number of the part read, and the region."""
        term = plain(held.pieces.term)
        first = readings.first_terms[reader]
        found: list[tuple[int, Region]] = []
        for summed in range(first, first + readings.terms):
            holders = [
                (worker, region) if of == summed else None
                for worker, region, of in zip(held.workers, held.pieces.regions, term, strict=True)
            ]
            region, worker = readers.pieces.regions[reader], readers.workers[reader]
            found += cover(region, holders, worker, self._workers) or ()
        return found
