"""Parts of a tensor on workers, and from whom each worker reads how much.

Readers keep what they hold (tasks, copies), or read parts of every term (what is reduced, or collected).
It is what `programs.cover` says in pieces: a reader takes from itself what it can, looks for the
rest from its own number upwards, and of several equal holdings takes one of the nearest.

Assumes: parts of one term are equal or disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..analyzer.indices.region import Boxes, Region, volume
from ..errors import PlanError
from ..programs.program import region_text
from ..support.compiled import Numbers, compiled, looped, numbers, plain, zeros

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Regions of one tensor, whoever has them. Compared by identity."""

    axes: int
    """The dimensions of the tensor."""

    bounds: Numbers
    """The bounds of all regions, one after the other."""

    term: Numbers
    """The number of each region's term."""

    terms: int
    """The number of terms; 1 if the tensor is reduced."""

    elements: Numbers
    """The number of elements of each region."""

    group: Numbers
    """The number of each region's group: that of equal regions of a term."""

    groups: Numbers
    """Where each group of equal regions of a term begins in `members`, and the end of the last one."""

    members: Numbers
    """The numbers of all regions, group by group."""

    def region(self, number: int) -> Region:
        """Return a region."""
        begin, end = 2 * self.axes * number, 2 * self.axes * (number + 1)
        bounds = iter(plain(self.bounds[begin:end]))
        return tuple(zip(bounds, bounds, strict=True))


def pieces(boxes: Boxes, term: Sequence[int], terms: int) -> Pieces:
    """Return regions, grouped."""
    count, axes, _ = boxes.shape
    numbered: dict[tuple[int, tuple[int, ...]], int] = {}
    regions = map(tuple, boxes.reshape(count, 2 * axes).tolist())
    group = [numbered.setdefault(each, len(numbered)) for each in zip(term, regions, strict=True)]
    sizes = np.bincount(np.array(group, np.int64), minlength=len(numbered))
    return Pieces(
        axes,
        looped(boxes.copy()),
        numbers(term),
        terms,
        looped(volume(boxes)),
        numbers(group),
        numbers([0, *sizes.cumsum().tolist()]),
        numbers(sorted(range(count), key=group.__getitem__)),
    )


def check_tiles(found: Pieces, whole: Region) -> None:
    """Raise PlanError unless the distinct regions of every term are disjoint and make up all of `whole`."""
    full = numbers([bound for interval in whole for bound in interval])
    one, other = _NONE, _NONE
    if not _in_grid(found, whole):
        one, other = _fault(found.bounds, found.term, found.groups, found.members, full)
    if one != _NONE:
        text = region_text(found.region(one))
        if other == _NONE:
            raise PlanError(f"the part {text} lies outside {region_text(whole)}")
        raise PlanError(
            f"the parts {text} and {region_text(found.region(other))} overlap; parts are equal or disjoint"
        )
    size = prod([upper - lower for lower, upper in whole])
    term, elements, members = plain(found.term), plain(found.elements), plain(found.members)
    covered = [0] * found.terms
    for begin in plain(found.groups)[:-1]:
        covered[term[members[begin]]] += elements[members[begin]]
    for number, count in enumerate(covered):
        if count != size:
            place = f"term {number}: " if found.terms > 1 else ""
            raise PlanError(
                f"{place}the parts cover {count} of the {size} elements of {region_text(whole)}; add "
                f"the others"
            )


def _in_grid(found: Pieces, whole: Region) -> bool:
    """Tell whether all intervals are in `whole`, and those along each axis are equal or disjoint.

    Different regions are then disjoint. Tests of two at a time take long if there are many.
    """
    boxes = np.asarray(found.bounds, np.int64).reshape(len(found.group), found.axes, 2)
    for axis, (least, most) in enumerate(whole):
        intervals = sorted(set(zip(*boxes[:, axis].T.tolist(), strict=True)))
        ends = [least, *[upper for _, upper in intervals]]
        if max(ends) > most or any(end > lower for end, (lower, _) in zip(ends, intervals, strict=False)):
            return False
    return True


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
                if not common:
                    break
                lower = max(bounds[one * axes + axis], bounds[other * axes + axis])
                upper = min(bounds[one * axes + axis + 1], bounds[other * axes + axis + 1])
                common = lower < upper
            if common:
                return other, one
    return _NONE, _NONE


Lists = tuple[Numbers, ...]
"""Integers of several kinds as loops read them."""


@dataclass(frozen=True, slots=True, eq=False)
class PartSet:
    """Parts of one tensor on workers. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each part."""

    numbered: Numbers
    """The workers as loops read them."""

    pieces: Pieces
    """The regions of the parts."""


def lists_of(parts: PartSet, term: Numbers) -> Lists:
    """Return parts whose terms are numbered so, as loops read them."""
    return parts.numbered, parts.pieces.bounds, term, parts.pieces.groups, parts.pieces.members


@compiled
def _nearest(holders: Numbers, members: Numbers, begin: int, end: int, worker: int) -> int:
    """Return the part that a worker reads of equal ones: of the nearest, the one that its number chooses."""
    least, count = 0, 0
    for place in range(begin, end):
        block = holders[members[place]] ^ worker
        while block & (block - 1):
            block &= block - 1
        if count == 0 or block < least:
            least, count = block, 0
        count += block == least
    skipped = worker % count
    for place in range(begin, end):
        block = holders[members[place]] ^ worker
        while block & (block - 1):
            block &= block - 1
        if block == least:
            if skipped == 0:
                return int(members[place])
            skipped -= 1
    return _NONE


@compiled
def read_parts(needed: Lists, held: Lists, how: tuple[int, bool, int], found: Lists) -> int:
    """Write how all parts are read to `found`; return the first reader that lacks something, or -1.

    `how` is how many terms are summed to each part, whether readers keep what they hold, and the number of
    workers. `found` takes, for each reader, the number of its holding that has all of the part or -1, the
    elements that it has itself, where its entries begin among the next two lists (and where the last one's
    end), the workers that it reads from, the elements of each, where its entries begin in the last list, and
    the numbers of the parts that it reads.
    """
    readers, bounds, first, _, _ = needed
    holders, held_bounds, term, groups, members = held
    each, keep, workers = how
    kept, own, firsts, sources, elements, piece_firsts, pieces = found
    axes = len(bounds) // max(len(readers), 1)
    scratch = zeros(workers + 2 * len(holders))
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
                    chosen = _nearest(holders, members, begin, end, worker)
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
