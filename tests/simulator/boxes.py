"""Graphs, tasks and holdings at random, for simulations of boxes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import tofu
from tofu.analyzer.indices import region
from tofu.analyzer.indices.region import Region, split, to_region
from tofu.plans import Holding, Task
from tofu.simulator import Simulation

Tasks = dict[str, list[Task]]
Held = dict[str, list[Holding]]


def lstm() -> Any:
    options = {"batch": 4, "layers": 1, "steps": 2, "hidden": 8, "embedding": 4, "vocabulary": 11}
    return tofu.models.get("lstm", **options).training_graph()


def inception() -> Any:
    """Two modules whose branches are put together again."""
    found = tofu.sym.Variable("data")
    for module in range(2):
        branches = [
            tofu.sym.Convolution(found, num_filter=4, kernel=(size, size), pad=(size // 2, size // 2))
            for size in (1, 3)
        ]
        branches.append(tofu.sym.Pooling(found, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="max"))
        found = tofu.sym.Activation(tofu.sym.Concat(*branches, name=f"module{module}"), act_type="relu")
    found = tofu.sym.FullyConnected(tofu.sym.Flatten(found), num_hidden=5, name="fc")
    return trained(tofu.sym.SoftmaxOutput(found, name="softmax"), {"data": (4, 3, 8, 8)})


def transformer() -> Any:
    options = {"batch": 2, "steps": 4, "vocabulary": 11, "heads": 2, "dropout": 0.0}
    return tofu.models.get("gpt-1-8", **options).training_graph()


def dag(seed: int = 3) -> Any:
    """Layers that read the sum of some earlier ones."""
    draw = random.Random(seed)
    made = [tofu.sym.Variable("data")]
    for number in range(7):
        read = draw.sample(made, min(len(made), draw.choice((1, 2, 3))))
        total = read[0]
        for other in read[1:]:
            total = total + other
        made.append(tofu.sym.FullyConnected(total, num_hidden=12, name=f"layer{number}"))
    return trained(tofu.sym.SoftmaxOutput(made[-1], name="softmax"), {"data": (6, 12)})


def trained(symbol: Any, shapes: dict[str, tuple[int, ...]]) -> Any:
    return tofu.training_graph(symbol, shapes)


GRAPHS: dict[str, Callable[[], Any]] = {
    "lstm": lstm, "inception": inception, "transformer": transformer, "random": dag
}  # fmt: skip


def whole(found: tofu.Timeline) -> tuple[Any, ...]:
    """All that a time line says, whatever the numbers of its lanes."""
    work, jobs = found.work, found.work.jobs
    lanes = [sorted(jobs.lane_names[lane] for lane in each) for each in jobs.lanes]
    edges = [{(a, b) for a, b in pairs.tolist()} for pairs in (jobs.needs, jobs.order)]
    others = list(work.kinds), work.instructions, work.workers, work.operations, work.sources, work.nbytes
    return (
        found.nanoseconds, list(jobs.nanoseconds), lanes, found.moments.ready, found.moments.start, edges,
        others, found.times, found.time_shares,
    )  # fmt: skip


def timeline(simulation: Simulation) -> tuple[Any, ...]:
    """The time line of a simulation, which also states the time of the whole, and its bound."""
    line = simulation.timeline
    assert line.bound_seconds == simulation.bound_seconds
    found = whole(line)
    assert found[0] == simulation.nanoseconds
    return found


class Assignment:
    """Tasks and holdings that change at random."""

    def __init__(self, graph: Any, workers: int, seed: int) -> None:
        self.graph = graph
        self.workers = workers
        self.draw = random.Random(seed)
        made = {tensor for operation in graph.operations for tensor in operation.outputs}
        self.sources = [t for t in graph.tensors if t.alias is None and t.index not in made]
        self.tasks: Tasks = {o.name: self.tiles(o) for o in graph.operations}
        self.held: Held = {tensor.name: self.parts(tensor.shape) for tensor in self.sources}
        self.stops: Held = {}

    def simulation(self, machine: Any, **options: Any) -> Simulation:
        return Simulation(
            self.graph, machine, self.workers, self.tasks, self.held, stops=self.stops, **options
        )

    def tiles(self, operation: Any) -> list[Task]:
        """Tasks that make disjoint parts of the output; now and then several workers make one."""
        bound = operation.bound
        labels = [v for v in bound.variables if bound.kind(v) == "concat" and bound.extents[v] > 1]
        chosen = self.draw.sample(labels, min(len(labels), self.draw.choice((0, 1, 1, 2))))
        found = []
        for box in self.boxes(bound, chosen):
            for worker in self.some_workers(0.1):
                found.append(Task(worker, box))
        return found

    def sums(self, operation: Any) -> list[Task] | None:
        """Tasks that make terms of a sum; None if there is no sum to split."""
        bound = operation.bound
        labels = [v for v in bound.variables if bound.kind(v) == "reduce" and bound.extents[v] > 1]
        if not labels:
            return None
        boxes = self.boxes(bound, [self.draw.choice(labels)])
        return [Task(self.draw.randrange(self.workers), box, term) for term, box in enumerate(boxes)]

    def boxes(self, bound: Any, labels: Sequence[str]) -> list[Region]:
        axes = [bound.variables.index(label) for label in labels]
        counts = [min(bound.extents[label], self.draw.choice((2, 3, 4, self.workers))) for label in labels]
        return [to_region(box) for box in split(bound.full_box, axes, counts)]

    def parts(self, shape: Sequence[int]) -> list[Holding]:
        axes = [axis for axis, extent in enumerate(shape) if extent > 1]
        if not axes or self.draw.random() < 0.3:
            return [Holding(worker, to_region(region.whole(shape))) for worker in self.some_workers(0.5)]
        axis = self.draw.choice(axes)
        count = min(shape[axis], self.draw.choice((2, 3, self.workers)))
        return [
            Holding(self.draw.randrange(self.workers), to_region(box))
            for box in split(region.whole(shape), [axis], [count])
        ]

    def some_workers(self, chance: float) -> list[int]:
        return self.draw.sample(range(self.workers), 2 if self.draw.random() < chance else 1)

    def change(self) -> tuple[Tasks, Held, Held]:
        """New tasks of one or two operations, and holdings of some tensors."""
        tasks: Tasks = {}
        held: Held = {}
        stops: Held = {}
        for operation in self.draw.sample(self.graph.operations, self.draw.choice((1, 1, 1, 2))):
            terms = self.sums(operation) if self.draw.random() < 0.3 else None
            tasks[operation.name] = terms or self.tiles(operation)
            for number in operation.outputs if terms else ():
                tensor = self.graph.tensors[number]
                if tensor.alias is None:
                    held[tensor.name] = self.parts(tensor.shape)
                    if self.draw.random() < 0.5:
                        stops[tensor.name] = self.parts(tensor.shape)
        if self.draw.random() < 0.2:
            tensor = self.draw.choice(self.sources)
            held[tensor.name] = self.parts(tensor.shape)
        return tasks, held, stops

    def take(self, change: tuple[Tasks, Held, Held]) -> Assignment:
        """The assignment after a change."""
        found = object.__new__(Assignment)
        found.graph, found.workers, found.draw, found.sources = (
            self.graph, self.workers, self.draw, self.sources
        )  # fmt: skip
        tasks, held, stops = change
        found.tasks = {**self.tasks, **tasks}
        found.held = {**self.held, **held}
        found.stops = {name: each for name, each in self.stops.items() if name not in held} | stops
        return found
