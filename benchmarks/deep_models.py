"""Build the models of ParDNN's table 3, and graphs of hundreds of thousands of operations.

    python -m benchmarks.deep_models [--only models|growth|micro-batches] [--save FILE]

*Models*: each model at its default batch, with the table's parameters and nodes, which are those of
TensorFlow's graph. *Growth*: `word-rnn` of 100 steps with more and more layers, `trn` too, and `e3d` with
more and more steps. *Micro-batches*: `gpt-12-768`
with more and more of them in one graph. The last row of each has the exponent: the slope of the logarithms of
seconds over those of operations, by least squares. Seconds are those of the processor, on one core: of the
symbol, of its training graph, and of copying it for micro-batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

import tofu
from tofu.dataflow.graph import Graph
from tofu.dataflow.micro_batches import unrolled

from .record import Row, record_parts

Made = TypeVar("Made")

TABLE: dict[str, tuple[float, int | None]] = {
    "word-rnn": (0.34, 10_578),
    "word-rnn-2": (1.18, 39_074),
    "char-crn": (0.23, 22_748),
    "char-crn-2": (1.09, 86_663),
    "wresnet-610-14": (1.91, 187_742),
    "wresnet-304-28": (3.77, None),
    "trn": (1.99, 204_792),
    "trn-2": (5.1, 160_518),
    "e3d": (0.95, 55_756),
    "e3d-2": (2.4, 55_756),
}
"""The parameters of the table, in 1e9, and its nodes, None if our copy of the table lacks them."""

GROWTH: tuple[tuple[str, dict[str, int], str, tuple[int, ...]], ...] = (
    ("word-rnn", {"steps": 100}, "layers", (8, 16, 32, 64)),
    ("trn", {}, "layers", (26, 52, 104, 208, 416)),
    ("e3d", {}, "steps", (5, 10, 20, 40)),
)
"""A model, its options, the option that grows, and its values."""

MICRO_BATCHES = (8, 16, 32, 64, 128)


def models() -> Iterator[Row]:
    """Yield each model's sizes and the time to build it."""
    for name, (parameters, nodes) in TABLE.items():
        row, model, _ = _built(name)
        published = {"parameters": parameters * 1e9, "nodes": nodes}
        yield row | {"parameters": model.weight_count, "published": published}


def growth() -> Iterator[Row]:
    """Yield the time to build models of more and more layers or steps."""
    for name, options, growing, values in GROWTH:
        rows = [_built(name, **options, **{growing: value})[0] | {growing: value} for value in values]
        yield from rows
        yield {"model": name, "exponent": _exponent(rows, "seconds")}


def micro_batches() -> Iterator[Row]:
    """Yield the time to copy a graph for more and more micro-batches."""
    rows: list[Row] = []
    for count in MICRO_BATCHES:
        graph = tofu.models.get("gpt-12-768", batch=count).training_graph(accumulate=count)
        copies, seconds = _timed(lambda graph=graph, count=count: unrolled(graph, count))
        rows.append({"micro_batches": count, "operations": len(copies.operations), "seconds": seconds})
    yield from rows
    yield {"model": "gpt-12-768", "exponent": _exponent(rows, "seconds")}


def _built(name: str, **options: int) -> tuple[Row, tofu.models.Model, Graph]:
    model, symbol_seconds = _timed(lambda: tofu.models.get(name, **options))
    graph, graph_seconds = _timed(model.training_graph)
    row = {
        "model": name,
        "operations": len(graph.operations),
        "tensors": len(graph.tensors),
        "operators": len({operation.bound for operation in graph.operations}),
        "symbol_seconds": symbol_seconds,
        "graph_seconds": graph_seconds,
        "seconds": round(symbol_seconds + graph_seconds, 3),
    }
    return row, model, graph


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    begun = time.process_time()
    made = make()
    return made, round(time.process_time() - begun, 3)


def _exponent(rows: Sequence[dict[str, Any]], seconds: str) -> float:
    slope, _ = np.polyfit(*(np.log([row[key] for row in rows]) for key in ("operations", seconds)), 1)
    return round(float(slope), 2)


if __name__ == "__main__":
    record_parts({"models": models, "growth": growth, "micro-batches": micro_batches}, __doc__)
