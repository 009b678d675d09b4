"""Transfers between parts with their ways and times, found once for each pair of sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Region
from ..errors import PlanError
from ..machines.machine import Machine
from ..programs.cover import cover
from ..programs.program import region_text
from ..support.compiled import Numbers, compiled, filled, numbers, plain, zeros
from .part_sets import Lists, PartSet, lists_of, read_parts
from .times import NANOSECONDS, SOURCES, ProfiledTimes, in_proportion
from .ways import Ways

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class ElementKind:
    """The elements of a tensor. Compared by identity."""

    dtype: str
    """The name of the type."""

    nbytes: int
    """The bytes of one element."""

    reducer: str
    """The name of what combines the tensor's terms."""


Transfers = Numbers
"""How parts are read, part by part, and the time that it takes. Parts have numbers."""

# The places of a transfer's integers. `READERS` is a number, the others lead to lists.
READERS, AXES = 0, 1
"""The number of parts that are read, and how many bounds each has."""
KEPT, WORKER, FIRST_TERM = 2, 3, 4
"""For each part the number of the reader's own holding that has all of it, or -1; the reader; and the first
term that it reads.
"""
BEGIN, FINISH, TIME_SOURCE, TOUCHED = 5, 6, 7, 8
"""For each part the time before its messages, and after them; the source of these; and the bytes that are
touched besides messages.
"""
FIRSTS, TIME, WAY, SENDER, NBYTES = 9, 10, 11, 12, 13
"""Where the messages of each part begin, and for each message its time, its way, its sender and its bytes."""
PIECE_FIRSTS, PIECES, BOUNDS = 14, 15, 16
"""Where the entries of each part begin in the next list, the parts that are read, and all bounds."""
HEADS = 17

ESTIMATED = SOURCES.index("estimated")


@compiled
def entry(memory: Numbers, transfers: int, head: int, number: int) -> int:
    """Return an entry of one of the lists of transfers that begin at a place of `memory`."""
    return int(memory[transfers + memory[transfers + head] + number])


@compiled
def _transfers(
    needed: Lists, held: Lists, how: tuple[int, bool, int], nbytes: int, ways: Numbers, speeds: Lists
) -> tuple[int, int, Transfers]:
    """Return -1, 0 and transfers, as `read_parts` says who reads what from whom.

    The first number is a reader that lacks something, if there is one. The second one is the number of pairs
    of workers between which no way is known. If there are any, they are returned instead of transfers.
    """
    readers, bounds = needed[0], needed[1]
    count, most = len(readers), len(readers) * len(held[0])
    kept, own, firsts, piece_firsts = zeros(count), zeros(count), zeros(count + 1), zeros(count + 1)
    senders, elements, pieces = zeros(most), zeros(most), zeros(most)
    found = kept, own, firsts, senders, elements, piece_firsts, pieces
    lacking = read_parts(needed, held, how, found)
    if lacking != _NONE:
        return lacking, 0, kept
    terms, _, workers = how
    pairs, unknown = zeros(firsts[count]), 0
    for reader in range(count):
        for message in range(firsts[reader], firsts[reader + 1]):
            pair = senders[message] * workers + readers[reader]
            if ways[pair] == _NONE:
                pairs[unknown] = pair
                unknown += 1
    if unknown:
        return _NONE, unknown, pairs
    starts, per_own_byte, latency, per_byte = speeds
    messages, used = firsts[count], piece_firsts[count]
    axes = len(bounds) // max(count, 1)
    words = zeros(HEADS + 9 * count + 2 + 4 * messages + used + len(bounds))
    words[READERS], words[AXES] = count, axes
    end = HEADS
    for head in range(KEPT, HEADS):
        words[head] = end
        if head in (FIRSTS, PIECE_FIRSTS):
            end += count + 1
        elif TIME <= head <= NBYTES:
            end += messages
        elif head == PIECES:
            end += used
        else:
            end += count
    for reader in range(count):
        worker, at = readers[reader], reader * axes
        whole = 1
        for axis in range(at, at + axes, 2):
            whole *= max(bounds[axis + 1] - bounds[axis], 0)
        touched = ((terms + 1) * whole if terms > 1 else 2 * own[reader]) * nbytes
        words[words[KEPT] + reader] = kept[reader]
        words[words[WORKER] + reader] = worker
        words[words[FIRST_TERM] + reader] = needed[2][reader]
        words[words[BEGIN] + reader] = starts[worker]
        words[words[FINISH] + reader] = round(touched * per_own_byte[worker])
        words[words[TIME_SOURCE] + reader] = ESTIMATED
        words[words[TOUCHED] + reader] = touched
        for message in range(firsts[reader], firsts[reader + 1]):
            pair = senders[message] * workers + worker
            size = elements[message] * nbytes
            words[words[TIME] + message] = round(latency[pair] + size * per_byte[pair])
            words[words[WAY] + message] = ways[pair]
            words[words[SENDER] + message] = senders[message]
            words[words[NBYTES] + message] = size
    for reader in range(count + 1):
        words[words[FIRSTS] + reader] = firsts[reader]
        words[words[PIECE_FIRSTS] + reader] = piece_firsts[reader]
    for piece in range(used):
        words[words[PIECES] + piece] = pieces[piece]
    for place in range(len(bounds)):
        words[words[BOUNDS] + place] = bounds[place]
    return _NONE, 0, words


