"""How long the searches of FlexFlow's models take to find plans of equal quality, next to its Table 5.

python -m benchmarks.search_times [--model AlexNet] [--devices 4] [--method anneal] [--first 10]
                                  [--most 1000] [--longest 90]
                                  [--save benchmarks/results/search_times.json]

A search is repeated with ten times the proposals of each chain, until that finds a plan that is at most 1%
faster. The search before is then the one of *equal quality*. Models are those of `benchmarks.flexflow` on
clusters of P100. `seconds` is the processor time of the whole search, and `equal_seconds` that until it has a
plan within 1% of the one that the search with ten times the proposals ends with (`more_ms`), None if it has
no such plan. Both begin when `tofu.partition` is called and include the planning of starts, but not the
building of the graph. Those of `anneal merged` begin before operations are merged. A search of a small graph
has compiled all loops before. Cells of which the file has a search are passed over.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tofu
from tofu.dataflow.merging.merged import merged
from tofu.search import SearchProgress

from .flexflow import MERGED, MODELS, SEARCHES, cluster_of, graph_of
from .machine import described
from .record import Row, keep

CLUSTER = "P100"
DEVICES = (4, 8, 16, 32, 64)
METHODS = (*SEARCHES, MERGED[-1])
TIMES_MORE = 10
EQUAL = 1.01
"""The time of an iteration over that of the plan of the larger budget, up to which plans are equal."""

CELL = ("model", "devices", "method")


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that was measured."""

    row: Row
    """Its budget, its time, and that of an iteration of its plan."""

    better: Sequence[tuple[float, float]]
    """The processor seconds at which it had a better plan, and the milliseconds of that plan."""

    def seconds_to(self, step_ms: float) -> float | None:
        """Return the seconds until it has a plan that is equal to one of `step_ms`, if it has one."""
        return next((round(at, 2) for at, found in self.better if found <= EQUAL * step_ms), None)


def searched(model: str, devices: int, method: str, proposals: int) -> Searched:
    """Measure a search."""
    graph, machine = graph_of(model, devices), cluster_of(CLUSTER, devices)
    name, _, merging = method.partition(" ")
    better: list[tuple[float, float]] = []

    def watch(progress: SearchProgress) -> None:
        found = progress.seconds * 1e3
        if not better or found < better[-1][1]:
            better.append((time.process_time() - begin, found))

    begin = time.process_time()
    plan = tofu.partition(
        merged(graph) if merging else graph,
        devices,
        name,
        memory="unlimited",
        machine=machine,
        proposals=proposals,
        watch=watch,
    )
    seconds = time.process_time() - begin
    assert plan.step_seconds is not None
    row = {
        "model": model,
        "devices": devices,
        "method": method,
        "proposals": proposals,
        "step_ms": round(plan.step_seconds * 1e3, 3),
        "seconds": round(seconds, 2),
    }
    return Searched(row, better)


def searches(model: str, devices: int, method: str, first: int, most: int, longest: float) -> Iterator[Row]:
    """Yield searches with more and more proposals, from `first` on, until one gains little, `most` are
    reached or one took longer than `longest`.
    """
    found = searched(model, devices, method, first)
    while True:
        proposals = found.row["proposals"] * TIMES_MORE
        if proposals > most or (found.row["seconds"] > longest and proposals > first * TIMES_MORE):
            yield found.row
            return
        more = searched(model, devices, method, proposals)
        step = more.row["step_ms"]
        yield {**found.row, "more_ms": step, "equal_seconds": found.seconds_to(step)}
        if found.row["step_ms"] <= EQUAL * step:
            yield more.row
            return
        found = more


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--devices", type=int, choices=DEVICES, action="append")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument(
        "--first", type=int, default=10, help="proposals of a chain of the first search; 10 by default"
    )
    parser.add_argument("--most", type=int, default=1000, help="proposals of a chain; 1,000 by default")
    parser.add_argument(
        "--longest",
        type=float,
        default=90.0,
        help="the most seconds of a search that is repeated with ten times the proposals; 90 by default. The "
        "first one is repeated in any case",
    )
    parser.add_argument("--save", type=Path, help="add the results to this file, after each cell")
    asked = parser.parse_args()
    found: list[Row] = []
    if asked.save is not None and asked.save.exists():
        found = json.loads(asked.save.read_text(encoding="utf-8"))["results"]
    tofu.partition(tofu.models.get("lstm").training_graph(), 4, "anneal", machine="p100-node", proposals=20)
    cells = itertools.product(asked.devices or DEVICES, asked.model or MODELS, asked.method or METHODS)
    for devices, model, method in cells:
        if any(tuple(each[name] for name in CELL) == (model, devices, method) for each in found):
            continue
        if method in MERGED and graph_of(model, devices, merging=True) is graph_of(model, devices):
            print(model, devices, "nothing is merged", flush=True)
            continue
        for row in searches(model, devices, method, asked.first, asked.most, asked.longest):
            print(json.dumps(row), flush=True)
            found.append(row)
        keep({**described(), "cluster": CLUSTER, "results": found}, asked.save)


if __name__ == "__main__":
    main()
