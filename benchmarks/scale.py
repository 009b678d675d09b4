"""Large graphs: the time from a plan to a schedule, its growth, and how much of a step overlaps.

    python -m benchmarks.scale [--only placed|scattered|split|overlap] [--save benchmarks/results/scale.json]

*Placed*: LSTMs of 32 layers, two neighbouring layers on each of 16 workers. *Scattered*: every operation on
the worker after that of the operation before, so that most inputs cross. *Split*: every operation split over
all 16 workers by the plan of `recursive`. Seconds are processor seconds; `total` is lowering, memory plan and
schedule. Every size runs in a process of its own, whose peak includes the graph and the plan.

*Overlap*: an LSTM of 4 layers and 8 steps, one layer on each of 4 workers, with kernels that only sleep.
`simulated_seconds` is the least time that the dependences and the order allow: an operation starts as soon as
its inputs are made and its worker has finished the operations before. `bound_seconds` is a lower bound for
every order. `seconds` is the median of measured steps.
"""

from __future__ import annotations

import heapq
import math
import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
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
from tofu.programs.program import Lane, PartitionedGraph
from tofu.runtime.executor import Executor

from .record import record_parts

WORKERS = 16
LAYERS = 32
PLACED_STEPS = (20, 40, 80, 160)
SPLIT_STEPS = (5, 10, 20, 40)

OVERLAP_LAYERS = 4
OVERLAP_STEPS = 8
SLEEP_SECONDS = 0.004
MEASURED_STEPS = 5


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


def scattered_operations(graph: Graph, workers: int) -> Plan:
    """Place every operation on the worker after that of the operation before."""
    forms = [Spread((), (worker,)) for worker in range(workers)]
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    return compose(
        graph,
        workers,
        {operation.name: forms[operation.index % workers] for operation in graph.operations},
        {t.name: forms[t.index % workers] for t in graph.tensors if t.index not in made},
    )


def placed(steps: int) -> dict[str, Any]:
    """Place an LSTM's layers on workers."""
    return _prepared(steps, lambda graph: layers_on_workers(graph, LAYERS, WORKERS))


def scattered(steps: int) -> dict[str, Any]:
    """Place an LSTM's operations on workers by turns."""
    return _prepared(steps, lambda graph: scattered_operations(graph, WORKERS))


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
            stage: round(
                float(np.polyfit(operations, [math.log(r["seconds"][stage]) for r in rows], 1)[0]), 2
            )
            for stage in rows[0]["seconds"]
        }
    }


def overlap() -> Iterator[dict[str, Any]]:
    """Yield the seconds of a step in the order of the graph, and in that of simulated starts."""
    model = tofu.models.get("lstm", batch=2, layers=OVERLAP_LAYERS, steps=OVERLAP_STEPS, hidden=4)
    graph = model.training_graph()
    plan = layers_on_workers(graph, OVERLAP_LAYERS, OVERLAP_LAYERS)
    workers = workers_of(graph, plan)
    dependences = Dependences.of(graph)
    bound = dependences.bound(workers) * SLEEP_SECONDS
    graph_order = list(range(len(graph.operations)))
    for name, order in (("graph", graph_order), ("simulated starts", dependences.order(workers))):
        starts = dependences.starts(workers, order)
        program = tofu.lower(graph, in_order(plan, graph, order))
        seconds = median(list(slept(program, SLEEP_SECONDS, 1 + MEASURED_STEPS))[1:])
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


def workers_of(graph: Graph, plan: Plan) -> list[int]:
    """Return the worker of every operation of a plan that splits none."""
    forms = [plan.strategies[operation.name] for operation in graph.operations]
    return [form.workers[0] for form in forms if isinstance(form, Spread)]


def in_order(plan: Plan, graph: Graph, order: Sequence[int]) -> Plan:
    """Return a plan whose operations run in an order of their numbers."""
    return replace(plan, written_order=tuple([graph.operations[number].name for number in order]))


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
        """Return a time that no order goes below: the largest that one worker alone needs.

        Its operations may start after the longest chain before them. Of those that may, it takes the one with
        the longest chain after it (Jackson's rule, which is optimal for one worker and unit times).
        """
        heads = [0] * len(workers)
        for each, needed in enumerate(self.before):
            heads[each] = max((heads[other] + 1 for other in needed), default=0)
        remaining, found = self.remaining(), 0
        for worker in set(workers):
            coming = sorted(
                (heads[each], -remaining[each]) for each, at in enumerate(workers) if at == worker
            )
            now, place, ready = 0, 0, list[int]()
            while ready or place < len(coming):
                now = now if ready else max(now, coming[place][0])
                while place < len(coming) and coming[place][0] <= now:
                    heapq.heappush(ready, coming[place][1])
                    place += 1
                found = max(found, now - heapq.heappop(ready))
                now += 1
        return found

    def order(self, workers: Sequence[int]) -> list[int]:
        """Return the operations in the order of their simulated starts."""
        return sorted(range(len(workers)), key=self.starts(workers).__getitem__)

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


def slept(program: PartitionedGraph, seconds: float, steps: int) -> Iterator[float]:
    """Run programs whose kernels only sleep, a thread for each lane; yield the time of every step."""
    asleep = sleeping(program, seconds)
    with Executor(asleep, threads=len(Lane) * program.workers) as executor:
        for _ in range(steps):
            start = time.perf_counter()
            executor.run()
            yield time.perf_counter() - start


def sleeping(program: PartitionedGraph, seconds: float) -> PartitionedGraph:
    """Return the programs with kernels that only sleep."""

    def prepare(call: KernelCall) -> Callable[[], None]:
        return partial(time.sleep, seconds)

    asleep = {
        bound: BoundOperator(bound.analysis, bound.shapes, prepare, bound.opaques)
        for bound in {operation.bound for operation in program.graph.operations}
    }
    operations = [replace(each, bound=asleep[each.bound]) for each in program.graph.operations]
    return replace(program, graph=replace(program.graph, operations=tuple(operations)))


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "placed": partial(_growth, placed, PLACED_STEPS),
    "scattered": partial(_growth, scattered, PLACED_STEPS),
    "split": partial(_growth, split, SPLIT_STEPS),
    "overlap": overlap,
}


if __name__ == "__main__":
    record_parts(PARTS, __doc__)
