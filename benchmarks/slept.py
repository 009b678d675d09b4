"""Placements whose kernels only sleep, on threads, against their simulation.

    python -m benchmarks.slept [--save benchmarks/results/slept.json] [--rounds 5]

`pardnn` and `place` put whole operations of two models on 4 and 8 workers of `pcie-8`. Every kernel then
sleeps `SLEEP_SECONDS`, which is also its simulated time, so `error` shows what the simulation says of order
and waits: the simulated time over the median measured one, less 1. `alone` is the time of all kernels, one
after the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import tofu

from .accuracy import SLEEP_SECONDS, iterations, machine_file, simulated
from .machine import described
from .record import keep, printed
from .scale import sleeping

MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"batch": 2, "layers": 4, "steps": 8, "hidden": 4},
    "lenet": {"batch": 2},
}
WORKERS = (4, 8)
PLACED_FOR = "pcie-8"


def rows(folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the times of every placement."""
    for name, options in MODELS.items():
        graph = tofu.models.get(name, **options).training_graph()
        for workers in WORKERS:
            for method in ("pardnn", "place"):
                groups = {"groups": f"{workers}x1"} if method == "place" else {}
                plan = tofu.partition(graph, workers, method, machine=_even(), **groups)
                program = sleeping(tofu.lower(graph, plan), SLEEP_SECONDS)
                machine = tofu.machines.measure(
                    [program], machine_file(folder, f"{name}{workers}{method}"), rounds=3
                )
                seconds = median(iterations([program], rounds)[0])
                predicted = simulated(program, machine).seconds
                yield {
                    "model": name,
                    "workers": workers,
                    "method": method,
                    "alone": round(len(graph.operations) * SLEEP_SECONDS, 4),
                    "seconds": round(seconds, 4),
                    "simulated_seconds": round(predicted, 4),
                    "error": round(predicted / seconds - 1, 4),
                }


def _even() -> tofu.machines.Machine:
    """Return the machine on which operations take equal times, since nearly all of a time is the start."""
    machine = tofu.machines.load(PLACED_FOR)
    kinds = tuple(replace(kind, start_seconds=SLEEP_SECONDS) for kind in machine.kinds)
    return replace(machine, kinds=kinds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="write the results to this file")
    parser.add_argument("--rounds", type=int, default=5, help="iterations of each plan that are measured")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = printed(rows(Path(folder), arguments.rounds))
    keep({**described(), "results": found}, arguments.save)


if __name__ == "__main__":
    main()
