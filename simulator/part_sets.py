"""Parts of a tensor on workers, and from whom each worker reads how much.

    fetched(needed, held)      for each part that a task needs: its worker's holding that has all of it, or
                               how much of which other holdings it reads
    collected(made, wanted)    for each part that is wanted: how much of which parts of every term it reads

Both say what `programs.cover` says in pieces: a reader takes from itself what it can, looks for the
rest from its own number upwards, and of several equal holdings takes one that its number chooses.

Assumes: parts of one term are equal or disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..analyzer.indices.region import Boxes, Region, to_regions, volume
from ..errors import PlanError
from ..programs.program import region_text
from ..support.compiled import COMPILED, Numbers, compiled, numbers, plain, zeros

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Regions of one tensor, whoever has them. Compared by identity."""

    regions: tuple[Region, ...]
    """The regions."""

    bounds: Numbers
    """The bounds of all regions, one after the other."""

    term: Numbers
    """The number of each region's term."""

    terms: int
    """The number of terms; 1 if the tensor is reduced."""

    elements: tuple[int, ...]
    """The number of elements of each region."""

    groups: Numbers
    """Where each group of equal regions of a term begins in `members`, and the end of the last one."""

    members: Numbers
    """The numbers of all regions, group by group."""


def pieces(boxes: Boxes, term: Sequence[int], terms: int) -> Pieces:
    """Return regions, grouped."""
    regions = to_regions(boxes)
    equal: dict[tuple[int, Region], list[int]] = {}
    for number, key in enumerate(zip(term, regions, strict=True)):
        equal.setdefault(key, []).append(number)
    ends = [0]
    for members in equal.values():
        ends.append(ends[-1] + len(members))
    return Pieces(
        tuple(regions),
        boxes.flatten() if COMPILED else boxes.ravel().tolist(),
        numbers(term),
        terms,
        tuple(volume(boxes).tolist()),
        numbers(ends),
        numbers([number for members in equal.values() for number in members]),
    )


def check_tiles(found: Pieces, whole: Region) -> None:
    """Raise PlanError unless the distinct regions of every term are disjoint and make up all of `whole`."""
    full = numbers([bound for interval in whole for bound in interval])
    one, other = _fault(found.bounds, found.term, found.groups, found.members, full)
    if one != _NONE:
        text = region_text(found.regions[one])
        if other == _NONE:
            raise PlanError(f"the part {text} lies outside {region_text(whole)}")
        raise PlanError(
            f"the parts {text} and {region_text(found.regions[other])} overlap; parts are equal or disjoint"
        )
    covered = [0] * found.terms
    for group in plain(found.groups)[:-1]:
        covered[found.term[found.members[group]]] += found.elements[found.members[group]]
    size = prod([upper - lower for lower, upper in whole])
    for term, count in enumerate(covered):
        if count != size:
            place = f"term {term}: " if found.terms > 1 else ""
            raise PlanError(
                f"{place}the parts cover {count} of the {size} elements of {region_text(whole)}; add "
                f"the others"
            )


@compiled
def _fault(
    bounds: Numbers, term: Numbers, groups: Numbers, members: Numbers, full: Numbers
) -> tuple[int, int]:
    """Return a region that lies outside and -1, two regions of a term that overlap, or -1 twice."""
    axes = len(full)
    for group in range(len(groups) - 1):
        one = members[groups[group]]
        for axis in range(0, axes, 2):
            if bounds[one * axes + axis] < full[axis] or bounds[one * axes + axis + 1] > full[axis + 1]:
                return one, _NONE
        for earlier in range(group):
            other = members[groups[earlier]]
            common = term[one] == term[other]
            for axis in range(0, axes, 2):
                lower = max(bounds[one * axes + axis], bounds[other * axes + axis])
                upper = min(bounds[one * axes + axis + 1], bounds[other * axes + axis + 1])
                common = common and lower < upper
            if common:
                return other, one
    return _NONE, _NONE


@dataclass(frozen=True, slots=True, eq=False)
class PartSet:
    """Parts of one tensor on workers. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each part."""

    numbered: Numbers
    """The workers as loops read them."""

    pieces: Pieces
    """The regions of the parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """How parts are read, part by part."""

    kept: list[int]
    """The number of the reader's holding that has all of a part; -1 if it is read from several."""

    own: list[int]
    """The elements that each reader has itself."""

    firsts: list[int]
    """Where the entries of each reader begin in `sources`, and the end of the last one's."""

    sources: list[int]
    """The other workers that readers read from."""

    elements: list[int]
    """The elements that they read from each."""

    piece_firsts: list[int]
    """Where the entries of each reader begin in `pieces`, and the end of the last one's."""

    pieces: list[int]
    """The numbers of the parts that readers read."""

    first_terms: list[int]
    """The first term that each reader reads."""

    terms: int
    """The number of terms that are summed to each part; 1 if none are."""


def fetched(needed: PartSet, held: PartSet, workers: int) -> Readings:
    """Return how the parts that tasks need are read. Raises PlanError if no one holds some of it."""
    term = needed.pieces.term if held.pieces.terms > 1 else zeros(len(needed.workers))
    return _readings(needed, term, held, 1, True, workers)