@compiled
def _matches(made: Lists, home: Lists) -> Numbers:
    """Return for each part that is made the number of the part at home that it is, or -1; each is one."""
    workers, bounds, term, _, _ = made
    holders, held_bounds, held_term, _, _ = home
    axes = len(bounds) // max(len(workers), 1)
    found, taken = zeros(len(workers)), zeros(len(holders))
    for part in range(len(workers)):
        found[part] = _NONE
        for number in range(len(holders)):
            same = taken[number] == 0 and holders[number] == workers[part] and held_term[number] == term[part]
            for axis in range(axes):
                same = same and held_bounds[number * axes + axis] == bounds[part * axes + axis]
            if same:
                found[part] = number
                taken[number] = 1
                break
    return found


class MessageTimes:
    """Transfers on a machine: over its links, or as its profile says."""

    def __init__(self, machine: Machine, workers: int, profiled: ProfiledTimes | None) -> None:
        self._workers = workers
        self._profiled = profiled
        self.ways = Ways(machine, workers, None if profiled is None else profiled.wake_nanoseconds)
        self.computing = numbers(self.ways.computing.tolist())
        """The way of each worker's computations; -1 if it has a device of its own."""
        self.runners = numbers(self.ways.runners.ravel().tolist())
        """The lanes that run each worker's instructions, worker by worker."""
        kinds = self.ways.kinds
        starts = [round(kind.start_seconds * NANOSECONDS) for kind in kinds]
        per_byte = np.array([NANOSECONDS / kind.bytes_per_second for kind in kinds])
        self._numbers = filled(workers * workers, _NONE)
        """The way from each worker to each other one; -1 if it is not known yet."""
        self._speeds = numbers(starts), per_byte, np.zeros(workers * workers), np.zeros(workers * workers)
        """How long each worker takes to start, and for a byte of its own; and for each way that is known the
        time of a message without bytes, and of each byte.
        """
        self._known: dict[tuple[PartSet, PartSet, ElementKind, bool], Transfers] = {}
        self._matching: dict[tuple[PartSet, PartSet], tuple[Numbers, bool]] = {}

    def fetched(self, needed: PartSet, held: PartSet, element: ElementKind) -> Transfers:
        """Return how the parts that tasks need are read. Raises PlanError if no one holds some of it."""
        key = needed, held, element, True
        found = self._known.get(key)
        if found is None:
            term = needed.pieces.term if held.pieces.terms > 1 else zeros(len(needed.workers))
            found = self._known[key] = self._timed(needed, term, held, element, 1, True)
        return found

    def collected(self, made: PartSet, wanted: PartSet, element: ElementKind) -> Transfers:
        """Return how wanted parts are read from those that are made.

        Raises PlanError as `fetched`, and if terms cannot be summed to those that are wanted.
        """
        key = made, wanted, element, False
        found = self._known.get(key)
        if found is None:
            terms, fewer = made.pieces.terms, wanted.pieces.terms
            if terms % fewer:
                raise PlanError(f"{terms} terms cannot be summed to {fewer}; make a multiple of these")
            each, term = terms // fewer, wanted.pieces.term
            first = term if each == 1 else numbers([number * each for number in plain(term)])
            found = self._known[key] = self._timed(wanted, first, made, element, each, False)
        return found

    def matching(self, made: PartSet, home: PartSet) -> tuple[Numbers, bool]:
        """Return which part at home each one that is made is, or -1, and whether no others are at home."""
        found = self._matching.get((made, home))
        if found is None:
            same = _matches(lists_of(made, made.pieces.term), lists_of(home, home.pieces.term))
            every = len(home.workers) == sum(number != _NONE for number in plain(same))
            found = self._matching[made, home] = same, every
        return found

    def forget(self) -> None:
        """Forget all transfers, so that they need no memory."""
        self._known.clear()
        self._matching.clear()

    def _timed(
        self, readers: PartSet, first: Numbers, held: PartSet, element: ElementKind, terms: int, keep: bool
    ) -> Transfers:
        """Return transfers in which `terms` terms are read for each part, from its `first` one on."""
        needed, given = lists_of(readers, first), lists_of(held, held.pieces.term)
        how = terms, keep, self._workers
        unknown = 1
        while unknown:
            lacking, unknown, found = _transfers(
                needed, given, how, element.nbytes, self._numbers, self._speeds
            )
            if lacking != _NONE:
                raise PlanError(
                    f"worker {readers.workers[lacking]} needs {region_text(readers.pieces.region(lacking))}, "
                    f"but no worker holds some of it; hold all that is read"
                )
            for pair in dict.fromkeys(plain(found[:unknown])):
                self._add_way(pair)
        if self._profiled is not None:
            for reader in range(len(readers.workers)):
                if found[found[KEPT] + reader] == _NONE:
                    self._measure(found, readers, held, element, reader, terms)
        return found

    def _add_way(self, pair: int) -> None:
        _, _, latency, per_byte = self._speeds
        number = self._numbers[pair] = self.ways.number(*divmod(pair, self._workers))
        latency[pair], per_byte[pair] = self.ways.speed(number)

    def _measure(
        self, found: Transfers, readers: PartSet, held: PartSet, element: ElementKind, reader: int, terms: int
    ) -> None:
        """Use the times of the profile for one transfer, if it has times of its kind."""
        assert self._profiled is not None
        worker, first = readers.workers[reader], found[found[FIRST_TERM] + reader]
        verb = f"reduce by {element.reducer}" if terms > 1 else "fetch"
        sizes: list[int] = []
        for number, region in self._pieces(range(first, first + terms), readers, held, reader):
            lengths = [upper - lower for lower, upper in region]
            sizes += (int(held.workers[number] != worker), *lengths)
        begin, end = plain(found[found[FIRSTS] + reader : found[FIRSTS] + reader + 2])
        nbytes = plain(found[found[NBYTES] + begin : found[NBYTES] + end])
        pieces = len(sizes) // (1 + readers.pieces.axes)
        amounts = pieces, int(found[found[TOUCHED] + reader]), sum(nbytes)
        given, source = self._profiled.transfer(f"{verb} {element.dtype}", tuple(sizes), amounts)
        found[found[TIME_SOURCE] + reader] = SOURCES.index(source)
        if given:
            messages = range(found[TIME] + begin, found[TIME] + end)
            places = [found[BEGIN] + reader, *messages, found[FINISH] + reader]
            jobs = [int(found[place]) for place in places]
            for place, nanoseconds in zip(places, in_proportion(jobs, given), strict=True):
                found[place] = nanoseconds

    def _pieces(self, terms: range, readers: PartSet, held: PartSet, reader: int) -> list[tuple[int, Region]]:
        """Return the pieces of a part as programs have them: the number of the part read, and the region."""
        term = plain(held.pieces.term)
        found: list[tuple[int, Region]] = []
        for summed in terms:
            holders = {
                number: (worker, held.pieces.region(number))
                for number, worker in enumerate(held.workers)
                if term[number] == summed
            }
            region, worker = readers.pieces.region(reader), readers.workers[reader]
            found += cover(region, holders, worker, self._workers) or ()
        return found
