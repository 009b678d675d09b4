"""Frontiers of step time and memory, with what others would take (TensorOpt, figures 6 to 8, table 3).

    python -m benchmarks.frontiers [MODEL[:BATCH] ...] [--machine dgx-1-v100] [--workers 8] [--save FILE]

Each model's frontier is found without a limit of memory. Without models it is the whole zoo, the fewest
operations first, except those that the file has already. A row has its points (seconds, bytes, segments that
are computed again), what is proven, the seconds of the processor, and how the plans compare that other
systems are limited to, each simulated and with its arena:

    data parallel    the baseline `data-parallel`
    least time       the fastest plan, whatever its memory (OptCNN, and FlexFlow without placement)
    no replication   the plan of `refine` that splits all that can be split (Tofu)
    one mesh         the best mesh of `megatron`, if the model has the layers for it (Mesh-TensorFlow)

`gap` is how far the fastest plan within an amount of memory is above what is proven for it, at the least
memory, at the most, and between them. `turn` is the number of the turning point: the point that is farthest
below the line from the first point to the last one, if both axes are scaled to the same length.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.machines.machine import Machine
from tofu.partitioner import Plan, lower, partition, peak_bytes
from tofu.partitioner.methods.frontier import Frontier

from .machine import described
from .record import keep

SEARCHES: dict[str, dict[str, Any]] = {
    "data parallel": {"method": "data-parallel"},
    "no replication": {"method": "refine", "replicate": False, "keep": False},
    "one mesh": {"method": "megatron"},
}


def searched(
    name: str, batch: int | None, machine: Machine, workers: int, **settings: Any
) -> tuple[Graph, Frontier, float]:
    """Return the graph of a model, its frontier without a limit, and the seconds of the processor."""
    graph = tofu.models.get(name, batch).training_graph()
    start = _processor_seconds()
    found = tofu.frontier(graph, workers, machine, "unlimited", **settings)
    return graph, found, _processor_seconds() - start


def _processor_seconds() -> float:
    """Return the seconds of all processors that this process and those that it started have taken."""
    return sum(os.times()[:4])


def row(name: str, batch: int | None, machine: Machine, workers: int) -> dict[str, Any]:
    """Return the frontier of a model, and the plans of others."""
    graph, found, seconds = searched(name, batch, machine, workers)
    others = {}
    for title, settings in SEARCHES.items():
        try:
            plan = partition(graph, workers, **settings)
        except tofu.PlanError as error:
            others[title] = {"refused": str(error)}
            continue
        others[title] = _figures(graph, plan, machine)
    return {
        "model": name,
        "batch": batch,
        "machine": machine.name,
        "workers": workers,
        "operations": len(graph.operations),
        "seconds": round(seconds, 1),
        "points": [[p.seconds, p.peak_bytes, p.recompute] for p in found.points],
        "lower": [[p.seconds, p.peak_bytes] for p in found.lower],
        "gap": gaps(found),
        "turn": turning_point(found),
        "others": others,
    }


def _figures(graph: Graph, plan: Plan, machine: Machine) -> dict[str, Any]:
    return {
        "seconds": tofu.simulate(lower(graph, plan), machine).seconds,
        "peak_bytes": peak_bytes(graph, plan),
    }


def gaps(found: Frontier) -> list[float]:
    """Return the gap in time at the least memory of a point, half way, and at the most."""
    least, most = found.points[0].peak_bytes, found.points[-1].peak_bytes
    gaps = []
    for memory in (least, (least + most) // 2, most):
        seconds = next(p.seconds for p in reversed(found.points) if p.peak_bytes <= memory)
        proven = next(p.seconds for p in reversed(found.lower) if p.peak_bytes <= memory)
        gaps.append(round(seconds / proven - 1, 4))
    return gaps


def turning_point(found: Frontier) -> int:
    """Return the number of the point below which less memory costs most time."""
    first, last = found.points[0], found.points[-1]
    seconds, memory = first.seconds - last.seconds, last.peak_bytes - first.peak_bytes

    def below(number: int) -> float:
        """Return how far a point is below the line, in lengths of the scaled axes."""
        point = found.points[number]
        slower, more = point.seconds - last.seconds, point.peak_bytes - first.peak_bytes
        return 1 - slower / seconds - more / memory if seconds else 0.0

    return max(range(len(found.points)), key=below)


def _fewest_first() -> list[str]:
    """Return the models of the zoo by the number of their operations."""

    def operations(name: str) -> int:
        return len(tofu.models.get(name).training_graph().operations)

    return sorted(tofu.models.names(), key=operations)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL[:BATCH]")
    parser.add_argument("--machine", default="dgx-1-v100")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    if arguments.save is not None and arguments.save.exists():
        results = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    machine = tofu.machines.load(arguments.machine)
    known = {
        each["model"]
        for each in results
        if (each["machine"], each["workers"]) == (machine.name, arguments.workers)
    }
    for model in arguments.models or [name for name in _fewest_first() if name not in known]:
        name, _, batch = model.partition(":")
        made = row(name, int(batch) if batch else None, machine, arguments.workers)
        key = ("model", "batch", "machine", "workers")
        results = [each for each in results if any(each[field] != made[field] for field in key)]
        results.append(made)
        print(json.dumps({field: made[field] for field in (*key, "seconds", "gap")}), flush=True)
        keep({**described(), "results": results}, arguments.save)


if __name__ == "__main__":
    main()