def collected(made: PartSet, wanted: PartSet, workers: int) -> Readings:
    """Return how wanted parts are read from those that are made. Raises PlanError as `fetched`, and if terms
    cannot be summed to those that are wanted.
    """
    terms, fewer = made.pieces.terms, wanted.pieces.terms
    if terms % fewer:
        raise PlanError(f"{terms} terms cannot be summed to {fewer}; make a multiple of these")
    each = terms // fewer
    term = wanted.pieces.term
    first = term if each == 1 else numbers([number * each for number in plain(term)])
    return _readings(wanted, first, made, each, False, workers)


def _readings(
    needed: PartSet, first: Numbers, held: PartSet, each: int, keep: bool, workers: int
) -> Readings:
    count, most = len(needed.workers), len(needed.workers) * len(held.workers)
    kept, own, firsts, piece_firsts = zeros(count), zeros(count), zeros(count + 1), zeros(count + 1)
    sources, elements, parts = zeros(most), zeros(most), zeros(most)
    scratch = zeros(workers + 2 * len(held.workers))
    of = held.pieces
    lacking = _read_parts(
        (needed.numbered, needed.pieces.bounds, first),
        (held.numbered, of.bounds, of.term, of.groups, of.members),
        (each, keep, workers),
        (kept, own, firsts, sources, elements, piece_firsts, parts),
        scratch,
    )
    if lacking != _NONE:
        text = region_text(needed.pieces.regions[lacking])
        raise PlanError(
            f"worker {needed.workers[lacking]} needs {text}, but no worker holds some of it; hold all "
            f"that is read"
        )
    listed, used = int(firsts[count]), int(piece_firsts[count])
    return Readings(
        plain(kept), plain(own), plain(firsts), plain(sources[:listed]), plain(elements[:listed]),
        plain(piece_firsts), plain(parts[:used]), plain(first), each,
    )  # fmt: skip


Lists = tuple[Numbers, ...]


@compiled
def _read_parts(
    needed: Lists, held: Lists, how: tuple[int, bool, int], found: Lists, scratch: Numbers
) -> int:
    """Write the entries of all readers; return the first reader that lacks something, or -1."""
    readers, bounds, first = needed
    holders, held_bounds, term, groups, members = held
    each, keep, workers = how
    kept, own, firsts, sources, elements, piece_firsts, pieces = found
    axes = len(bounds) // max(len(readers), 1)
    seats, turns, sizes = 0, workers, workers + len(holders)  # where each part of the scratch memory begins
    listed = 0
    parts = 0
    for reader in range(len(readers)):
        worker, at = readers[reader], reader * axes
        kept[reader] = _NONE
        whole = 1
        for axis in range(at, at + axes, 2):
            whole *= max(bounds[axis + 1] - bounds[axis], 0)
        if keep:
            for number in range(len(holders)):
                if holders[number] == worker and term[number] == first[reader]:
                    inside = True
                    for axis in range(0, axes, 2):
                        other = number * axes + axis
                        if (
                            bounds[at + axis] < held_bounds[other]
                            or bounds[at + axis + 1] > held_bounds[other + 1]
                        ):
                            inside = False
                    if inside:
                        kept[reader] = number
                        break
        if kept[reader] == _NONE and whole:
            for summed in range(first[reader], first[reader] + each):
                count = 0
                covered = 0
                for group in range(len(groups) - 1):
                    begin, end = groups[group], groups[group + 1]
                    one = members[begin]
                    if term[one] != summed:
                        continue
                    common = 1
                    for axis in range(0, axes, 2):
                        lower = max(bounds[at + axis], held_bounds[one * axes + axis])
                        upper = min(bounds[at + axis + 1], held_bounds[one * axes + axis + 1])
                        common *= max(upper - lower, 0)
                    if common == 0:
                        continue
                    covered += common
                    chosen = members[begin + worker % (end - begin)]
                    for place in range(begin, end):
                        if holders[members[place]] == worker:
                            chosen = members[place]
                            break
                    turn = (holders[chosen] - worker) % workers
                    place = count
                    while place > 0:
                        before = pieces[parts + place - 1]
                        if (scratch[turns + place - 1], before) < (turn, chosen):
                            break
                        pieces[parts + place] = before
                        scratch[turns + place] = scratch[turns + place - 1]
                        scratch[sizes + place] = scratch[sizes + place - 1]
                        place -= 1
                    pieces[parts + place] = chosen
                    scratch[turns + place] = turn
                    scratch[sizes + place] = common
                    count += 1
                if covered != whole:
                    return reader
                for place in range(count):
                    source = holders[pieces[parts + place]]
                    if source == worker:
                        own[reader] += scratch[sizes + place]
                        continue
                    seat = scratch[seats + source]
                    if seat == 0:
                        sources[listed] = source
                        elements[listed] = 0
                        listed += 1
                        seat = scratch[seats + source] = listed
                    elements[seat - 1] += scratch[sizes + place]
                parts += count
            for place in range(firsts[reader], listed):
                scratch[seats + sources[place]] = 0
        firsts[reader + 1] = listed
        piece_firsts[reader + 1] = parts
    return _NONE
