"""Measure frontiers of chains of layers, against tables of objects and with limits on points.

python -m benchmarks.frontier_solver --save benchmarks/results/frontier_solver.json

A layer has a number of configurations that are faster the more memory they take, and every pair of neighbours
has a time for going from one to the other. Times are processor seconds, the best of three for short chains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from tofu.partitioner.solvers.frontier import least_frontier
from tofu.partitioner.solvers.pair_table import PairTable

from .record import Row, record_parts

T = TypeVar("T")
Problem = tuple[list[int], list[PairTable]]
Pairs = list[tuple[int, int]]


def chain(layers: int, configurations: int, distinct: int, seed: int = 0) -> Problem:
    """Return a chain of layers, of which `distinct` are different and the others repeat them."""
    random = np.random.default_rng(seed)
    kinds = []
    for _ in range(distinct):
        share = random.uniform(0, 1, configurations)
        memory = (1e6 / (1 + 7 * share)).astype(np.int64)
        times = (1e5 * (1 + 7 * share) * random.uniform(0.8, 1.2, configurations)).astype(np.int64)
        between = random.integers(0, 300_000, (configurations, configurations))
        np.fill_diagonal(between, 0)
        kinds.append((times, memory, between))
    free = np.zeros((configurations, configurations), np.int64)
    own = [PairTable((v,), *kinds[v % distinct][:2]) for v in range(layers)]
    pairs = [PairTable((v, v + 1), kinds[v % distinct][2], free) for v in range(layers - 1)]
    return [configurations] * layers, own + pairs


def of_objects(problem: Problem) -> Pairs:
    """Return the frontier of a chain by the linear dynamic program over lists of tuples."""
    domains, tables = problem
    own, pairs = tables[: len(domains)], tables[len(domains) :]
    runs: list[Pairs] = [[pair] for pair in zip(own[0].memory.tolist(), own[0].times.tolist(), strict=True)]
    for layer, between in zip(own[1:], pairs, strict=True):
        times, memory, moved = layer.times.tolist(), layer.memory.tolist(), between.times.tolist()
        runs = [
            _reduced(
                [
                    (size + memory[value], seconds + times[value] + moved[before][value])
                    for before, run in enumerate(runs)
                    for size, seconds in run
                ]
            )
            for value in range(len(memory))
        ]
    return _reduced([pair for run in runs for pair in run])


def _reduced(pairs: Pairs) -> Pairs:
    kept: Pairs = []
    for pair in sorted(pairs):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return kept


def _timed(compute: Callable[[], T], times: int = 3) -> tuple[T, float]:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        found = compute()
        best = min(best, time.process_time() - start)
    return found, round(best, 3)


def exact() -> Iterator[Row]:
    """Yield whole frontiers, and the seconds of both ways."""
    for layers in (10, 20, 40):
        problem = chain(layers, 16, layers)
        found, seconds = _timed(lambda problem=problem: least_frontier(*problem))
        objects, object_seconds = _timed(lambda problem=problem: of_objects(problem), 1)
        assert [(m, t) for t, m in found.points.tolist()] == objects
        yield {
            "layers": layers,
            "configurations": 16,
            "points": len(objects),
            "seconds": seconds,
            "seconds_of_objects": object_seconds,
        }


def thinned() -> Iterator[Row]:
    """Yield thinned frontiers of long chains, and how far points are above the lower staircase in time."""
    for layers, configurations, limit in ((100, 100, 64), (300, 100, 16), (1000, 100, 16), (2600, 100, 16)):
        problem = chain(layers, configurations, 60)
        found, seconds = _timed(lambda p=problem, limit=limit: least_frontier(*p, points_limit=limit), 1)
        places = np.searchsorted(found.lower[:, 1], found.points[:, 1], side="right") - 1
        gaps = found.points[:, 0] / found.lower[places, 0] - 1
        yield {
            "layers": layers,
            "configurations": configurations,
            "points_limit": limit,
            "points": len(found.points),
            "seconds": seconds,
            "median_gap": round(float(np.median(gaps)), 4),
            "largest_gap": round(float(gaps.max()), 4),
        }


if __name__ == "__main__":
    least_frontier(*chain(3, 4, 3), points_limit=3)
    record_parts({"exact": exact, "thinned": thinned}, __doc__)
