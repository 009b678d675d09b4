"""FlexFlow's models on the clusters of its figure 5, simulated: its search and ours next to other plans.

python -m benchmarks.flexflow [--model AlexNet] [--cluster P100] [--devices 16] [--method anneal]
                              [--seconds 30] [--proposals N] [--slower X]
                              [--save benchmarks/results/flexflow.json]

Models are those of its Table 4 with 64 samples a device (AlexNet: 256). Recurrent networks have 40 steps.
The table leaves open the vocabularies, here 10,000 words and 32,000 for NMT, and NMT's attention, here by
products. `step-time` is recursion that minimises the time of steps. `hops` after the name of a method is its
plan with transfers in several hops, and `merged` that for the graph with merged operations. Chains of both
searches have the same budget, seconds or proposals, and their rows say which. Rows that the file has already
are passed over. `search_seconds` is the processor time of the whole search, starts included, and `compute_ms`
the time of all tasks together. `bound_ms` is the least time of the plan's tasks and transfers in any order,
and `least_ms` that of any plan for the graph (`tofu.simulator.least_step`). All times are simulated, from
estimated times of operators.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Graph
from tofu.dataflow.merging.merged import merged
from tofu.errors import TofuError
from tofu.machines.machine import Machine
from tofu.partitioner import in_several_hops
from tofu.partitioner.methods.search import find_plan
from tofu.partitioner.methods.settings import SearchSettings
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.simulation import Simulations, simulation
from tofu.simulator.least_step import least_step
from tofu.simulator.times import NANOSECONDS, task_times

from .machine import described
from .record import keep

CLUSTERS = {"P100": "p100-node", "K80": "k80-node"}
BASELINES = ("data-parallel", "one-weird-trick", "wu-2016", "recursive", "refine")
ON_MACHINES = ("step-time", "data-parallel hops", "step-time hops")
SEARCHES = ("flexflow", "anneal")
MERGED = ("data-parallel merged", "anneal merged")
CELL = ("model", "cluster", "devices", "method")

MODELS: dict[str, tuple[str, dict[str, int], int]] = {
    "AlexNet": ("alexnet", {}, 256),
    "Inception-v3": ("inception-v3", {}, 64),
    "ResNet-101": ("resnet-101", {}, 64),
    "RNNTC": ("rnn-4-1k", {"steps": 40, "features": 1024, "classes": 2}, 64),
    "RNNLM": (
        "lstm",
        {"layers": 2, "hidden": 2048, "steps": 40, "embedding": 2048, "vocabulary": 10_000},
        64,
    ),
    "NMT": ("nmt", {"vocabulary": 32_000}, 64),
}
"""The models: the name and the options in the zoo, and the samples of a device."""


def cluster_of(cluster: str, devices: int) -> Machine:
    """Return a cluster with some of its devices."""
    nodes = devices // 4
    return tofu.machines.load(CLUSTERS[cluster] if nodes == 1 else f"{nodes}x-{CLUSTERS[cluster]}")


def computing_seconds(graph: Graph, plan: Plan, machine: Machine) -> float:
    """Return the time of all tasks together."""
    times, found = task_times(graph, machine, plan.workers), 0
    for operation in graph.operations:
        listed = plan.tasks[operation.name]
        boxes = np.array([task.box for task in listed], np.int64).reshape(len(listed), -1, 2)
        found += int(times(operation, np.array([task.worker for task in listed]), boxes).sum())
    return found / NANOSECONDS


@functools.lru_cache(maxsize=2)
def graph_of(model: str, devices: int, merging: bool = False) -> Graph:
    """Return the training graph of a model, with merged operations if asked for."""
    if merging:
        return merged(graph_of(model, devices))
    name, options, samples = MODELS[model]
    return tofu.models.get(name, batch=samples * devices, **options).training_graph()


@functools.lru_cache(maxsize=len(BASELINES))
def baseline(model: str, devices: int, method: str, merging: bool = False) -> tuple[Plan, float]:
    """Return a plan that needs no machine, and the seconds in which it was found."""
    begin = time.process_time()
    plan = tofu.partition(graph_of(model, devices, merging), devices, method, memory="unlimited")
    return plan, time.process_time() - begin


@functools.lru_cache(maxsize=1)
def step_time(model: str, cluster: str, devices: int) -> tuple[Plan, float]:
    """Return the plan of recursion for the time of steps, and the seconds in which it was found."""
    begin = time.process_time()
    settings = SearchSettings("recursive", machine=cluster_of(cluster, devices), objective="step-time")
    return find_plan(graph_of(model, devices), devices, settings), time.process_time() - begin


@functools.lru_cache(maxsize=2)
def least_ms(model: str, cluster: str, devices: int, merging: bool) -> float:
    """Return a bound on the time of any plan."""
    found = least_step(graph_of(model, devices, merging), cluster_of(cluster, devices), devices)
    return round(found.seconds * 1e3, 3)


def in_hops(graph: Graph, plan: Plan, machine: Machine) -> tuple[Plan, float]:
    """Return a plan with transfers in several hops, and the seconds in which it was found."""
    begin = time.process_time()
    simulations = Simulations(graph, machine)
    found = in_several_hops(graph, plan, machine, lambda each: simulations.of(each).seconds)
    return found, time.process_time() - begin


def planned(
    model: str, cluster: str, devices: int, method: str, budget: dict[str, Any]
) -> tuple[Plan, float]:
    """Return the plan of a method on a machine, and the seconds in which it was found."""
    name, merging = method.split()[0], method in MERGED
    if name in BASELINES and method not in ON_MACHINES:
        return baseline(model, devices, name, merging)
    graph, machine = graph_of(model, devices, merging), cluster_of(cluster, devices)
    if method in ON_MACHINES:
        start = step_time(model, cluster, devices) if name == "step-time" else baseline(model, devices, name)
        if method == name:
            return start
        plan, spent = in_hops(graph, start[0], machine)
        return plan, start[1] + spent
    begin = time.process_time()
    plan = tofu.partition(graph, devices, name, memory="unlimited", machine=machine, **budget)
    return plan, time.process_time() - begin


def row(model: str, cluster: str, devices: int, method: str, budget: dict[str, Any]) -> dict[str, Any]:
    """Return what one method finds; raise `TofuError` if it cannot make a plan."""
    plan, spent = planned(model, cluster, devices, method, budget)
    merging = method in MERGED
    graph, machine = graph_of(model, devices, merging), cluster_of(cluster, devices)
    timeline = simulation(graph, plan, machine)
    return {
        "model": model,
        "cluster": cluster,
        "devices": devices,
        "operations": len(graph.operations),
        "method": method,
        **(budget if method.split()[0] in SEARCHES else {}),
        "step_ms": round(timeline.seconds * 1e3, 3),
        "bound_ms": round(timeline.bound_seconds * 1e3, 3),
        "least_ms": least_ms(model, cluster, devices, merging),
        "moved_mb": round(plan.cost_bytes / 1e6, 1),
        "compute_ms": round(computing_seconds(graph, plan, machine) * 1e3, 3),
        "search_seconds": round(spent, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--cluster", choices=CLUSTERS, action="append")
    parser.add_argument("--devices", type=int, action="append")
    parser.add_argument("--method", choices=(*BASELINES, *ON_MACHINES, *SEARCHES, *MERGED), action="append")
    parser.add_argument("--seconds", type=float, help="of each search; 30 by default")
    parser.add_argument("--proposals", type=int, help="of each chain, instead of seconds")
    parser.add_argument("--slower", type=float, help="with --method anneal, see `tofu plan --slower`")
    parser.add_argument("--save", type=Path, help="add the results to this file, after each row")
    asked = parser.parse_args()
    given = {"seconds": asked.seconds, "proposals": asked.proposals}
    budget = {name: each for name, each in given.items() if each is not None} or {"seconds": 30.0}
    if asked.slower:
        budget["slower"] = asked.slower
    found: list[dict[str, Any]] = []
    if asked.save is not None and asked.save.exists():
        found = json.loads(asked.save.read_text(encoding="utf-8"))["results"]
    known = {tuple(each[name] for name in CELL) for each in found}
    cells = itertools.product(
        asked.devices or (4, 16, 64),
        asked.model or MODELS,
        asked.cluster or CLUSTERS,
        asked.method or (*BASELINES, *ON_MACHINES, *SEARCHES, *MERGED),
    )
    for devices, model, cluster, method in cells:
        if (model, cluster, devices, method) in known:
            continue
        try:
            made = row(model, cluster, devices, method, budget)
        except TofuError as error:
            print(model, devices, method, error, flush=True)
            continue
        print(json.dumps(made), flush=True)
        found.append(made)
        keep({**described(), "results": found}, asked.save)


if __name__ == "__main__":
    main()
