"""Cut the interval of an index variable so that conditions are decided and indices become affine.

It is cut where a condition changes. For quotients and remainders there are three ways. The cheapest that
applies is used:

- at the values where a quotient changes, if these are few: `(i + 3) % 100` is affine on either side of 97;
- into two axes: for `f = 4 * g + r`, `f // 4` is `g` and `f % 4` is `r`;
- by residues: every second `x` for `x // 2`, one part for each residue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, lcm

from ....analyzer.indices.region import Interval
from ..nodes import affine
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.build import NodeBuilder
from ..nodes.ir import Apply, Constant, Load, Node

THRESHOLDS = {
    "<": (0,),
    ">=": (0,),
    "<=": (1,),
    ">": (1,),
    "==": (0, 1),
    "!=": (0, 1),
    "maximum": (0,),
    "minimum": (0,),
}
"""Values of the difference of two arguments from which an answer, or the side that is chosen, may change."""

MOST_PARTS = 64
"""The most parts of an interval. If there were more, conditions are computed and elements gathered."""

MOST_SHARED = 16
"""The most residues of a variable in quotients with others: every combination of them is a part."""

FEW_CHANGES = 4
"""An interval is cut at every change of a quotient if there are at most this many."""

FEW_RESIDUES = 8
"""The fastest axis of an output is not cut into two axes if one would be shorter than this."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A variable that runs through `[0, count)`, each time moving an index by `step`."""

    name: str
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Values of an index variable: `start` plus what every axis adds."""

    start: int
    axes: tuple[Axis, ...]

    @property
    def form(self) -> AffineIndex:
        """The index in terms of the axes' variables."""
        return AffineIndex(tuple(sorted((axis.name, axis.step) for axis in self.axes)), self.start)

    @property
    def ranges(self) -> Ranges:
        """The values of the axes' variables."""
        return {axis.name: (0, axis.count) for axis in self.axes}

    def then(self, taken: Mapping[str, Taken]) -> Taken:
        """Return the same values after some of the axes were cut in turn."""
        start = self.start
        axes: list[Axis] = []
        for axis in self.axes:
            inner = taken.get(axis.name)
            if inner is None:
                axes.append(axis)
                continue
            start += axis.step * inner.start
            axes.extend(Axis(part.name, axis.step * part.step, part.count) for part in inner.axes)
        return Taken(start, tuple(axes))


@dataclass(slots=True)
class Asked:
    """The cuts of one index variable that make an expression affine and decide its conditions."""

    periods: set[tuple[int, int]] = field(default_factory=set)
    """Pairs `(length, place)`: a quotient of this variable alone changes at every value that is `place`
    modulo `length`."""

    shared: int = 1
    """The modulus whose residues make quotients affine that mix the variable with others; 1 if there are
    none."""

    conditions: set[int] = field(default_factory=set)
    """The values from which a condition, or the side of a bend, may change."""

    borders: set[int] = field(default_factory=set)
    """The values at which padding begins."""


def asked(nodes: Iterable[Node], builder: NodeBuilder) -> dict[str, Asked]:
    """Return what all nodes ask of every variable that they ask something of."""
    found: dict[str, Asked] = defaultdict(Asked)
    for node in nodes:
        match node:
            case Load(padding=padding, indices=indices, tensor=tensor) if padding is not None:
                for index, extent in zip(indices, builder.shapes[tensor], strict=True):
                    if isinstance(index, AffineIndex):
                        for name, value in _crossings(index, (0, extent)):
                            found[name].borders.add(value)
            case Apply(function="//" | "%", arguments=(x, Constant(value=int(divisor)))) if divisor > 0:
                if (form := builder.form(x)) is not None:
                    _ask_for_quotient(found, form, divisor)
            case Apply(function=function, arguments=(x, y)) if function in THRESHOLDS:
                a, b = builder.form(x), builder.form(y)
                if a is not None and b is not None:
                    for name, value in _crossings(affine.added(a, b, -1), THRESHOLDS[function]):
                        found[name].conditions.add(value)
            case Apply(function="abs", arguments=(x,)) if (form := builder.form(x)) is not None:
                for name, value in _crossings(form, (0,)):
                    found[name].conditions.add(value)
    return dict(found)


