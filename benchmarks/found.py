"""Plans that a search by simulation finds for this processor, against others, run by two workers.

    python -m benchmarks.found [--save benchmarks/results/found.json] [--rounds 9] [--proposals 1000]

`tofu.machines.measure` profiles the programs of `recursive` and `data-parallel`. `anneal` searches on that
machine, whose simulated time of the found plan is `predicted_seconds`. Then the plans run in turn, two
iterations each, of which the second counts. `seconds` is the median of the rounds, and `spread` the distance
between their quartiles over the median. `error` is the predicted time over the measured one, less 1. `ratio`
is the time of the found plan over that of the faster one of the two others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import tofu
from tofu.runtime.processor import host

from .accuracy import WORKERS, iterations, machine_file, simulated
from .machine import described
from .record import keep, printed

MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"batch": 128},
    "wresnet-10-2": {"batch": 64},
    "inception-v3": {"batch": 4},
}
OTHERS = ("recursive", "data-parallel")


def rows(folder: Path, rounds: int, proposals: int) -> Iterator[dict[str, Any]]:
    """Yield the times of each model's plans."""
    for name, options in MODELS.items():
        graph = tofu.models.get(name, **options).training_graph()
        plans = {method: tofu.partition(graph, WORKERS, method=method) for method in OTHERS}
        programs = {method: tofu.lower(graph, plan) for method, plan in plans.items()}
        machine = tofu.machines.measure(programs.values(), machine_file(folder, name), rounds=rounds)
        plans["anneal"] = tofu.partition(
            graph, WORKERS, method="anneal", machine=machine, memory="unlimited", proposals=proposals
        )
        programs["anneal"] = tofu.lower(graph, plans["anneal"])
        predicted = {method: simulated(program, machine).seconds for method, program in programs.items()}
        measured = dict(zip(programs, iterations(list(programs.values()), rounds), strict=True))
        yield {
            "model": name,
            "search_seconds": round(plans["anneal"].search_seconds or 0.0, 1),
            "ratio": round(median(measured["anneal"]) / min(median(measured[each]) for each in OTHERS), 4),
            **{method: _compared(predicted[method], measured[method]) for method in programs},
        }


def _compared(predicted: float, seconds: list[float]) -> dict[str, float]:
    lower, middle, upper = quantiles(seconds, n=4, method="inclusive")
    return {
        "seconds": round(middle, 5),
        "spread": round((upper - lower) / middle, 4),
        "predicted_seconds": round(predicted, 5),
        "error": round(predicted / middle - 1, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="write the results to this file")
    parser.add_argument("--rounds", type=int, default=9, help="iterations of each plan that are measured")
    parser.add_argument("--proposals", type=int, default=1000, help="proposals of each chain of the search")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = printed(rows(Path(folder), arguments.rounds, arguments.proposals))
    keep({**described(), "blas": host().blas, "results": found}, arguments.save)


if __name__ == "__main__":
    main()
