"""How long a change of a simulation takes, against simulating from the beginning: FlexFlow's Table 5.

python -m benchmarks.delta [--save benchmarks/results/delta.json]

Tasks are random: each operation is cut into a power of two of parts, and each part is on any device. A
proposal gives one operation other tasks, and is accepted or refused. `change_seconds` is the processor time
of a proposal, and `rebuild_seconds` that of a new simulation of all tasks. `simulate_seconds` is that of
placing and simulating blocks that are made already. FlexFlow's factors are those of its whole search.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.analyzer.indices.region import split, to_region, whole
from tofu.plans import Holding, Task
from tofu.simulator import Simulation
from tofu.simulator.placed_blocks import PlacedBlocks
from tofu.support.compiled import COMPILED

from .machine import described
from .record import keep, printed

RECURRENT = {"batch": 64, "steps": 40}
MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "AlexNet": ("alexnet", {"batch": 256}),
    "ResNet-101": ("resnet-101", {"batch": 64}),
    "Inception-v3": ("inception-v3", {"batch": 64}),
    "RNNTC": ("lstm", {**RECURRENT, "layers": 4, "hidden": 1024}),
    "RNNLM": ("lstm", {**RECURRENT, "layers": 2, "hidden": 2048}),
    "NMT": ("transformer-6-512", {"batch": 64}),
}
"""FlexFlow's models, and those of the zoo that are measured. NMT is another model: it has attention only."""

FLEXFLOW = {
    "AlexNet": (2.9, 3.0, 2.9, 3.0, 3.0),
    "ResNet-101": (3.2, 3.2, 3.1, 3.2, 3.3),
    "Inception-v3": (3.4, 3.9, 5.0, 5.9, 6.9),
    "RNNTC": (2.2, 2.3, 2.4, 2.6, 3.0),
    "RNNLM": (2.3, 2.5, 2.7, 3.2, 3.6),
    "NMT": (2.5, 2.7, 3.0, 3.8, 4.1),
}
"""How many times faster FlexFlow's delta simulation is on 4, 8, 16, 32 and 64 devices (Table 5)."""

DEVICES = (4, 8, 16, 32, 64)
PROPOSALS = 60
GROWING = ("rebuild_seconds", "simulate_seconds", "change_seconds", "block_bytes")


def tasks(operation: Any, devices: int, draw: random.Random) -> list[Task]:
    """Return random tasks of an operation."""
    bound = operation.bound
    left = 1 << draw.randint(0, devices.bit_length() - 1)
    labels = [v for v in bound.variables if bound.kind(v) == "concat"]
    draw.shuffle(labels)
    counts = []
    for label in labels:
        counts.append(min(1 << (bound.extents[label].bit_length() - 1), left))
        left //= counts[-1]
    axes = [bound.variables.index(label) for label in labels]
    boxes = split(bound.full_box, axes, counts)
    return [Task(draw.randrange(devices), to_region(box)) for box in boxes]


def simulated(graph: Any, devices: int, draw: random.Random) -> Callable[[], Simulation]:
    """Return the function that simulates random tasks; each source is whole on a device."""
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    every = {operation.name: tasks(operation, devices, draw) for operation in graph.operations}
    sources = [t for t in graph.tensors if t.alias is None and t.index not in made]
    held = {t.name: [Holding(draw.randrange(devices), to_region(whole(t.shape)))] for t in sources}
    machine = tofu.machines.load(f"{devices // 4}x-p100-node")
    return lambda: Simulation(graph, machine, devices, every, held)


def spent(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def propose(simulation: Simulation, graph: Any, devices: int, draw: random.Random) -> float:
    """Return the time of one proposal, and accept or refuse it."""
    operation = draw.choice(graph.operations)
    change = {operation.name: tasks(operation, devices, draw)}
    close = simulation.accept if draw.random() < 0.5 else simulation.refuse
    return spent(lambda: (simulation.propose(change), close()))


def again(simulation: Simulation) -> None:
    """Place all blocks and simulate them from the beginning."""
    cache, net, state = simulation._cache, simulation._structure.net, simulation._state
    PlacedBlocks(net, simulation._workers, cache.messages.ways).begin(state.blocks)


def block_bytes(simulation: Simulation) -> int:
    """Return the size of the arrays that loops read."""
    return sum(block.words.nbytes for block in simulation._state.blocks.values())


def row(model: str, devices: int) -> dict[str, Any]:
    name, options = MODELS[model]
    graph = tofu.models.get(name, **options).training_graph()
    draw = random.Random(devices)
    begin = simulated(graph, devices, draw)
    simulation = begin()
    rebuild = spent(begin)
    full = min(spent(lambda: again(simulation)) for _ in range(3))
    jobs, size = len(simulation.timeline.work.jobs.nanoseconds), block_bytes(simulation)
    times = [propose(simulation, graph, devices, draw) for _ in range(PROPOSALS)]
    change = float(np.mean(times))
    return {
        "model": model,
        "measured": name,
        "devices": devices,
        "operations": len(graph.operations),
        "jobs": jobs,
        "block_bytes": size,
        "rebuild_seconds": round(rebuild, 3),
        "simulate_seconds": round(full, 4),
        "change_seconds": round(change, 5),
        "proposals_per_second": round(1 / change, 1),
        "times_faster": round(rebuild / change, 1),
        "flexflow_times_faster": FLEXFLOW[model][DEVICES.index(devices)],
    }


def exponent(rows: list[dict[str, Any]], what: str) -> float:
    """Return the power of the number of jobs as which a time or a size grows, by least squares."""
    logs = [np.log([row[key] for row in rows]) for key in ("jobs", what)]
    return round(float(np.polyfit(*logs, 1)[0]), 2)


def measured() -> Iterator[dict[str, Any]]:
    assert COMPILED, "install the extra `search`"
    for model in MODELS:
        for devices in DEVICES:
            yield row(model, devices)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    rows = printed(measured())
    exponents = {what: exponent(rows, what) for what in GROWING}
    keep({**described(), "exponents": exponents, "results": rows}, arguments.save)


if __name__ == "__main__":
    main()
