"""The plans of `anneal` with all of its moves and starts, and without one of them.

python -m benchmarks.anneal_moves [--model AlexNet --devices 16] [--without hops] [--proposals 40]
                                  [--save benchmarks/results/anneal_moves.json]

A model of `benchmarks.flexflow` on one of its clusters. Rows that the file has already are passed over.
`seconds` is the processor time of the search.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods import search as methods
from tofu.partitioner.methods.anneal import search, sweep
from tofu.partitioner.methods.anneal.moves import Moves
from tofu.partitioner.methods.anneal.rewrites import Rewrites
from tofu.partitioner.methods.flexflow.configurations import Configuration

from .flexflow import MODELS, cluster_of, graph_of
from .machine import described
from .record import keep

CELLS = (("AlexNet", 4), ("AlexNet", 16), ("RNNTC", 16))
CLUSTER = "P100"


def kept(*given: Any) -> Any:
    """Return the plan that a move is given last."""
    return given[-1]


def refused(*_: Any) -> None:
    raise PlanError("this start is left out")


def redrawn(moves: Moves, draw: Random, state: Sequence[Configuration | None]) -> dict[int, Configuration]:
    return moves._redraw(draw, state)


WITHOUT: dict[str, Callable[[], list[Any]]] = {
    "nothing": list,
    "orders": lambda: [patch.object(Rewrites, "_reordered", kept)],
    "list schedules": lambda: [patch.object(Rewrites, "scheduled", kept)],
    "hops": lambda: [patch.object(Rewrites, "_hopped", kept)],
    "small sums": lambda: [patch.object(Rewrites, "_rooted", kept)],
    "sweeps": lambda: [patch.object(sweep, "DECISIONS", 0)],
    "groups": lambda: [patch.object(search, "served_by_groups", refused)],
    "windows": lambda: [patch.object(Moves, "_solve", redrawn)],
    "exact": lambda: [patch.object(methods, "SMALL", 0)],
    "chains": lambda: [patch.object(search, "STARTS", 1), patch.object(search, "RESTARTS", -1)],
}
"""How to leave out each kind of move or start. Windows are replaced by random configurations. `groups` is the
start whose variables are served by groups.
"""


def row(model: str, devices: int, left_out: str, proposals: int) -> dict[str, Any]:
    graph, machine = graph_of(model, devices), cluster_of(CLUSTER, devices)
    begin = time.process_time()
    with ExitStack() as stack:
        for each in WITHOUT[left_out]():
            stack.enter_context(each)
        plan = tofu.partition(
            graph, devices, "anneal", memory="unlimited", machine=machine, proposals=proposals
        )
    return {
        "model": model,
        "devices": devices,
        "without": left_out,
        "proposals": proposals,
        "step_ms": round((plan.step_seconds or 0) * 1e3, 3),
        "bound_ms": round((plan.step_bound_seconds or 0) * 1e3, 3),
        "seconds": round(time.process_time() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", choices=MODELS, help="with --devices, instead of AlexNet on 4 and 16, RNNTC on 16"
    )
    parser.add_argument("--devices", type=int, default=16)
    parser.add_argument("--without", choices=WITHOUT, action="append", help="otherwise all of them")
    parser.add_argument("--proposals", type=int, default=40, help="of each chain")
    parser.add_argument("--save", type=Path, help="add the results to this file, after each row")
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    if asked.save is not None and asked.save.exists():
        found = json.loads(asked.save.read_text(encoding="utf-8"))["results"]
    known = {(each["model"], each["devices"], each["without"]) for each in found}
    for model, devices in [(asked.model, asked.devices)] if asked.model else CELLS:
        for left_out in asked.without or WITHOUT:
            if (model, devices, left_out) not in known:
                made = row(model, devices, left_out, asked.proposals)
                print(json.dumps(made), flush=True)
                found.append(made)
                keep({**described(), "cluster": CLUSTER, "results": found}, asked.save)


if __name__ == "__main__":
    main()
