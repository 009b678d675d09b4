"""Large graphs: the time from a plan to a schedule, its growth, and how much of a step overlaps.

    python -m benchmarks.scale [--only placed|split|overlap] [--save benchmarks/results/scale.json]

*Placed*: LSTMs of 32 layers, two neighbouring layers on each of 16 workers. *Split*: such LSTMs, every
operation split over 16 workers by the plan of `recursive`. Seconds are processor seconds; `total` is lowering,
memory plan and schedule. Every size runs in a process of its own, whose peak includes the graph and the plan.

*Overlap*: an LSTM of 4 layers and 8 steps, one layer on each of 4 workers, with kernels that only sleep. No
order can take less than `bound_seconds`: the longest chain of dependences, or the work of one worker.
`simulated_seconds` is what a simulation of the order gives, in which an operation starts as soon as its inputs
are made and its worker has finished the operations before. `seconds` is the median of measured steps.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Graph
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.partitioner.plans.plan import Plan
from tofu.plans import Spread, compose
from tofu.programs import plan_memory, schedule
from tofu.programs.program import PartitionedGraph
from tofu.runtime.executor import Executor

from .machine import described
from .record import keep, printed

WORKERS = 16
LAYERS = 32
PLACED_STEPS = (20, 40, 80, 160)
SPLIT_STEPS = (5, 10, 20, 40)

OVERLAP_LAYERS = 4
OVERLAP_STEPS = 8
SLEEP_SECONDS = 0.004
MEASURED_STEPS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        results = json.loads(arguments.save.read_text(encoding="utf-8"))
    for part in arguments.only or PARTS:
        results[part] = {**described(), "results": printed(PARTS[part]())}
        keep(results, arguments.save)


def layers_on_workers(graph: Graph, layers: int, workers: int) -> Plan:
    """Place the layers of a recurrent network on workers, neighbours together."""

    def form(name: str) -> Spread:
        found = re.search(r"_l(\d+)_", name)
        return forms[int(found[1]) if found else 0 if "embed" in name or name == "data" else layers - 1]

    forms = [Spread((), (layer * workers // layers,)) for layer in range(layers)]
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    return compose(
        graph,
        workers,
        {operation.name: form(operation.name) for operation in graph.operations},
        {tensor.name: form(tensor.name) for tensor in graph.tensors if tensor.index not in made},
    )


def placed(steps: int) -> dict[str, Any]:
    """Place an LSTM's layers on workers."""
    return _prepared(steps, lambda graph: layers_on_workers(graph, LAYERS, WORKERS))


def split(steps: int) -> dict[str, Any]:
    """Split an LSTM's operations over all workers."""
    return _prepared(steps, lambda graph: tofu.partition(graph, WORKERS))


