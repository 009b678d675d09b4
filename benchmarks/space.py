"""Four spaces of plans: every tensor is split; tensors may be replicated; results may be kept as well;
activations may have copies too.

python -m benchmarks.space [MODEL ...] [--spaces SPACE ...] [--save benchmarks/results/space.json]

`exact` searches all four for 8 workers, with free feeding of inputs and without a limit of memory. The
table has the MiB that move in an iteration, what is proven, the seconds of the processor from a built graph
to a counted plan, and the largest arena of a worker of the lowered plan, in MiB.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tofu
from tofu import sym
from tofu.dataflow.graph import Graph
from tofu.partitioner import lower, partition
from tofu.programs.memory import plan_memory

from . import record
from .machine import described

WORKERS = 8
SPACES: dict[str, dict[str, bool]] = {
    "split": {"replicate": False, "keep": False},
    "replicated": {"replicate": True, "keep": False},
    "kept": {"replicate": True, "keep": True},
    "activations": {"replicate": True, "keep": True, "copy_activations": True},
}
"""The settings of each space."""

METHODS = ("recursive", "refine", "exact")
NEAR = 0.01
MIB = 1 << 20
PAPER: dict[str, Any] = {"replicate": False, "keep": False, "feed": "anywhere"}
"""The space of plans that the paper searches."""

TABLES = 26
"""The number of embedding tables of the recommender."""


def perceptron() -> Graph:
    """Return three layers of 2,048 without bias, for a batch of 512."""
    value = sym.Variable("data")
    for layer in range(3):
        value = sym.FullyConnected(value, num_hidden=2048, name=f"fc{layer}", no_bias=True)
        if layer < 2:
            value = sym.relu(value, name=f"relu{layer}")
    loss = sym.SoftmaxOutput(value, name="softmax")
    return tofu.training_graph(loss, {"data": (512, 2048), "softmax_label": (512,)}, "sgd")


def recommender(rows: int = 100_000, width: int = 64, batch: int = 2048) -> Graph:
    """Return a model of `TABLES` embeddings, their products with each other, and two perceptrons."""
    dense = _layers(sym.Variable("dense"), (512, 256, width), "bottom")
    ids = sym.Variable("ids")
    columns = [sym.slice_axis(ids, axis=1, begin=i, end=i + 1) for i in range(TABLES)]
    found = [
        sym.Embedding(sym.Reshape(column, shape=(-1,)), input_dim=rows, output_dim=width, name=f"table{i}")
        for i, column in enumerate(columns)
    ]
    stacked = sym.stack(dense, *found, axis=1, name="stacked")
    products = sym.Flatten(sym.batch_dot(stacked, stacked, transpose_b=True))
    top = _layers(sym.Concat(dense, products, dim=1), (1024, 512, 256), "top")
    logit = sym.FullyConnected(top, num_hidden=1, name="logit")
    loss = sym.LogisticRegressionOutput(logit, sym.Variable("softmax_label"), name="out")
    return tofu.training_graph(
        loss, {"dense": (batch, 13), "ids": (batch, TABLES), "softmax_label": (batch, 1)}, "sgd"
    )


def _layers(value: tofu.Symbol, widths: tuple[int, ...], name: str) -> tofu.Symbol:
    for layer, width in enumerate(widths):
        value = sym.relu(sym.FullyConnected(value, num_hidden=width, name=f"{name}{layer}"))
    return value


def _zoo(name: str, optimizer: str, **options: Any) -> Graph:
    return tofu.models.get(name, **options).training_graph(optimizer)


MODELS: dict[str, Callable[[], Graph]] = {
    "perceptron": perceptron,
    "gpt-12-768": partial(_zoo, "gpt-12-768", "adam", batch=8, steps=1024, vocabulary=50257, dropout=0.0),
    "wresnet-50-4": partial(_zoo, "wresnet-50-4", "sgd", batch=128),
    "recommender": recommender,
    "wresnet-152-10": partial(_zoo, "wresnet-152-10", "sgd", batch=8),
    "rnn-4-8k": partial(_zoo, "rnn-4-8k", "sgd", batch=512),
    "transformer-6-512": partial(_zoo, "transformer-6-512", "sgd"),
}


def measured(graph: Graph, method: str, *, feed: str = "anywhere", **space: bool) -> dict[str, Any]:
    """Return the figures of one search; `near_seconds` is when cost and bound were first within `NEAR`."""
    start = time.process_time()
    near: list[float] = []

    def report(cost: int, bound: int) -> None:
        if cost - bound <= NEAR * cost:
            near.append(time.process_time() - start)

    plan = partition(graph, WORKERS, method, feed=feed, report=report, **space)
    seconds = time.process_time() - start
    gap = (plan.cost_bytes - plan.lower_bound_bytes) / max(plan.cost_bytes, 1)
    return {
        "cost_bytes": plan.cost_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "gap": round(gap, 5),
        "seconds": round(seconds, 2),
        "near_seconds": round(min(near, default=seconds), 2) if gap <= NEAR else None,
        "peak_bytes": max(plan_memory(lower(graph, plan)).arena_bytes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of {', '.join(MODELS)}")
    parser.add_argument(
        "--spaces", nargs="+", choices=SPACES, default=list(SPACES), help="some of the spaces"
    )
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    unknown = [model for model in arguments.models if model not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; choose some of {', '.join(MODELS)}")
    entries: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        entries = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    print(
        f"{'model':18} {'space':11} {'method':10} {'MiB':>10} {'proven':>10} {'gap':>7} {'s':>6} {'peak':>8}"
    )
    for model in arguments.models or MODELS:
        graph = MODELS[model]()
        found = entries.setdefault(model, {})
        for space in arguments.spaces:
            found[space] = {}
            for method in METHODS:
                entry = found[space][method] = measured(graph, method, **SPACES[space])
                moved, proven, peak = (
                    entry[key] / MIB for key in ("cost_bytes", "lower_bound_bytes", "peak_bytes")
                )
                print(
                    f"{model:18} {space:11} {method:10} {moved:10.1f} {proven:10.1f} {entry['gap']:7.2%} "
                    f"{entry['seconds']:6.1f} {peak:8.0f}",
                    flush=True,
                )
        ranked = {name: entries[name] for name in MODELS if name in entries}
        record.keep({**described(), "workers": WORKERS, "results": ranked}, arguments.save)


if __name__ == "__main__":
    main()
