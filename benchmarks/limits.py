"""Limits of memory: random ones over small models, and bytes within little memory for large ones.

python -m benchmarks.limits random [--count 1000] [--save benchmarks/results/limits.json]
python -m benchmarks.limits table [MODEL ...] [--save benchmarks/results/limits.json]
python -m benchmarks.limits lighter [MODEL ...] [--save benchmarks/results/limits.json]

Random limits lie between half of the proven minimum and 1.2 times what the best plan needs. A limit is
met by arena and workspace of the lowered plan, is below the proven minimum, or lies between: no plan is
found then, and none is excluded. The table searches by `exact`, with free feeding, plans that need at
most 5% more memory than the refined plan that replicates nothing, and three models within 8 GB a worker;
only arenas count there. The lighter plans keep copies, and need 0.5% less memory at least than the best
plans that replicate tensors but keep nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.partitioner import (
    Fitting,
    Needs,
    Plan,
    SearchSettings,
    find_plan_within,
    least_peak_bytes,
    lower,
    partition,
    peak_bytes,
)
from tofu.runtime.footprint import footprint
from tofu.within_limit import needs_of

from .machine import described
from .record import keep
from .space import MIB, MODELS, perceptron, recommender

WORKERS = 8
SEED = 17
MORE = 1.05
LESS = 0.995
WITHIN_BYTES = 8_000_000_000


def _zoo(name: str, optimizer: str = "sgd", **options: Any) -> Graph:
    return tofu.models.get(name, **options).training_graph(optimizer)


SMALL: dict[str, Callable[[], Graph]] = {
    "mlp": partial(_zoo, "mlp"),
    "mlp, adam": partial(_zoo, "mlp", "adam"),
    "mlp, batch 8": partial(_zoo, "mlp", batch=8),
    "lenet": partial(_zoo, "lenet", batch=16),
    "lenet, adam": partial(_zoo, "lenet", "adam", batch=64),
    "perceptron": perceptron,
    "recommender": partial(recommender, rows=500, width=16, batch=64),
}

WITHIN: dict[str, Callable[[], Graph]] = {
    "wresnet-50-4": partial(_zoo, "wresnet-50-4", batch=128),
    "wresnet-152-10": partial(_zoo, "wresnet-152-10", batch=8),
    "rnn-10-8k": partial(_zoo, "rnn-10-8k", batch=128),
}


def drawn(count: int, kernels: bool) -> dict[str, Any]:
    """Return what became of random limits of arenas, or of arenas and the workspace of kernels."""
    chance = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    between: list[float] = []
    cases = []
    for name, make in SMALL.items():
        graph = make()
        for workers in (2, 4, 8):
            needs = needs_of(graph) if kernels else Needs(partial(peak_bytes, graph))
            most = _needed(graph, partition(graph, workers), kernels)
            least = least_peak_bytes(graph, workers, needs.scratch)
            cases.append((name, graph, workers, needs, least, most))
    start = time.process_time()
    for _ in range(count):
        name, graph, workers, needs, least, most = chance.choice(cases)
        limit = chance.randint(least // 2, int(most * 1.2))
        found = find_plan_within(graph, workers, SearchSettings("recursive"), limit, needs)
        needed = _needed(graph, found.plan, kernels)
        if needed <= limit:
            outcome = "fits"
        elif limit < found.least_bytes:
            outcome = "refused, proven"
        else:
            outcome = "refused, not proven"
            between.append(round(limit / least, 4))
        outcomes[outcome] += 1
        if (found.peak_bytes <= limit) != (needed <= limit):
            wrong.append({"model": name, "workers": workers, "limit": limit, "needed": needed})
    return {
        "limits": count,
        **outcomes,
        "wrong": wrong,
        "limit_of_minimum_where_not_proven": {
            "least": min(between, default=None),
            "most": max(between, default=None),
        },
        "seconds": round(time.process_time() - start, 1),
    }


def _needed(graph: Graph, plan: Plan, kernels: bool) -> int:
    """Return the memory of the fullest worker of a lowered plan."""
    found = footprint(lower(graph, plan))
    return found.peak_bytes if kernels else max(found.arena_bytes)


def within(graph: Graph, limit: int, replicate: bool = True, keep: bool = True) -> dict[str, Any]:
    """Return the figures of a search within a limit."""
    start = time.process_time()
    settings = SearchSettings("exact", replicate=replicate, keep=keep, feed="anywhere")
    found = find_plan_within(graph, WORKERS, settings, limit, Needs(partial(peak_bytes, graph)))
    entry = {
        "space": str(settings.space()),
        "limit_bytes": limit,
        "least_peak_bytes": least_peak_bytes(graph, WORKERS),
        "fits": found.peak_bytes <= limit,
        **_figures(found),
        "seconds": round(time.process_time() - start, 1),
    }
    if found.without_copies is not None:
        entry["without_further_copies"] = _figures(found.without_copies)
    return entry


def _figures(found: Fitting) -> dict[str, int]:
    return {
        "cost_bytes": found.plan.cost_bytes,
        "lower_bound_bytes": found.plan.lower_bound_bytes,
        "peak_bytes": found.peak_bytes,
    }


def tabled(name: str) -> dict[str, Any]:
    """Return a row of the table."""
    small = name.removesuffix(" within 8 GB")
    if small != name:
        return within(WITHIN[small](), WITHIN_BYTES)
    graph = MODELS[name]()
    split = partition(graph, WORKERS, "refine", replicate=False, keep=False, feed="anywhere")
    narrow = {"cost_bytes": split.cost_bytes, "peak_bytes": peak_bytes(graph, split)}
    return {"split": narrow, **within(graph, int(narrow["peak_bytes"] * MORE))}


def lighter(name: str) -> dict[str, Any]:
    """Return the best plan that replicates only, and what copies move within a little less memory."""
    graph = MODELS[name]()
    plan = partition(graph, WORKERS, "exact", replicate=True, keep=False, feed="anywhere")
    replicated = {"cost_bytes": plan.cost_bytes, "peak_bytes": peak_bytes(graph, plan)}
    return {"replicated": replicated, **within(graph, int(replicated["peak_bytes"] * LESS))}


def row(name: str, entry: dict[str, Any]) -> str:
    """Return an entry as a line of a table."""
    moved, proven, peak = (entry[key] / MIB for key in ("cost_bytes", "lower_bound_bytes", "peak_bytes"))
    before = entry.get("replicated")
    than = "" if before is None else f" instead of {before['cost_bytes'] / MIB:10.1f}"
    return (
        f"{name:28} {moved:10.1f}{than} {proven:10.1f} {1 - proven / moved:7.2%} peak {peak:8.1f} of "
        f"{entry['limit_bytes'] / MIB:8.1f}, least {entry['least_peak_bytes'] / MIB:8.1f}, "
        f"{entry['seconds']:6.1f} s"
    )


ROWS = {
    "table": (tabled, (*MODELS, *(f"{name} within 8 GB" for name in WITHIN))),
    "lighter": (lighter, tuple(MODELS)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["random", *ROWS])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models of the table; all if left out")
    parser.add_argument("--count", type=int, default=1000, help="the number of random limits")
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        results = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    if arguments.part == "random":
        for name, kernels in (("arenas", False), ("with kernels", True)):
            results.setdefault("random", {})[name] = drawn(arguments.count, kernels)
            print(name, results["random"][name], flush=True)
            keep({**described(), "results": results}, arguments.save)
        return
    measured, models = ROWS[arguments.part]
    for name in arguments.models or models:
        entry = results.setdefault(arguments.part, {})[name] = measured(name)
        print(row(name, entry), flush=True)
        keep({**described(), "results": results}, arguments.save)


if __name__ == "__main__":
    main()
