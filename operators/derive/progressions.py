"""Arithmetic progressions of an index variable on which all expressions of it are affine.

An expression of one variable, such as `(i + 3) % 8`, `minimum(i, 5)` or `i // 2`, is looked at as the list
of its values. Along steps of a suitable size these lie on few straight lines, and where a line ends is a cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from . import affine
from .affine import Affine
from .build import Builder
from .index_values import Integers, index_values
from .ir import Apply, Constant, Iota, Load, Node, Reduction, walk

MOST_PARTS = 64
"""Progressions of one variable: beyond, it is not cut."""

MOST_VALUES = 1 << 22
"""Expressions of a variable with more values are not looked at."""

WHOLE = affine.COMPARISONS | {"+", "-", "*", "//", "%", "negative", "abs", "maximum", "minimum"}
"""Functions of integers that give integers or truth values."""

THRESHOLDS = {"<": (0,), ">=": (0,), "<=": (1,), ">": (1,), "==": (0, 1), "!=": (0, 1)}
"""Values of the difference from which a comparison's answer may change."""


@dataclass(frozen=True, slots=True)
class Progression:
    """`start + step * number` for numbers below `count`; starts count from the whole tensor's index 0."""

    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """For every value of a variable a number that stays the same while an expression is affine.

    For a quotient that is its own value. It may change where the dividend `inner` moves on by multiples of
    the `divisor`: along such steps the quotient is affine too.
    """

    levels: Integers | npt.NDArray[np.bool_]
    inner: Integers | None = None
    divisor: int = 1

    def breaks(self, step: int) -> Integers:
        """The places before which to cut, so that the expression is affine in steps of this size."""
        changes = self.levels[step:] != self.levels[:-step]
        if self.inner is not None:
            changes &= (self.inner[step:] - self.inner[:-step]) % self.divisor != 0
        return np.flatnonzero(changes) + step


