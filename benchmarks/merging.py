"""Graphs whose operations are merged, next to the graphs they come from.

    python -m benchmarks.merging [MODEL ...] [--save benchmarks/results/merging.json]

Each row has the operations of both graphs, the bytes that the plans of `recursive` move over 8 workers, the
largest arena of a worker, and the processor seconds of an iteration of one worker on one thread: the medians
of `ROUNDS` iterations of each, in turns. `lstm-512` is the network of `benchmarks.peers`: 2 layers of 512, 20
steps, batch 32.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.merging.merged import merged
from tofu.partitioner import lower, peak_bytes
from tofu.runtime.executor import Executor

from .machine import described
from .record import keep, printed

WORKERS = 8
ROUNDS = 9
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("lstm", {}),
    "gru": ("gru", {}),
    "lstm-512": ("lstm", {"batch": 32, "steps": 20, "hidden": 512}),
    "rnn-4-8k": ("rnn-4-8k", {}),
    "transformer-6-512": ("transformer-6-512", {}),
}
TIMED = ("lstm", "gru", "lstm-512")


def row(name: str) -> dict[str, Any]:
    """Measure one model."""
    model, options = MODELS[name]
    graph = tofu.models.get(model, **options).training_graph()
    graphs = {"graph": graph, "merged": merged(graph)}
    found: dict[str, Any] = {"model": name}
    for kind, each in graphs.items():
        plan = tofu.partition(each, WORKERS, memory="unlimited")
        found[kind] = {
            "operations": len(each.operations),
            "moved_bytes": plan.cost_bytes,
            "arena_bytes": peak_bytes(each, plan),
        }
    if name in TIMED:
        for kind, seconds in _seconds(graphs).items():
            found[kind]["seconds"] = round(seconds, 4)
    return found


def _seconds(graphs: dict[str, Graph]) -> dict[str, float]:
    """Return the median processor seconds of an iteration of each graph, run in turns."""
    taken: dict[str, list[float]] = {kind: [] for kind in graphs}
    executors = {kind: _executor(graph) for kind, graph in graphs.items()}
    with threadpool_limits(1):
        for _ in range(ROUNDS):
            for kind, executor in executors.items():
                start = process_time()
                executor.run()
                taken[kind].append(process_time() - start)
    for executor in executors.values():
        executor.close()
    return {kind: median(each) for kind, each in taken.items()}


def _executor(graph: Graph) -> Executor:
    executor = Executor(lower(graph, tofu.partition(graph, 1)), threads=1)
    draw = np.random.default_rng(0)
    for tensor in graph.tensors:
        if tensor.role is Role.DATA:
            executor.write(tensor.name, draw.integers(0, 90, tensor.shape).astype(np.float32))
        elif tensor.role is Role.PARAMETER and tensor.alias is None:
            executor.write(tensor.name, draw.standard_normal(tensor.shape).astype(np.float32) * 0.05)
    return executor


def rows(names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of models."""
    yield from map(row, names)


def main() -> None:
    """Measure the models that the command line names, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    keep({**described(), "results": printed(rows(given.models or list(MODELS)))}, given.save)


if __name__ == "__main__":
    main()
