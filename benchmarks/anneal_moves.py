"""What each move and start of `anneal` adds: its plans with all of them, and without one.

python -m benchmarks.anneal_moves [--proposals 40] [--save benchmarks/results/anneal_moves.json]

A model of `benchmarks.flexflow` on one of its clusters. `seconds` is the processor time of the search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import tofu
from tofu.partitioner.methods import search as methods
from tofu.partitioner.methods.anneal import search
from tofu.partitioner.methods.anneal.moves import Moves
from tofu.partitioner.methods.anneal.rewrites import Rewrites, Timed
from tofu.partitioner.methods.flexflow.configurations import Configuration

from .flexflow import MODELS, cluster_of
from .machine import described
from .record import keep, printed

CELLS = (("AlexNet", 4), ("AlexNet", 16), ("RNNTC", 16))
CLUSTER = "P100"


def kept(_: Rewrites, found: Timed) -> Timed:
    return found


def redrawn(moves: Moves, draw: Random, state: Sequence[Configuration | None]) -> dict[int, Configuration]:
    return moves._redraw(draw, state)


WITHOUT: dict[str, Callable[[], list[Any]]] = {
    "nothing": list,
    "orders": lambda: [patch.object(Rewrites, "_reordered", kept)],
    "hops": lambda: [patch.object(Rewrites, "_hopped", kept)],
    "windows": lambda: [patch.object(Moves, "_solve", redrawn)],
    "exact": lambda: [patch.object(methods, "SMALL", 0)],
    "chains": lambda: [patch.object(search, "STARTS", 1), patch.object(search, "RESTARTS", -1)],
}
"""How to leave out each kind of move or start; windows are replaced by random configurations."""


def rows(proposals: int) -> Iterator[dict[str, Any]]:
    for model, devices in CELLS:
        make, samples = MODELS[model]
        graph, machine = make(samples * devices), cluster_of(CLUSTER, devices)
        for left_out, patches in WITHOUT.items():
            begin = time.process_time()
            with ExitStack() as stack:
                for each in patches():
                    stack.enter_context(each)
                plan = tofu.partition(
                    graph, devices, "anneal", memory="unlimited", machine=machine, proposals=proposals
                )
            yield {
                "model": model,
                "devices": devices,
                "without": left_out,
                "step_ms": round((plan.step_seconds or 0) * 1e3, 3),
                "bound_ms": round((plan.step_bound_seconds or 0) * 1e3, 3),
                "seconds": round(time.process_time() - begin, 1),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proposals", type=int, default=40, help="of each chain")
    parser.add_argument("--save", type=Path, help="write the results to this file")
    asked = parser.parse_args()
    results = printed(rows(asked.proposals))
    keep({**described(), "proposals": asked.proposals, "cluster": CLUSTER, "results": results}, asked.save)


if __name__ == "__main__":
    main()
