"""Regions of random operators against brute force: no element read may lie outside of its region.

    python -m benchmarks.random_operators --operators 10000 --seed 0

Every strategy of every operator is tried with 2 to 9 workers. A region is *unsound* if it misses an element
that is read, *loose* if it is larger than the smallest box around these.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time

import numpy as np

from benchmarks.machine import described
from benchmarks.record import keep
from tests.analyzer.random_operators import Case, random_case
from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.indices.region import Boxes

LARGEST_EXTENT = 12
WORKERS = range(2, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description="Check regions of random operators by brute force.")
    parser.add_argument("--operators", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    started = process_time()
    counts: Counter[str] = Counter()
    random = Random(arguments.seed)
    for _ in range(arguments.operators):
        counts.update(check(random_case(random, LARGEST_EXTENT)))
    result = {
        **described(),
        "operators": arguments.operators,
        "seed": arguments.seed,
        **dict(sorted(counts.items())),
        "processor seconds": round(process_time() - started, 1),
    }
    print(keep(result, arguments.save))


def check(case: Case) -> Counter[str]:
    """Counts of strategies, regions, and those unsound or loose."""
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    counts: Counter[str] = Counter({"unsound": 0, "loose where every variable occurs once per index": 0})
    for boxes in splits(bound):
        counts["strategies with a number of workers"] += 1
        regions = bound.input_regions(boxes)
        for tensor in case.shapes:
            for box, region in zip(boxes.tolist(), regions[tensor], strict=True):
                counts.update(judge(case, tensor, dict(zip(bound.variables, box, strict=True)), region))
    return counts


def splits(bound: Bound) -> Iterator[Boxes]:
    """Yield the boxes of every strategy with every number of workers that it allows."""
    for strategy in bound.strategies:
        for workers in WORKERS:
            if workers <= bound.extents[strategy.variable]:
                yield bound.split((strategy.variable,), (workers,))


def judge(case: Case, tensor: str, box: dict[str, tuple[int, int]], region: Boxes) -> Counter[str]:
    """Return one worker's region of one tensor."""
    read = case.elements_read(tensor, box)
    counts = Counter({"regions": 1})
    once = case.once(tensor)
    counts["regions where every variable occurs once per index"] += once
    if len(read):
        tight = np.stack((read.min(axis=0), read.max(axis=0) + 1), axis=-1)
    else:
        tight = np.zeros_like(region)
    if len(read) and ((region[:, 0] > tight[:, 0]) | (region[:, 1] < tight[:, 1])).any():
        counts["unsound"] += 1
        print(f"unsound: {case.text}\n{case.shapes} {box} {tensor} {region.tolist()} {tight.tolist()}")
    elif not np.array_equal(region, tight):
        counts["loose where every variable occurs once per index" if once else "loose elsewhere"] += 1
    return counts


if __name__ == "__main__":
    main()
