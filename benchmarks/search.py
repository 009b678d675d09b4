"""The search compared with the paper and the design's aims: tables 1 and 2, figure 10's methods, and growth.

python -m benchmarks.search [--only weights|plans|methods|growth] [--save benchmarks/results/search.json]

Plans are those of the space that the paper searches (`space.PAPER`). Seconds are processor seconds of the
search, from a built graph to a counted plan, so that what else the machine does hardly shows. Peaks are a
worker's memory without kernel workspaces.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tofu
from tofu.analyzer.bind.analysis import analyze
from tofu.dataflow.graph import Graph, Operation, Role, Tensor
from tofu.models import Model, resnet
from tofu.partitioner import METHODS, lower, partition
from tofu.programs.memory import plan_memory
from tofu.tdl import parse

from .record import record_parts
from .space import PAPER

WORKERS = 8
WEIGHT_STATE_GIB = {
    **{f"rnn-6-{h}k": gib for h, gib in ((4, 8.4), (6, 18.6), (8, 33.0))},
    **{f"rnn-8-{h}k": gib for h, gib in ((4, 11.4), (6, 28.5), (8, 45.3))},
    **{f"rnn-10-{h}k": gib for h, gib in ((4, 14.4), (6, 32.1), (8, 57.0))},
    **{f"wresnet-50-{w}": gib for w, gib in ((4, 4.2), (6, 9.6), (8, 17.1), (10, 26.7))},
    **{f"wresnet-101-{w}": gib for w, gib in ((4, 7.8), (6, 17.1), (8, 30.6), (10, 47.7))},
    **{f"wresnet-152-{w}": gib for w, gib in ((4, 10.5), (6, 23.4), (8, 41.7), (10, 65.1))},
}
"""Table 2 of the paper; its RNN-8-6K is a misprint for 25.5."""

PLANS = {
    "wresnet-152-10": (8, 8.3, 46.7),
    "rnn-10-8k": (128, 66.6, None),
    "wresnet-50-4": (128, None, 20.42),
    "wresnet-50-10": (32, None, 40.06),
}
"""Batch, the paper's search seconds (Table 1), and the best plan of the design's prototype, in GB."""

FIGURE_10 = {"rnn-4-8k": 512, "wresnet-152-10": 8}
CHAIN_OPERATORS = (12_500, 25_000, 50_000, 100_000)
RESNET_LAYERS = (124, 250, 502, 1000)
MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
RELU = "def relu(a):\n    return lambda i, j: maximum(a[i, j], 0)"


def weights() -> Iterator[dict[str, Any]]:
    """Table 2: weights and their state, in GiB."""
    for name, paper in WEIGHT_STATE_GIB.items():
        gib = tofu.models.get(name).weight_state_bytes / 2**30
        yield {"model": name, "gib": round(gib, 2), "paper_gib": paper, "ratio": round(gib / paper, 3)}


def plans() -> Iterator[dict[str, Any]]:
    """Table 1 and the design's models: bytes, proven bounds and seconds, least bytes being the aim."""
    for name, (batch, paper, best) in PLANS.items():
        graph = tofu.models.get(name, batch=batch).training_graph()
        for method in ("recursive", "refine", "exact"):
            entry = {"model": name, "batch": batch, **searched(graph, method)}
            yield {**entry, "paper_seconds": paper, "design_gb": best}


def methods() -> Iterator[dict[str, Any]]:
    """Figure 10: every method's bytes and peak memory."""
    for name, batch in FIGURE_10.items():
        graph = tofu.models.get(name, batch=batch).training_graph()
        for method in METHODS:
            yield {"model": name, "batch": batch, **searched(graph, method, memory=True)}


def growth() -> Iterator[dict[str, Any]]:
    """Yield a chain and a deep residual network in four sizes; the exponent of the time in their size."""
    for family, graphs in (("chain", map(chain, CHAIN_OPERATORS)), ("resnet", map(deep, RESNET_LAYERS))):
        sizes, seconds = [], []
        for graph in graphs:
            entry = searched(graph, "recursive")
            sizes.append(math.log(len(graph.operations)))
            seconds.append(math.log(entry["seconds"]))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            yield {
                "model": graph.name,
                "operators": len(graph.operations),
                **entry,
                "process_mib": round(memory),
            }
        yield {"model": family, "exponent": round(float(np.polyfit(sizes, seconds, 1)[0]), 2)}


def searched(graph: Graph, method: str, memory: bool = False) -> dict[str, Any]:
    """Search once and give the figures of the plan."""
    start = time.process_time()
    plan = partition(graph, WORKERS, method=method, **PAPER)
    entry = {
        "method": method,
        "gb": round(plan.cost_bytes / 1e9, 3),
        "bound_gb": round(plan.lower_bound_bytes / 1e9, 3),
        "seconds": round(time.process_time() - start, 2),
    }
    if memory:
        entry["peak_gb"] = round(max(plan_memory(lower(graph, plan)).arena_bytes) / 1e9, 2)
    return entry


def chain(operators: int) -> Graph:
    """Products of activations with separate weights, one after the other."""
    tensors = [Tensor(0, "data", (64, 256), Role.DATA)]
    operations: list[Operation] = []
    product, activation = parse(MATMUL), parse(RELU)
    value = 0
    for index in range(operators):
        inputs = [value]
        if index % 2 == 0:
            inputs.append(len(tensors))
            tensors.append(Tensor(len(tensors), f"weight{index}", (256, 256), Role.PARAMETER))
        description = activation if index % 2 else product
        names = description.tensor_names
        bound = analyze(description).bind({n: tensors[t].shape for n, t in zip(names, inputs, strict=True)})
        value = len(tensors)
        tensors.append(Tensor(value, f"value{index}", (64, 256), Role.ACTIVATION))
        operations.append(Operation(index, f"operation{index}", bound, tuple(inputs), (value,)))
    return Graph(f"chain of {operators}", tuple(tensors), tuple(operations), (value,))


def deep(layers: int) -> Graph:
    """Return the training graph of a residual network of `layers` layers for small images."""
    symbol = resnet.network(resnet.small(layers, 1), (3, 32, 32), 10)
    model = Model(f"resnet of {layers} layers", symbol, {"data": (64, 3, 32, 32)}, {"softmax_label": (64,)})
    return model.training_graph()


PARTS = {"weights": weights, "plans": plans, "methods": methods, "growth": growth}


if __name__ == "__main__":
    record_parts(PARTS, __doc__)
