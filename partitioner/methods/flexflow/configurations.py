"""The configurations of a decision (FlexFlow, section 4), and a finite set of them to draw from.

A configuration has a degree for every dimension and a worker for every task. The set is

    degrees    divisors of the number of workers, at most the extent, whose product divides that number
    workers    for k tasks, every run of m neighbouring workers for every divisor m of k, around the end if
               need be; each worker takes k / m neighbouring tasks, or they take tasks in turn. Equal tasks
               are on workers of their own
    holders    of partial results, see `Holders`

Every element is drawn with the same probability, whatever came before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import accumulate
from math import prod
from random import Random
from typing import NamedTuple

from .soap import Decision, Kind


class Holders(StrEnum):
    """Who holds what partial results are reduced to: workers that make them."""

    PARTS = "parts"
    """Each an even part."""
    ALL = "all"
    """Each the whole, from parts that each reduces: an all-reduce."""
    FIRST = "first"
    """The first one the whole."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a decision is split, and where its tasks run."""

    degrees: tuple[int, ...]
    """The number of parts along each dimension."""

    workers: tuple[int, ...]
    """The worker of every task, tasks in row-major order."""

    holders: Holders = Holders.PARTS
    """Who holds what partial results are reduced to."""


@cache
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a number, the smallest first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(dict.fromkeys((*small, *(number // d for d in reversed(small)))))


def possible_degrees(decision: Decision, workers: int) -> tuple[tuple[int, ...], ...]:
    """Return the degrees that a decision may have."""
    found: list[tuple[int, ...]] = [()]
    for dimension in decision.dimensions:
        found = [
            (*before, degree)
            for before in found
            for degree in divisors(workers // prod(before))
            if degree <= dimension.extent
        ]
    return tuple(found)


def run_of(start: int, tasks: int, over: int, workers: int, in_turn: bool = False) -> tuple[int, ...]:
    """Return the workers of tasks on a run of `over` neighbouring workers."""
    each = tasks // over
    return tuple((start + (t % over if in_turn else t // each)) % workers for t in range(tasks))


class _Dealing(NamedTuple):
    """How tasks are dealt to workers."""

    over: int
    """The number of workers."""

    in_turn: bool
    """Whether they take tasks in turn, instead of neighbouring ones."""

    holders: Holders
    """Who holds what partial results are reduced to."""


class Drawable:
    """The finite set of a decision's configurations."""

    def __init__(self, decision: Decision, workers: int) -> None:
        self._workers = workers
        self.degrees = possible_degrees(decision, workers)
        self._dealings = [_dealings(decision, degrees) for degrees in self.degrees]
        self._before = [0, *accumulate(workers * len(each) for each in self._dealings)]

    def __len__(self) -> int:
        return self._before[-1]

    def __getitem__(self, number: int) -> Configuration:
        at = bisect_right(self._before, number) - 1
        degrees = self.degrees[at]
        dealing, start = divmod(number - self._before[at], self._workers)
        over, in_turn, holders = self._dealings[at][dealing]
        workers = run_of(start, prod(degrees), over, self._workers, in_turn)
        return Configuration(degrees, workers, holders)

    def draw(self, draw: Random) -> Configuration:
        """Return a configuration, each with the same probability."""
        return self[draw.randrange(len(self))]

    def aligned(self, draw: Random) -> Configuration:
        """Return a configuration with each task on a worker of its own, runs of which do not overlap.

        All degrees have the same probability, and all holders.
        """
        at = draw.randrange(len(self.degrees))
        tasks = prod(self.degrees[at])
        ways = [each for each in self._dealings[at] if each.over == tasks]
        workers = run_of(draw.randrange(0, self._workers, tasks), tasks, tasks, self._workers)
        return Configuration(self.degrees[at], workers, ways[draw.randrange(len(ways))].holders)


def drawables(decisions: Sequence[Decision], workers: int) -> list[Drawable]:
    """Return the set of each decision. Decisions with equal dimensions share one."""
    known: dict[tuple[tuple[int, bool, bool], ...], Drawable] = {}
    found = []
    for decision in decisions:
        key = tuple((each.extent, each.kind is Kind.REPLICA, each.reduces) for each in decision.dimensions)
        if key not in known:
            known[key] = Drawable(decision, workers)
        found.append(known[key])
    return found


def _dealings(decision: Decision, degrees: Sequence[int]) -> Sequence[_Dealing]:
    """Return the ways to deal the tasks of a decision with these degrees."""
    split = [each for each, degree in zip(decision.dimensions, degrees, strict=True) if degree > 1]
    replicas = any(each.kind is Kind.REPLICA for each in split)
    return _ways(prod(degrees), replicas, any(each.reduces for each in split))


@cache
def _ways(tasks: int, replicas: bool, reduces: bool) -> tuple[_Dealing, ...]:
    """Return the ways to deal tasks, if some are equal, and if they make partial results."""
    if replicas:
        ways = [(tasks, False)]
    else:
        ways = [(over, False) for over in divisors(tasks)]
        ways += [(over, True) for over in divisors(tasks)[1:-1]]
    return tuple(
        _Dealing(over, in_turn, holders)
        for over, in_turn in ways
        for holders in (Holders if reduces and over > 1 else (Holders.PARTS,))
    )
