"""Theorem 1's remark on hierarchical machines, measured: what crosses each level, and for how long.

python -m benchmarks.hierarchy [--save benchmarks/results/hierarchy.json]

Section 5.2 of the paper says that recursion sends least over the top of a hierarchy, since its first step
moves least. A step's bytes count what a group lacks once; the links carry what every worker of the group
fetches. So both are printed, for plans that minimise bytes and for plans that minimise the time over the
links: `step_gb` by step, `crossing_gb` and `busiest_ms` by level, outermost first, `transfer_ms` for the
whole iteration, as `traffic` estimates it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.machines.machine_file import load_machine
from tofu.partitioner import Plan, lower, partition
from tofu.partitioner.costs.traffic import traffic

from .machine import described
from .record import keep, printed
from .space import PAPER

WORKERS = 8
MODELS = {"wresnet-50-4": 128, "wresnet-152-10": 8, "rnn-4-8k": 512}
MACHINES = ("pcie-8", "dgx-1-v100")
METHODS = ("recursive", "exact")


def measured() -> Iterator[dict[str, Any]]:
    for name, batch in MODELS.items():
        graph = tofu.models.get(name, batch=batch).training_graph()
        for method in METHODS:
            named = {"model": name, "batch": batch, "method": method}
            plan = partition(graph, WORKERS, method, **PAPER)
            for machine in MACHINES:
                yield {**named, "objective": "bytes", **on_links(graph, plan, machine)}
            for machine in MACHINES:
                plan = partition(graph, WORKERS, method, machine=machine, objective="time", **PAPER)
                yield {**named, "objective": "time", **on_links(graph, plan, machine)}


def on_links(graph: Graph, plan: Plan, machine: str) -> dict[str, Any]:
    """Return a plan's bytes by step and by level, and its time over the links."""
    found = traffic(lower(graph, plan), load_machine(machine))
    return {
        "machine": machine,
        "gb": round(plan.cost_bytes / 1e9, 3),
        "step_gb": [round(cost / 1e9, 3) for cost in plan.step_cost_bytes],
        "levels": list(found.levels),
        "crossing_gb": [round(crossing / 1e9, 3) for crossing in found.crossing_bytes],
        "busiest_ms": [round(busiest * 1e3, 2) for busiest in found.busiest_seconds],
        "transfer_ms": round(found.transfer_seconds * 1e3, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    keep({**described(), "results": printed(measured())}, arguments.save)


if __name__ == "__main__":
    main()