def _crossings(form: AffineIndex, thresholds: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Yield the places where an affine form of one variable reaches each threshold, or falls below it."""
    if len(form.coefficients) != 1:
        return
    name, coefficient = form.coefficients[0]
    for threshold in thresholds:
        distance = threshold - form.constant
        yield name, -(-distance // coefficient) if coefficient > 0 else distance // coefficient + 1


def _ask_for_quotient(found: dict[str, Asked], form: AffineIndex, divisor: int) -> None:
    moving = [term for term in form.coefficients if term[1] % divisor]
    for name, coefficient in moving:
        if len(moving) == 1 and divisor % coefficient == 0:
            found[name].periods.add(_period(coefficient, form.constant, divisor))
        else:
            found[name].shared = lcm(found[name].shared, divisor // gcd(divisor, coefficient))


def _period(coefficient: int, constant: int, divisor: int) -> tuple[int, int]:
    """Return where `(coefficient * v + constant) // divisor` changes; the coefficient divides the divisor."""
    length = divisor // abs(coefficient)
    if coefficient > 0:
        return length, -(constant // coefficient) % length
    # falling: the last value of a quotient is where the index is a multiple of the divisor
    return length, (constant // -coefficient + 1) % length


def parts(name: str, interval: Interval, wanted: Asked, *, reduced: bool, fastest: bool) -> list[Taken]:
    """Return the parts of a variable's interval.

    One that is reduced is not cut where padding begins. `fastest`: it runs along the output's memory.
    """
    first, stop = interval
    marks = wanted.conditions if reduced else wanted.conditions | wanted.borders
    inner = sorted(mark for mark in marks if first < mark < stop)
    return [
        part
        for lower, upper in pairwise((first, *inner, stop))
        for part in _segment(name, lower, upper, wanted, fastest)
    ]


def _segment(name: str, lower: int, upper: int, wanted: Asked, fastest: bool) -> list[Taken]:
    if wanted.shared > 1:
        modulus = lcm(wanted.shared, *(length for length, _ in wanted.periods))
        return _residues(name, lower, upper, modulus, most=MOST_SHARED)
    periods = {period for period in wanted.periods if _first_change(lower + 1, *period) < upper}
    if not periods:
        return [whole(name, lower, upper)]
    modulus = lcm(*(length for length, _ in periods))
    if fastest and modulus <= FEW_RESIDUES:
        return _residues(name, lower, upper, modulus, most=FEW_RESIDUES)
    changes = sum((upper - 1 - _first_change(lower + 1, *period)) // period[0] + 1 for period in periods)
    longest = max(periods)
    if all(_fits(longest, period) for period in periods):
        found = _two_axes(name, lower, upper, *longest)
        if len(found) <= changes:
            return found
    if changes <= max(FEW_CHANGES, modulus) and changes <= MOST_PARTS:
        return _changes(name, lower, upper, periods)
    return _residues(name, lower, upper, modulus, most=MOST_PARTS)


def whole(name: str, lower: int, upper: int) -> Taken:
    """Return all values from `lower` up to `upper`."""
    return Taken(lower, (Axis(name, 1, max(upper - lower, 0)),))


def _fits(longer: tuple[int, int], shorter: tuple[int, int]) -> bool:
    """Return whether a quotient changes wherever another one with longer periods does."""
    return longer[0] % shorter[0] == 0 and (longer[1] - shorter[1]) % shorter[0] == 0


def _residues(name: str, lower: int, upper: int, modulus: int, most: int) -> list[Taken]:
    """Return a part for every residue; a single part if there are more of them than `most`."""
    if modulus > most or upper <= lower:
        return [whole(name, lower, upper)]
    return [
        Taken(lower + residue, (Axis(name, modulus, -(-(upper - lower - residue) // modulus)),))
        for residue in range(min(modulus, upper - lower))
    ]


def _first_change(lower: int, length: int, offset: int) -> int:
    """Return the first value from `lower` on at which a quotient changes."""
    return lower + (offset - lower) % length


def _changes(name: str, lower: int, upper: int, periods: set[tuple[int, int]]) -> list[Taken]:
    places = {
        place
        for length, offset in periods
        for place in range(_first_change(lower, length, offset), upper, length)
    }
    return [whole(name, first, stop) for first, stop in pairwise(sorted(places | {lower, upper}))]


def _two_axes(name: str, lower: int, upper: int, length: int, offset: int) -> list[Taken]:
    """Return whole periods as two axes, and the rests on either side.

    Without a whole period, cut at every change.
    """
    first = _first_change(lower, length, offset)
    count = (upper - first) // length
    if count < 1:
        return _changes(name, lower, upper, {(length, offset)})
    last = first + count * length
    found = [Taken(first, (Axis(f"{name}/{length}", length, count), Axis(f"{name}%{length}", 1, length)))]
    if lower < first:
        found.insert(0, whole(name, lower, first))
    if last < upper:
        found.append(whole(name, last, upper))
    return found