def _prepared(steps: int, planned: Callable[[Graph], Plan]) -> dict[str, Any]:
    """Go from a model to the schedule; give the seconds of every stage."""
    seconds: dict[str, float] = {}

    def timed(stage: str, function: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = function()
        seconds[stage] = round(time.process_time() - start, 2)
        return result

    model = tofu.models.get(f"rnn-{LAYERS}-1k", batch=64, steps=steps)
    graph = timed("graph", model.training_graph)
    plan = timed("plan", lambda: planned(graph))
    program = timed("lower", lambda: tofu.lower(graph, plan))
    memory = timed("memory", lambda: plan_memory(program))
    timed("schedule", lambda: schedule(program, memory))
    return {
        "steps": steps,
        "operations": len(graph.operations),
        "instructions": sum(len(each.instructions) for each in program.programs),
        "seconds": seconds | {"total": round(sum(seconds[s] for s in ("lower", "memory", "schedule")), 2)},
        "process_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _growth(case: Callable[[int], dict[str, Any]], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the case in every size; then the exponent of each stage's time in the number of operations."""
    rows = []
    for size in sizes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            rows.append(pool.submit(case, size).result())
        yield rows[-1]
    operations = [math.log(row["operations"]) for row in rows]
    yield {
        "exponents": {
            stage: round(float(np.polyfit(operations, [math.log(r["seconds"][stage]) for r in rows], 1)[0]), 2)
            for stage in rows[0]["seconds"]
        }
    }


def overlap() -> Iterator[dict[str, Any]]:
    """Yield the bound, then simulated and measured seconds in the order of the graph and of the simulation."""
    model = tofu.models.get("lstm", batch=2, layers=OVERLAP_LAYERS, steps=OVERLAP_STEPS, hidden=4)
    graph = model.training_graph()
    plan = layers_on_workers(graph, OVERLAP_LAYERS, OVERLAP_LAYERS)
    workers = [int(plan.strategies[each.name].workers[0]) for each in graph.operations]
    dependences = Dependences.of(graph)
    bound = dependences.bound(workers) * SLEEP_SECONDS
    graph_order = range(len(graph.operations))
    best = sorted(graph_order, key=dependences.starts(workers).__getitem__)
    for name, order in (("graph", graph_order), ("simulated starts", best)):
        starts = dependences.starts(workers, order)
        program = tofu.lower(graph, replace(plan, order=tuple([graph.operations[i].name for i in order])))
        seconds = slept_seconds(program, SLEEP_SECONDS)
        simulated = (max(starts) + 1) * SLEEP_SECONDS
        yield {
            "order": name,
            "operations": len(graph.operations),
            "bound_seconds": round(bound, 3),
            "simulated_seconds": round(simulated, 3),
            "seconds": round(seconds, 3),
            "over_simulated": round(seconds / simulated, 3),
            "over_bound": round(seconds / bound, 3),
        }


@dataclass(frozen=True, slots=True)
class Dependences:
    """Which operations come after which, each taking one unit of time."""

    before: tuple[frozenset[int], ...]
    """For each operation, those that make its inputs, or read what it overwrites."""

    after: tuple[tuple[int, ...], ...]
    """For each operation, those that it comes before."""

    @classmethod
    def of(cls, graph: Graph) -> Dependences:
        makers: dict[int, int] = {}
        readers: dict[int, set[int]] = {}
        before: list[frozenset[int]] = []
        for operation in graph.operations:
            for tensor in operation.inputs:
                readers.setdefault(tensor, set()).add(operation.index)
            needed = {makers[tensor] for tensor in operation.inputs if tensor in makers}
            for tensor in operation.outputs:
                makers[tensor] = operation.index
                alias = graph.tensors[tensor].alias
                needed |= readers.get(alias, set()) if alias is not None else set()
            before.append(frozenset(needed - {operation.index}))
        after: list[list[int]] = [[] for _ in before]
        for operation, needed in enumerate(before):
            for other in needed:
                after[other].append(operation)
        return cls(tuple(before), tuple(map(tuple, after)))

    def remaining(self) -> list[int]:
        """Return the length of the longest chain that begins with each operation."""
        lengths = [1] * len(self.before)
        for operation in reversed(range(len(lengths))):
            lengths[operation] += max((lengths[other] for other in self.after[operation]), default=0)
        return lengths

    def bound(self, workers: Sequence[int]) -> int:
        """Return the time that no order goes below."""
        return max(max(self.remaining()), max(map(workers.count, set(workers))))

    def starts(self, workers: Sequence[int], order: Sequence[int] | None = None) -> list[int]:
        """Simulate one lane per worker; return when each operation starts.

        Without an order, a worker that is free takes the operation that can start first, of several the one
        with the longest chain after it.
        """
        starts = [0] * len(workers)
        free = dict.fromkeys(workers, 0)
        if order is not None:
            for each in order:
                ready = max((starts[other] + 1 for other in self.before[each]), default=0)
                starts[each] = max(ready, free[workers[each]])
                free[workers[each]] = starts[each] + 1
            return starts
        remaining = self.remaining()
        missing = list(map(len, self.before))
        waiting = [(0, -remaining[each], each) for each, count in enumerate(missing) if not count]
        heapq.heapify(waiting)
        while waiting:
            start, urgency, each = heapq.heappop(waiting)
            if start < free[workers[each]]:
                heapq.heappush(waiting, (free[workers[each]], urgency, each))
                continue
            starts[each], free[workers[each]] = start, start + 1
            for other in self.after[each]:
                missing[other] -= 1
                if not missing[other]:
                    ready = max(starts[one] + 1 for one in self.before[other])
                    heapq.heappush(waiting, (ready, -remaining[other], other))
        return starts


def slept_seconds(program: PartitionedGraph, seconds: float) -> float:
    """Run programs whose kernels only sleep, a thread for each lane; return the median time of a step."""

    def prepare(call: KernelCall) -> Callable[[], None]:
        return partial(time.sleep, seconds)

    sleeping = {
        bound: BoundOperator(bound.analysis, bound.shapes, prepare, bound.opaques)
        for bound in {operation.bound for operation in program.graph.operations}
    }
    operations = [replace(each, bound=sleeping[each.bound]) for each in program.graph.operations]
    graph = replace(program.graph, operations=tuple(operations))
    measured = []
    with Executor(replace(program, graph=graph), threads=2 * program.workers) as executor:
        executor.run()
        for _ in range(MEASURED_STEPS):
            start = time.perf_counter()
            executor.run()
            measured.append(time.perf_counter() - start)
    return median(measured)


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "placed": partial(_growth, placed, PLACED_STEPS),
    "split": partial(_growth, split, SPLIT_STEPS),
    "overlap": overlap,
}


if __name__ == "__main__":
    main()
