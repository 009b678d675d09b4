"""Placements on groups of devices, with several micro-batches, against splits alone.

    python -m benchmarks.pipelines [--save benchmarks/results/pipelines.json] [MODEL ...]

For 4 and 8 devices of `dgx-1-v100`, 1 to 16 micro-batches in one graph, and every number of groups, `place`
finds a plan whose arenas fit the memory of the devices. `8x1` places whole operations, and `2x4` places them
on two groups of four devices that split them. `seconds` is the simulated time of an iteration, all
micro-batches and the update, `speedup` that of one device over it, whether the model fits one device or not.
*Split* is the fastest of `refine`, `data-parallel` and `recursive` for `step-time`, on the whole batch.
Combinations that are in the file already are passed over.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import TofuError
from tofu.partitioner import peak_bytes
from tofu.partitioner.lowering.arenas import Arenas
from tofu.partitioner.methods.placement.search import place
from tofu.partitioner.methods.simulated import SimulatedSearch
from tofu.partitioner.methods.worker_memory import WorkerMemory
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.space import Space
from tofu.simulator.operation_seconds import operation_seconds

from .machine import described
from .record import keep

MACHINE = "dgx-1-v100"
MODELS: dict[str, dict[str, Any]] = {"wresnet-50-4": {"batch": 32}, "gpt-12-768": {"batch": 16}}
DEVICES = (4, 8)
MICRO_BATCHES = (1, 2, 4, 8, 16)
SPLITS: dict[str, dict[str, Any]] = {
    "refine": {},
    "data-parallel": {},
    "recursive": {"objective": "step-time"},
}


def rows(models: list[str], known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the file, then those that it lacks."""
    yield from known
    done = {(row["model"], row["devices"], row["micro_batches"], row["groups"]) for row in known}
    for name in models:
        model = tofu.models.get(name, **MODELS[name])
        whole = model.training_graph()
        alone = sum(
            seconds for each in operation_seconds(whole, MACHINE).values() for seconds in each.values()
        )
        for devices in DEVICES:
            if (name, devices, 1, "split") not in done:
                yield split(name, whole, devices, alone)
            for count in MICRO_BATCHES:
                graph = whole if count == 1 else model.training_graph(accumulate=count, unroll=True)
                for groups in (g for g in range(devices, 1, -1) if devices % g == 0):
                    labels = f"{groups}x{devices // groups}"
                    if (name, devices, count, labels) not in done:
                        yield placed(name, graph, devices, count, labels, alone)


def placed(name: str, graph: Graph, devices: int, count: int, groups: str, alone: float) -> dict[str, Any]:
    """Return the row of a placement."""
    found = {"model": name, "devices": devices, "micro_batches": count, "groups": groups}
    begin = time.perf_counter()
    try:
        plan = place(asked(graph, devices, int(groups.partition("x")[0])))
    except TofuError as error:
        return {**found, "error": str(error)[:160]}
    return {**found, **figures(graph, plan, alone), "search_seconds": round(time.perf_counter() - begin, 1)}


def asked(graph: Graph, devices: int, groups: int) -> SimulatedSearch:
    """Return what `place` is asked: a plan whose arenas fit the memory of the devices."""
    machine = tofu.machines.load(MACHINE)
    assert machine.memory_bytes is not None
    limit = WorkerMemory(machine.memory_bytes, Arenas(graph).largest, None)
    inside = partial(tofu.partition, graph, method="refine", keep=False, feed="anywhere")
    space = Space(feed="batch")
    return SimulatedSearch(
        graph, devices, space, machine, Sampling(), None, lambda: (), limit, inside, groups
    )


def split(name: str, graph: Graph, devices: int, alone: float) -> dict[str, Any]:
    """Return the row of the fastest split that fits."""
    found: dict[str, tofu.plans.Plan] = {}
    for method, others in SPLITS.items():
        try:
            found[method] = tofu.partition(graph, devices, method, machine=MACHINE, **others)
        except TofuError:
            continue
    row = {"model": name, "devices": devices, "micro_batches": 1, "groups": "split"}
    if not found:
        return {**row, "error": "nothing fits"}
    best = min(found, key=lambda method: found[method].step_seconds or 0.0)
    return {**row, "method": best, **figures(graph, found[best], alone)}


def figures(graph: Graph, plan: tofu.plans.Plan, alone: float) -> dict[str, Any]:
    """Return the figures of a plan."""
    assert plan.step_seconds is not None
    assert plan.step_bound_seconds is not None
    return {
        "seconds": round(plan.step_seconds, 5),
        "bound_seconds": round(plan.step_bound_seconds, 5),
        "speedup": round(alone / plan.step_seconds, 3),
        "peak_bytes": peak_bytes(graph, plan),
        "moved_bytes": plan.cost_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--save", type=Path, help="write the results to this file after each row")
    arguments = parser.parse_args()
    known = []
    if arguments.save is not None and arguments.save.exists():
        known = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    found: list[dict[str, Any]] = []
    for row in rows(arguments.models or list(MODELS), known):
        print(json.dumps(row), flush=True)
        found.append(row)
        keep({**described(), "machine_file": MACHINE, "results": found}, arguments.save)


if __name__ == "__main__":
    main()
