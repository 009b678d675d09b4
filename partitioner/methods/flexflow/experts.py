"""Strategies that experts use, of which searches start."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .configurations import Configuration, Drawable, Holders, run_of
from .soap import Decision, Kind, Soap

_ORDER = (Kind.REPLICA, Kind.SAMPLE, Kind.PARAMETER, Kind.ATTRIBUTE)


def along(decision: Decision, drawable: Drawable, order: Sequence[Kind], workers: int) -> Configuration:
    """Return the configuration with the most parts along the first kind of dimension, then the next ones."""

    def rank(degrees: tuple[int, ...]) -> tuple[int, ...]:
        pairs = list(zip(decision.dimensions, degrees, strict=True))
        return tuple(prod(d for dimension, d in pairs if dimension.kind is kind) for kind in order)

    degrees = max(drawable.degrees, key=rank)
    tasks = prod(degrees)
    parts = zip(decision.dimensions, degrees, strict=True)
    reduces = any(each.reduces and degree > 1 for each, degree in parts)
    holders = Holders.ALL if reduces else Holders.PARTS
    return Configuration(degrees, run_of(0, tasks, tasks, workers), holders)


def data_parallel(soap: Soap, drawables: Sequence[Drawable]) -> list[Configuration]:
    """Split all that has samples along them, and keep weights on every worker."""
    return [
        along(decision, drawable, _ORDER, soap.workers)
        for decision, drawable in zip(soap.decisions, drawables, strict=True)
    ]


def candidates(soap: Soap, drawables: Sequence[Drawable]) -> dict[str, list[Configuration]]:
    """Return the strategies of experts for a graph, by the names of their methods."""
    return {"data-parallel": data_parallel(soap, drawables)}
