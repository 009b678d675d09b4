"""How long simulating an iteration takes, and what memory that is used again changes.

python -m benchmarks.simulator [--save benchmarks/results/simulator.json]

`simulate_seconds` is the processor time of `tofu.simulate` for a lowered program, the best of several. An
item is a job, or a pair of jobs of which one comes after the other. `memory_percent` is how much longer the
iteration is with the waits of the schedule.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tofu
from tofu.programs import PartitionedGraph, plan_memory, schedule

from .machine import described
from .record import keep, printed

MACHINE = "2x-dgx-1-v100"
CASES = (
    ("wresnet-152-10", 8),
    ("wresnet-101-4", 8),
    ("wresnet-50-4", 16),
    ("wresnet-50-4", 8),
    ("wresnet-50-4", 2),
    ("rnn-4-8k", 8),
)
ROUNDS = 15


def spent(program: PartitionedGraph) -> float:
    """Return the processor time of one simulation."""
    begin = time.process_time()
    tofu.simulate(program, MACHINE)
    return time.process_time() - begin


def measured() -> Iterator[dict[str, Any]]:
    for name, workers in CASES:
        graph = tofu.models.get(name).training_graph()
        program = tofu.lower(graph, tofu.partition(graph, workers))
        seconds = min(spent(program) for _ in range(ROUNDS))
        timeline = tofu.simulate(program, MACHINE)
        waiting = tofu.simulate(program, MACHINE, schedule(program, plan_memory(program)))
        jobs = timeline.work.jobs
        items = len(jobs.nanoseconds) + len(jobs.edges)
        yield {
            "model": name,
            "workers": workers,
            "operations": len(graph.operations),
            "instructions": len(timeline.work.workers),
            "jobs": len(jobs.nanoseconds),
            "simulate_seconds": round(seconds, 3),
            "microseconds_per_item": round(seconds / items * 1e6, 2),
            "iteration_ms": round(timeline.seconds * 1e3, 3),
            "memory_percent": round((waiting.seconds / timeline.seconds - 1) * 100, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    keep({**described(), "simulated": MACHINE, "results": printed(measured())}, arguments.save)


if __name__ == "__main__":
    main()
