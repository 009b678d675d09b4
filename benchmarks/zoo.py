"""Every model of the zoo over 8 workers: plans of three spaces, and the plans that people make by hand.

python -m benchmarks.zoo [MODEL[:BATCH] ...] [--save benchmarks/results/zoo.json]

`refine` searches the space where every tensor is split, and the one where tensors may be replicated. `exact`
searches the one where what is made may be kept as well (`benchmarks.space`). Memory is not limited, and
inputs are fed by batch. The table has the MiB that move in an iteration and the largest arena in MiB for each
of them, the gap to what is proven of the last space, the seconds of the processor of its search, and the
fewest MiB that a plan made by hand moves, with its name. Results also have the seconds after which the plan
was within 1% of the bound (`near_seconds`). Without models it is the whole zoo and the models of
the design.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import PlanError

from .gaps import DESIGN
from .machine import described
from .record import keep
from .space import MIB, SPACES, WORKERS, measured

BY_HAND = ("data-parallel", "zero-3", "megatron", "megatron-sp")
METHODS = {"split": "refine", "replicated": "refine", "kept": "exact"}
"""The method by which each space is searched."""
FEED = "batch"


def built(model: str) -> Graph:
    """Return the training graph of a model, written `name` or `name:batch`."""
    name, _, batch = model.partition(":")
    return (tofu.models.get(name, batch=int(batch)) if batch else tofu.models.get(name)).training_graph()


def compared(graph: Graph) -> dict[str, Any]:
    """Return the figures of all spaces, and of the plans made by hand that the graph has."""
    found: dict[str, Any] = {
        name: measured(graph, method, feed=FEED, **SPACES[name]) for name, method in METHODS.items()
    }
    for method in BY_HAND:
        try:
            found[method] = measured(graph, method, feed=FEED, **SPACES["kept"])
        except PlanError as error:
            found[method] = {"refused": str(error)}
    return found


def row(model: str, entry: dict[str, Any]) -> str:
    """Return a model's figures as a line of the table."""
    figures = " ".join(
        f"{entry[space]['cost_bytes'] / MIB:10.2f} {entry[space]['peak_bytes'] / MIB:8.1f}"
        for space in METHODS
    )
    kept = entry["kept"]
    moved = {name: entry[name]["cost_bytes"] for name in BY_HAND if "cost_bytes" in entry[name]}
    best = min(moved, key=moved.__getitem__, default="")
    by_hand = f"{moved[best] / MIB:10.2f} {best}" if best else ""
    return f"{model:24} {figures} {kept['gap']:7.2%} {kept['seconds']:6.1f} {by_hand}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL[:BATCH]")
    parser.add_argument("--save", type=Path, help="add the results to this file, in the order of the zoo")
    arguments = parser.parse_args()
    order = (*tofu.models.names(), *DESIGN)
    entries: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        entries = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    heads = " ".join(f"{space:>10} {'peak':>8}" for space in METHODS)
    print(f"{'model':24} {heads} {'gap':>7} {'s':>6} {'by hand':>10}")
    for model in arguments.models or order:
        entries[model] = compared(built(model))
        print(row(model, entries[model]), flush=True)
        ranked = dict(sorted(entries.items(), key=lambda item: (*order, item[0]).index(item[0])))
        keep({**described(), "workers": WORKERS, "feed": FEED, "results": ranked}, arguments.save)


if __name__ == "__main__":
    main()
