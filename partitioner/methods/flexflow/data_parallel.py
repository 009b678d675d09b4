"""Data parallelism as a strategy: samples over all workers, weights on each, which all update them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .configurations import Configuration, Holders, divisors, run_of
from .soap import Decision, Kind
from .strategy import Strategies, Strategy


def data_parallel(strategies: Strategies) -> Strategy:
    """Split all that has samples along them, and repeat the rest on every worker."""
    soap = strategies.soap
    return tuple(by_sample(decision, soap.workers) for decision in soap.decisions)


def by_sample(decision: Decision, workers: int) -> Configuration:
    """Split samples as often as they last. A decision without samples is repeated."""
    degrees = [1] * len(decision.dimensions)
    kinds = [dimension.kind for dimension in decision.dimensions]
    kind = Kind.SAMPLE if Kind.SAMPLE in kinds else Kind.REPLICA
    if kind in kinds:
        place = kinds.index(kind)
        extent = decision.dimensions[place].extent
        degrees[place] = max(each for each in divisors(workers) if each <= extent)
    tasks = prod(degrees)
    return configured(decision, degrees, run_of(0, tasks, tasks, workers))


def configured(decision: Decision, degrees: Sequence[int], workers: Sequence[int]) -> Configuration:
    """Return a configuration in which all workers that make partial results get their sum."""
    parts = zip(decision.dimensions, degrees, strict=True)
    reduces = any(dimension.reduces and degree > 1 for dimension, degree in parts)
    return Configuration(tuple(degrees), tuple(workers), Holders.ALL if reduces else Holders.PARTS)
