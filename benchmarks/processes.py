"""An iteration in one process for each worker, against threads of one process on the same processors.

    python -m benchmarks.processes [--iterations 20] [--only mlp] [--save benchmarks/results/processes.json]

Every case is trained on threads first, then over sockets and over gloo. Times are the least and the median of
an iteration.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.programs.process_messages import messages_of
from tofu.programs.program import PartitionedGraph
from tofu.runtime.executor import Executor

from .machine import described
from .record import keep

CASES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "mlp": (4, {}),
    "lenet": (4, {"batch": 32}),
    "wresnet-10-2": (4, {"batch": 8}),
    "lstm": (4, {}),
}
"""The workers and the options of every model."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time processes against threads.")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--transport", choices=["tcp", "gloo"], help="be one of several processes")
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    if arguments.transport is not None:
        member(arguments.only, arguments.transport, arguments.iterations)
        return
    names = list(CASES) if arguments.only is None else [arguments.only]
    cases = {name: measured(name, arguments.iterations) for name in names}
    print(keep({**described(), "cases": cases}, arguments.save))


def lowered(name: str) -> PartitionedGraph:
    workers, options = CASES[name]
    graph = tofu.models.get(name, **options).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


def measured(name: str, iterations: int) -> dict[str, Any]:
    """Return the messages and the times of a case."""
    partitioned = lowered(name)
    with Executor(partitioned) as executor:
        times: dict[str, Any] = {"threads": timed(executor, iterations)}
    for transport in ("tcp", "gloo"):
        times[transport] = several(name, partitioned.workers, transport, iterations)
    return {
        "workers": partitioned.workers,
        "messages": len(messages_of(partitioned, range(partitioned.workers))),
        "planned_bytes": partitioned.planned_bytes,
        "least and median milliseconds": times,
    }


def several(name: str, workers: int, transport: str, iterations: int) -> list[float]:
    """Return the times of a case in a process for each worker."""
    code = (
        "import sys; from tofu.runtime.distributed.launch import launch; "
        "sys.exit(launch([sys.executable, *sys.argv[2:]], int(sys.argv[1])))"
    )
    command = ["-m", "benchmarks.processes", "--only", name, "--transport", transport]
    command += ["--iterations", str(iterations)]
    done = subprocess.run(
        [sys.executable, "-c", code, str(workers), *command], check=True, stdout=subprocess.PIPE, timeout=600
    )
    found: list[float] = json.loads(done.stdout)
    return found


def member(name: str, transport: str, iterations: int) -> None:
    """Be one of several processes; the first one prints the times."""
    from tofu.runtime.distributed.launch import end_with_parent

    end_with_parent(os.environ)
    with (
        tofu.distributed(transport=transport) as processes,
        Executor(lowered(name), make_engine=processes.engine()) as executor,
    ):
        times = timed(executor, iterations)
        if not processes.number:
            print(json.dumps(times))


def timed(executor: Executor, iterations: int) -> list[float]:
    """Return the least and the median milliseconds of an iteration, on memory that holds zeros."""
    executor.run()
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        executor.run()
        times.append(1000 * (time.perf_counter() - started))
    return [round(float(np.min(times)), 2), round(float(np.median(times)), 2)]


if __name__ == "__main__":
    main()
