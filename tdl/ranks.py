"""Ranks and starred variables as a linear system.

The unknowns are the rank of every tensor and the length of every star: the number of variables that `*i`
stands for. Every access is an equation: `a[n, *i]` says that the rank of `a` is 1 plus the length of `*i`.
Every lambda is one about the tensor that it produces. An equation with one unknown gives its value, and so
the system is solved in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .ast import Binder, Description, Element, Lambda, Star
from .traverse import walk

Tensor = str | int
"""A parameter or a stage by its name, an output by its number."""


class Length(NamedTuple):
    """The unknown length of a star."""

    scope: str
    """The stage whose variable it is; empty for the outputs, which share their variables."""
    star: str


Unknown = Tensor | Length


@dataclass(frozen=True, slots=True)
class RankEquation:
    """The rank of a tensor as an access or a lambda gives it."""

    tensor: Tensor
    """The tensor whose rank is `plain` plus the sum of `lengths`."""

    plain: int
    """The number of indices or variables without a star."""

    lengths: tuple[Length, ...]
    """The length of each starred index or variable. A star that occurs twice counts twice."""

    node: Element | Lambda
    """The access, or the lambda that produces the tensor."""


def scopes(description: Description) -> Iterator[tuple[str, Tensor, Lambda]]:
    """Yield the scope of the variables, what is produced, and the lambda, of every stage and output."""
    for stage in description.stages:
        yield stage.name, stage.name, stage.value
    for number, value in enumerate(description.outputs):
        yield "", number, value


def equations(description: Description) -> Iterator[RankEquation]:
    """Yield the equations in the order of the text."""
    for scope, produced, value in scopes(description):
        stars = [Length(scope, binder.name) for binder in value.variables if binder.star]
        yield RankEquation(produced, len(value.variables) - len(stars), tuple(stars), value)
        for node in walk(value):
            if isinstance(node, Element):
                stars = [Length(scope, index.name) for index in node.indices if isinstance(index, Star)]
                yield RankEquation(node.tensor, len(node.indices) - len(stars), tuple(stars), node)


def in_order(
    description: Description, known: Collection[Unknown]
) -> Iterator[tuple[RankEquation, Unknown | None]]:
    """Yield equations with one unknown or none, each with that unknown; leave out those that keep several.

    The next one is always the first in the text, so that what produces a tensor comes before what reads it.
    """
    found = set(known)
    waiting = list(equations(description))
    place = 0
    while place < len(waiting):
        equation = waiting[place]
        unknown = {equation.tensor, *equation.lengths} - found
        if len(unknown) > 1:
            place += 1
            continue
        del waiting[place]
        yield equation, next(iter(unknown), None)
        if unknown:
            found |= unknown
            place = 0


def undecided_stars(description: Description, known: Collection[Tensor]) -> Iterator[Binder]:
    """Yield the starred variables whose lengths do not follow from the ranks of `known`, each once."""
    solved = {unknown for _, unknown in in_order(description, known)}
    for scope, _, value in scopes(description):
        for node in walk(value):
            if isinstance(node, Binder) and node.star and Length(scope, node.name) not in solved:
                solved.add(Length(scope, node.name))
                yield node
