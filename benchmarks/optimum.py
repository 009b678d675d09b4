"""Whether a chain finds the optimum of a space that can be searched exhaustively in a second (FlexFlow, 8.3).

python -m benchmarks.optimum [--save benchmarks/results/optimum.json]

A layer is the operations from one product with a parameter to the next one, with gradients and updates. Each
layer takes one of nine choices on four devices: samples over all, over the first or the last two; whole on
one of the four; parameters (attributes if there are none) over all; samples and parameters in two parts
each. Every combination is simulated, unless its computations alone take longer than the best one. A
chain starts from data parallelism, and a proposal gives a random layer a random choice. `searched_seconds` is
the processor time until it first visited the best strategy of its second, with ten seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Phase, Role
from tofu.partitioner.methods.flexflow.configurations import Configuration
from tofu.partitioner.methods.flexflow.data_parallel import by_sample, configured
from tofu.partitioner.methods.flexflow.metropolis import metropolis
from tofu.partitioner.methods.flexflow.soap import Decision, Kind, Soap, find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies, Strategy
from tofu.partitioner.methods.flexflow.walk import StrategyWalk, simulated
from tofu.partitioner.methods.with_backward import with_backward
from tofu.partitioner.plans.space import Space
from tofu.simulator.times import task_times

from .machine import described
from .record import keep, printed

DEVICES = 4
SECONDS = 1.0
BETA = 200.0
MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "LeNet": ("lenet", {"batch": 64}),
    "RNNLM of 2 steps": ("lstm", {"batch": 64, "steps": 2, "layers": 2, "hidden": 2048}),
}
MACHINE = "p100-node"
CHOICES = 9


def layers(soap: Soap) -> list[list[int]]:
    """Return the decisions of each layer."""
    graph = soap.graph
    known: dict[int, int] = {}
    forward: dict[int, int] = {}
    layer = -1
    for operation in graph.operations:
        if operation.phase is Phase.FORWARD:
            found = soap.indexing[operation.index]
            for tensor in operation.inputs:
                sums = any(operation.bound.kind(v) == "reduce" for v in found.split)
                if graph.tensors[tensor].role is Role.PARAMETER and sums:
                    layer = known.setdefault(tensor, len(known))
            forward[operation.index] = max(layer, 0)
    found = with_backward(graph, forward)
    groups: dict[int, list[int]] = {}
    for number, decision in enumerate(soap.decisions):
        groups.setdefault(found[decision.operations[0]], []).append(number)
    return [groups[number] for number in sorted(groups)]


def choice(decision: Decision, number: int) -> Configuration:
    """Return one of the nine choices for a decision of a layer."""
    if number in (1, 2):
        half = by_sample(decision, 2)
        return configured(decision, half.degrees, [worker + 2 * (number - 1) for worker in half.workers])
    if 3 <= number <= 6:
        return configured(decision, [1] * len(decision.dimensions), [number - 3])
    places = [
        place
        for kind in (Kind.PARAMETER, Kind.ATTRIBUTE)
        for place, dimension in enumerate(decision.dimensions)
        if dimension.kind is kind and dimension.extent >= DEVICES
    ]
    if number == 0 or not places:
        return by_sample(decision, DEVICES)
    degrees = list(by_sample(decision, 2).degrees) if number == 8 else [1] * len(decision.dimensions)
    degrees[places[0]] = DEVICES // prod(degrees)
    return configured(decision, degrees, range(DEVICES))


class Small:
    """The space of a model."""

    def __init__(self, graph: Any) -> None:
        soap = find_soap(graph, DEVICES)
        self.machine = tofu.machines.load(MACHINE)
        self.strategies = Strategies(soap, Space(feed="batch"))
        self.layers = layers(soap)
        self.choices = [
            [{n: choice(soap.decisions[n], number) for n in layer} for number in range(CHOICES)]
            for layer in self.layers
        ]
        times = task_times(graph, self.machine, DEVICES)
        operations = {operation.name: operation for operation in graph.operations}
        self.loads = np.zeros((len(self.layers), CHOICES, DEVICES), np.int64)
        for layer, choices in enumerate(self.choices):
            for number, changes in enumerate(choices):
                for decision, configuration in changes.items():
                    for name, tasks in self.strategies.change(decision, configuration).tasks.items():
                        workers = np.array([task.worker for task in tasks])
                        boxes = np.array([task.box for task in tasks], np.int64)
                        np.add.at(self.loads[layer, number], workers, times(operations[name], workers, boxes))

    def strategy(self, numbers: Sequence[int]) -> Strategy:
        """Return the strategy with these choices; data parallelism if all are 0."""
        pairs = zip(self.choices, numbers, strict=True)
        state = {decision: each for choices, number in pairs for decision, each in choices[number].items()}
        return tuple(state[decision] for decision in range(len(state)))

    def walk(self, numbers: Sequence[int] | None = None) -> StrategyWalk:
        """Return a walk that begins with these choices, or data parallelism, and makes random ones."""
        start = self.strategy(numbers or (0,) * len(self.layers))
        simulation = simulated(self.strategies, start, self.machine)

        def move(draw: Random, _: Sequence[Configuration | None]) -> Mapping[int, Configuration]:
            return self.choices[draw.randrange(len(self.layers))][draw.randrange(CHOICES)]

        return StrategyWalk(simulation, self.strategies, start, move)

    def optimum(self) -> tuple[int, int]:
        """Return the least time of all combinations, and how many of them were simulated."""
        start = (0,) * len(self.layers)
        simulation = simulated(self.strategies, self.strategy(start), self.machine)
        best, now, count = simulation.nanoseconds, start, 0
        for numbers in product(range(CHOICES), repeat=len(self.layers)):
            if self.loads[range(len(numbers)), numbers].sum(axis=0).max() >= best:
                continue
            changes = {
                decision: configuration
                for layer, (mine, its) in enumerate(zip(now, numbers, strict=True))
                if mine != its
                for decision, configuration in self.choices[layer][its].items()
            }
            found = self.strategies.changes(changes)
            simulation.propose(found.tasks, found.holdings, stops=found.stops)
            simulation.accept()
            best, now, count = min(best, simulation.nanoseconds), numbers, count + 1
        return best, count

    def search(self, target: int, seed: int) -> tuple[int, float, int]:
        """Return the least time that a chain visits, the seconds until then, and the proposals."""
        begin = time.process_time()
        walk = self.walk()
        beta = BETA / walk.cost
        best, best_at, proposals = walk.cost, 0.0, 0
        for accepted in metropolis(walk, Random(seed), lambda _: beta):
            spent, proposals = time.process_time() - begin, proposals + 1
            if accepted and walk.cost < best:
                best, best_at = walk.cost, spent
            if best <= target or spent > SECONDS:
                break
        return best, best_at, proposals


def measured() -> Iterator[dict[str, Any]]:
    for model, (name, options) in MODELS.items():
        small = Small(tofu.models.get(name, **options).training_graph())
        begin = time.process_time()
        best, simulated_count = small.optimum()
        exhaustive = time.process_time() - begin
        chains = [small.search(best, seed) for seed in range(10)]
        yield {
            "model": model,
            "devices": DEVICES,
            "layers": len(small.layers),
            "strategies": CHOICES ** len(small.layers),
            "simulated": simulated_count,
            "exhaustive_seconds": round(exhaustive, 1),
            "optimum_ms": best / 1e6,
            "data_parallel_ms": small.walk().cost / 1e6,
            "found_ms": [cost / 1e6 for cost, _, _ in chains],
            "searched_seconds": [round(spent, 3) for _, spent, _ in chains],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    keep({**described(), "results": printed(measured())}, arguments.save)


if __name__ == "__main__":
    main()