class Progressions:
    """What nodes ask of the progressions of each variable.

    `marks` are where to cut, `edges` where to cut a variable that is reduced. Steps are multiples of
    `shared`, for expressions of several variables; `moduli` are worth trying, for expressions of one. `bent`
    are the latter, which are affine in parts.
    """

    def __init__(self, nodes: Iterable[Node], builder: Builder) -> None:
        self.builder = builder
        self.marks: dict[str, set[int]] = {}
        self.edges: dict[str, set[int]] = {}
        self.reduced: set[str] = set()
        self.moduli: dict[str, set[int]] = {}
        self.shared: dict[str, int] = {}
        self.bent: dict[str, list[Apply]] = {}
        for node in nodes:
            self._look_at(node)

    def parts(self, name: str) -> list[Progression]:
        """A variable's progressions; one where there is nothing to cut or where they would be too many."""
        first, stop = self.builder.ranges[name]
        if stop - first < 2:
            return [Progression(first, 1, max(stop - first, 0))]
        shared = self.shared.get(name, 1)
        moduli = {lcm(shared, modulus) for modulus in self.moduli.get(name, ())}
        moduli.add(lcm(shared, *moduli))
        columns: list[Column] = []
        if stop - first <= MOST_VALUES:
            moduli.add(shared)
            columns = [self._column(name, node) for node in self.bent.get(name, ())]
        choices = (self._cut(name, modulus, columns) for modulus in sorted(moduli) if modulus <= MOST_PARTS)
        found = [parts for parts in choices if parts is not None]
        return min(found, key=len, default=[Progression(first, 1, stop - first)])

    def _cut(self, name: str, modulus: int, columns: Sequence[Column]) -> list[Progression] | None:
        """The progressions with one step; None where they are too many."""
        first, stop = self.builder.ranges[name]
        asked = self.marks.get(name, set()) | (self.edges.get(name, set()) if name in self.reduced else set())
        marks = {mark for mark in asked if first < mark < stop}
        breaks = [column.breaks(modulus) for column in columns]
        following = _following(breaks, modulus)
        while following is not None:
            marks.add(first + following)
            following = _following(breaks, following + modulus)
            if len(marks) >= MOST_PARTS:
                return None
        parts = [
            part
            for lower, upper in pairwise((first, *sorted(marks), stop))
            for part in _residues(lower, upper, modulus)
        ]
        return parts if len(parts) <= MOST_PARTS else None

    def _column(self, name: str, node: Apply) -> Column:
        ranges = {name: self.builder.ranges[name]}
        length = ranges[name][1] - ranges[name][0]

        def values(part: Node) -> Integers:
            return np.broadcast_to(index_values(part, {name: 0}, ranges).astype(np.int64), length)

        match node:
            case Apply(function="//" | "%", arguments=(x, Constant(value=int(divisor)))):
                return Column(values(x) // divisor, values(x), divisor)
            case Apply(function="maximum" | "minimum", arguments=(x, y)):
                return Column(values(x) <= values(y))
            case Apply(function="abs", arguments=(x,)):
                return Column(values(x) >= 0)
            case _:
                return Column(values(node))

    def _look_at(self, node: Node) -> None:
        match node:
            case Load(padding=padding, indices=indices, tensor=tensor) if padding is not None:
                for index, extent in zip(indices, self.builder.shapes[tensor], strict=True):
                    if isinstance(index, Affine):
                        self._mark(index, (0, extent))
            case Apply(function=function, arguments=(x, y)) if function in affine.COMPARISONS:
                a, b = self.builder.form(x), self.builder.form(y)
                if a is not None and b is not None:
                    self._mark(affine.added(a, b, -1), THRESHOLDS[function])
                    self._edge(affine.added(a, b, -1), THRESHOLDS[function])
                else:
                    self._bend(node)
            case Apply(function="//" | "%", arguments=(x, Constant(value=int(divisor)))) if divisor > 0:
                self._divide(node, x, divisor)
            case Apply(function="maximum" | "minimum" | "abs"):
                self._bend(node)
            case Reduction(variables=variables):
                self.reduced.update(variables)

    def _divide(self, node: Apply, dividend: Node, divisor: int) -> None:
        """Ask for steps of which a divisor divides what the dividend moves by."""
        form = self.builder.form(dividend)
        if len(node.free) == 1:
            self._bend(node)
            (name,) = node.free
            steps = {(slope / divisor).denominator for slope in _slopes(dividend)}
            self.moduli.setdefault(name, set()).update(steps)
        elif form is not None and self.builder.form(node) is None:
            for name, coefficient in form.coefficients:
                modulus = divisor // gcd(divisor, coefficient)
                self.shared[name] = lcm(self.shared.get(name, 1), modulus)

    def _bend(self, node: Apply) -> None:
        """Look at an integer expression of one variable that is not affine over its whole range."""
        if len(node.free) == 1 and _whole_numbers(node) and self.builder.form(node) is None:
            (name,) = node.free
            self.bent.setdefault(name, []).append(node)

    def _mark(self, form: Affine, thresholds: tuple[int, ...]) -> None:
        """Cut where an affine form of one variable reaches each threshold, or falls below it."""
        if len(form.coefficients) == 1:
            ((name, coefficient),) = form.coefficients
            reached = {_reaches(coefficient, threshold - form.constant) for threshold in thresholds}
            self.marks.setdefault(name, set()).update(reached)

    def _edge(self, form: Affine, thresholds: tuple[int, ...]) -> None:
        """Cut where an affine form begins to reach each threshold, and where it does for all other values.

        A comparison with a window's variable inside is then decided everywhere but at the border.
        """
        if len(form.coefficients) < 2:
            return
        for name, coefficient in form.coefficients:
            rest = affine.added(form, affine.variable(name), -coefficient)
            low, stop = rest.interval(self.builder.ranges)
            reached = {_reaches(coefficient, t - end) for t in thresholds for end in (low, stop - 1)}
            self.edges.setdefault(name, set()).update(reached)


def _reaches(coefficient: int, distance: int) -> int:
    """From where on a multiple of a variable is at least as far, or for a negative one no longer is."""
    return -(-distance // coefficient) if coefficient > 0 else distance // coefficient + 1


def _following(breaks: Iterable[Integers], least: int) -> int | None:
    """The first break at `least` or behind."""
    places = ((ends, int(np.searchsorted(ends, least))) for ends in breaks)
    return min((int(ends[place]) for ends, place in places if place < len(ends)), default=None)


def _residues(first: int, stop: int, modulus: int) -> list[Progression]:
    count = min(modulus, max(stop - first, 1))
    return [Progression(first + part, modulus, -(-(stop - first - part) // modulus)) for part in range(count)]


def _whole_numbers(node: Node) -> bool:
    """Whether an expression is computed from index variables in integers throughout."""
    return all(
        isinstance(part, Iota)
        or (isinstance(part, Constant) and isinstance(part.value, int))
        or (isinstance(part, Apply) and part.function in WHOLE)
        for part in walk(node)
    )


def _slopes(node: Node) -> frozenset[Fraction]:
    """By how much an expression of one variable may move with it, between the places where it bends."""
    match node:
        case Iota():
            return frozenset((Fraction(1),))
        case Apply(function="negative", arguments=(x,)):
            return frozenset(-slope for slope in _slopes(x))
        case Apply(function="abs", arguments=(x,)):
            return frozenset(sign * slope for slope in _slopes(x) for sign in (1, -1))
        case Apply(function="+" | "-" as function, arguments=(x, y)):
            sign = 1 if function == "+" else -1
            return frozenset(a + sign * b for a in _slopes(x) for b in _slopes(y))
        case Apply(function="*", arguments=(x, Constant(value=int(n))) | (Constant(value=int(n)), x)):
            return frozenset(slope * n for slope in _slopes(x))
        case Apply(function="//", arguments=(x, Constant(value=int(divisor)))) if divisor:
            return frozenset(slope / divisor for slope in _slopes(x))
        case Apply(function="%", arguments=(x, _)):
            return _slopes(x) | {Fraction(0)}
        case Apply(function="maximum" | "minimum", arguments=(x, y)):
            return _slopes(x) | _slopes(y)
        case _:
            return frozenset((Fraction(0),))
