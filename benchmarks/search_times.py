"""How long the searches of FlexFlow's models take to find plans of equal quality, next to its Table 5.

python -m benchmarks.search_times [--model AlexNet] [--devices 4] [--method anneal] [--most 1000]
                                  [--save benchmarks/results/search_times.json]

A search is repeated with ten times the proposals of each chain, until that finds a plan that is at most 1%
faster. The search before is then the one of *equal quality*. Models are those of `benchmarks.flexflow` on
clusters of P100. `seconds` is the processor time of the whole search, starts included, after a search of a
small graph has compiled all loops. Searches that the file has already are passed over.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import tofu

from .flexflow import MODELS, SEARCHES, cluster_of, graph_of
from .machine import described
from .record import Row, keep

CLUSTER = "P100"
DEVICES = (4, 8, 16, 32, 64)
FIRST = 10
TIMES_MORE = 10
EQUAL = 1.01
"""The time of an iteration over that of the plan of the larger budget, up to which plans are equal."""

CELL = ("model", "devices", "method", "proposals")


def searched(model: str, devices: int, method: str, proposals: int) -> Row:
    """Return the time of a search, and of an iteration of its plan."""
    graph, machine = graph_of(model, devices), cluster_of(CLUSTER, devices)
    begin = time.process_time()
    plan = tofu.partition(graph, devices, method, memory="unlimited", machine=machine, proposals=proposals)
    seconds = time.process_time() - begin
    assert plan.step_seconds is not None
    return {
        "model": model,
        "devices": devices,
        "method": method,
        "proposals": proposals,
        "step_ms": round(plan.step_seconds * 1e3, 3),
        "seconds": round(seconds, 2),
    }


def searches(model: str, devices: int, method: str, most: int, known: list[Row]) -> Iterator[Row]:
    """Yield searches with more and more proposals, until one gains little or `most` are reached."""
    before: Row | None = None
    proposals = FIRST
    while proposals <= most:
        cell = (model, devices, method, proposals)
        same = [each for each in known if tuple(each[name] for name in CELL) == cell]
        found = same[0] if same else searched(*cell)
        yield found
        if before is not None and before["step_ms"] <= EQUAL * found["step_ms"]:
            return
        before, proposals = found, proposals * TIMES_MORE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--devices", type=int, choices=DEVICES, action="append")
    parser.add_argument("--method", choices=SEARCHES, action="append")
    parser.add_argument("--most", type=int, default=1000, help="proposals of a chain; 1,000 by default")
    parser.add_argument("--save", type=Path, help="add the results to this file, after each search")
    asked = parser.parse_args()
    found: list[Row] = []
    if asked.save is not None and asked.save.exists():
        found = json.loads(asked.save.read_text(encoding="utf-8"))["results"]
    tofu.partition(tofu.models.get("lstm").training_graph(), 4, "anneal", machine="p100-node", proposals=20)
    cells = itertools.product(asked.devices or DEVICES, asked.model or MODELS, asked.method or SEARCHES)
    for devices, model, method in cells:
        for row in searches(model, devices, method, asked.most, list(found)):
            print(json.dumps(row), flush=True)
            if row not in found:
                found.append(row)
            keep({**described(), "cluster": CLUSTER, "results": found}, asked.save)


if __name__ == "__main__":
    main()
