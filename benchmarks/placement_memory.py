"""Placements of whole operations within limits of memory.

    python -m benchmarks.placement_memory [--only limits] [--save benchmarks/results/placement_memory.json]

*Limits*: `pardnn` for models on 2 to 16 devices, within 1.1, 1.25 and 1.5 times an even share of the arena of
one device. A row says by how much the largest arena of the plan stays below the limit, or why the limit is
refused, and the processor seconds of the search. `shared` counts operations that several devices share.
A row of a refusal has two bounds. `least_bytes` holds if devices share only the operations that none can
hold: the largest other one with what it reads, makes and overwrites, or an even share of what lasts.
`least_shared_bytes` holds for plans by which all devices share all operations.
`earlier` marks rows that are older than the last change of the search.

*Batches*: the largest batch, of powers of two, for which the operations of a model fit 1 to 16 devices of 32
GB, by ParDNN's placement and the exact planner, next to the paper's (ParDNN, table 4). *Ideal* is the largest
batch of one device, times the devices.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import PlanError
from tofu.partitioner import Needs, find_plan_within
from tofu.partitioner.lowering.arenas import Arenas
from tofu.partitioner.methods.pardnn.pardnn import place
from tofu.partitioner.methods.placement.mend import least_bytes, mend
from tofu.partitioner.methods.placement.placing import Placing
from tofu.partitioner.methods.placement.priorities import emulated
from tofu.partitioner.methods.settings import SearchSettings
from tofu.partitioner.methods.simulated import SimulatedSearch
from tofu.partitioner.methods.worker_memory import WorkerMemory
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.live_bytes import LiveBytes

from .record import record_parts

MACHINE = "2x-dgx-1-v100"
MODELS: dict[str, dict[str, Any]] = {
    "mlp": {},
    "lenet": {},
    "alexnet": {},
    "vgg-16": {},
    "resnet-50": {},
    "inception-v3": {},
    "wresnet-50-4": {"batch": 32},
    "transformer-6-512": {},
    "gpt-12-768": {},
    "rnn-6-4k": {},
    "lstm": {"batch": 64},
    "gru": {"batch": 64},
    "word-rnn": {"batch": 64},
    "char-crn": {"batch": 64},
}
SHARES = (1.1, 1.25, 1.5)
DEVICES = (2, 4, 8, 16)

DEVICE_BYTES = 32 * 10**9
PAPER: dict[str, dict[int, int]] = {
    "word-rnn": {1: 16, 2: 512, 4: 1024, 8: 2048, 16: 2048},
    "char-crn": {1: 8, 2: 256, 4: 512, 8: 1024, 16: 2048},
    "trn": {1: 1, 2: 8, 4: 32, 8: 64, 16: 128},
    "e3d": {1: 1, 2: 8, 4: 16, 8: 16, 16: 32},
}
"""The largest batches of table 4, by devices."""

MOST = 1 << 18

INSIDE = SearchSettings("refine", keep=False, feed="anywhere")
"""The settings of plans by which workers share operations."""

UNLIMITED = 1 << 60
"""More bytes than any model needs."""


def limits() -> Iterator[dict[str, Any]]:
    """Yield a row for each model, number of devices and limit."""
    for name, options in MODELS.items():
        graph = tofu.models.get(name, **options).training_graph()
        arenas = Arenas(graph)
        alone = arenas.largest(tofu.partition(graph, 1))
        for devices in DEVICES:
            placing, schedule = placed(graph, devices, arenas)
            for share in SHARES:
                limit = int(alone / devices * share)
                begin = time.process_time()
                row = _within(placing, schedule, graph, devices, arenas, limit)
                yield {
                    "model": name,
                    "devices": devices,
                    "share": share,
                    "limit_bytes": limit,
                    "search_seconds": round(time.process_time() - begin, 2),
                    **row,
                }


def placed(graph: Graph, devices: int, arenas: Arenas) -> tuple[Placing, Any]:
    """Return ParDNN's placement without a limit."""
    placing = Placing(asked_for(graph, devices, arenas, UNLIMITED), devices)
    nodes = placing.training.nodes
    return placing, emulated(nodes, placing.devices, place(nodes, placing.devices))[1]


def asked_for(graph: Graph, devices: int, arenas: Arenas, limit: int) -> SimulatedSearch:
    """Return what methods are asked that place whole operations within a limit on arenas."""
    memory = WorkerMemory(limit, arenas.largest, None)
    machine = tofu.machines.load(MACHINE)
    return SimulatedSearch(
        graph,
        devices,
        Space(feed="anywhere"),
        machine,
        Sampling(),
        None,
        lambda: (),
        memory,
        partial(_inside, graph),
        inside_memory=lambda: find_plan_within(graph, devices, INSIDE, limit, Needs(arenas.largest)).plan,
    )


@lru_cache(maxsize=8)
def _inside(graph: Graph, workers: int) -> tofu.plans.Plan:
    """Return the plan by which all workers share operations that are too large for one."""
    return tofu.partition(graph, workers, "refine", keep=False, feed="anywhere")


def _within(
    placing: Placing, schedule: Any, graph: Graph, devices: int, arenas: Arenas, limit: int
) -> dict[str, Any]:
    limited = Placing(asked_for(graph, devices, arenas, limit), devices)
    try:
        plan = limited.fitting_tighter(schedule)
    except PlanError as error:
        return {
            "fits": False,
            "why": str(error)[:150],
            "least_bytes": least(limited),
            "least_shared_bytes": LiveBytes.of(build_problem(graph)).least_bytes(devices),
        }
    shared = sum(len(tasks) > 1 for tasks in plan.tasks.values())
    return {
        "fits": True,
        "peak_bytes": arenas.largest(plan),
        "seconds": plan.step_seconds,
        "shared": shared,
    }


def least(placing: Placing) -> int:
    """Return a bound on the fullest worker, if workers share only the operations that none can hold."""
    nodes = placing.training.nodes
    lasting = int((nodes.whole_bytes * nodes.lasting).sum())
    return max(int(least_bytes(nodes).max()), -(-lasting // placing.devices.workers))


def batches() -> Iterator[dict[str, Any]]:
    """Yield the largest batches of each model."""
    for name, paper in PAPER.items():
        alone = largest = 0
        for devices in (1, *DEVICES):
            batch = max(2 * largest, 1)
            while batch <= MOST and _fits(name, batch, devices):
                largest, batch = batch, 2 * batch
            alone = alone or largest
            yield {
                "model": name,
                "devices": devices,
                "largest_batch": largest,
                "ideal": alone * devices,
                "paper": paper[devices],
            }


@lru_cache(maxsize=2)
def _model(name: str, batch: int) -> tuple[Graph, Arenas]:
    graph = tofu.models.get(name, batch=batch).training_graph()
    return graph, Arenas(graph)


def _fits(name: str, batch: int, devices: int) -> bool:
    """Tell whether moves make ParDNN's placement fit."""
    graph, arenas = _model(name, batch)
    _, schedule = placed(graph, devices, arenas)
    limited = Placing(asked_for(graph, devices, arenas, DEVICE_BYTES), devices)
    try:
        mend(limited.training.nodes, limited.devices, schedule.order, schedule.worker)
    except PlanError:
        return False
    return True


if __name__ == "__main__":
    record_parts({"limits": limits, "batches": batches}, __doc__)
