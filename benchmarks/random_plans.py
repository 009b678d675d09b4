"""Errors of what is simulated of random plans, as TensorOpt's table 2 has them, on two processors.

    python -m benchmarks.random_plans [--plans 20] [--rounds 7] [--save benchmarks/results/random_plans.json]

Twenty random plans each of a recurrent network, a wide residual network and a transformer, over two workers
on the NumPy engine. All plans of a model are profiled together, and simulated with these times.

    time        the simulated time of an iteration, against the median of iterations that run in turn
    transfers   the time in which the worker that transfers longest does so, against the same by a profile of
                that plan alone, measured again
    memory      the planned arenas of all workers, against the bytes that the engine allocates for them

An error is the mean over the plans of how far the first is from the second, relative to the second.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tofu
from tofu.programs import PartitionedGraph, plan_memory
from tofu.runtime.executor import Executor

from .accuracy import MODELS, iterations, machine_file, randomly, simulated
from .machine import described
from .record import keep, printed

MEASURED = {"RNN": "lstm", "WideResNet": "wresnet-10-2", "Transformer": "transformer-encoder-2-256"}
"""TensorOpt's models, and those of the zoo that are measured."""

TENSOROPT = {"RNN": (7.16, 7.16, 4.86), "WideResNet": (7.62, 3.05, 4.47), "Transformer": (5.02, 7.23, 0.98)}
"""The errors of table 2, in per cent: of time, of transfers and of memory."""


def allocated_bytes(program: PartitionedGraph) -> int:
    """Return the bytes of memory that the engine allocates for the arenas of all workers."""
    with Executor(program) as executor:
        views = [view for buffers in executor._engine.buffers for view in buffers if view.size]
        return sum({id(root): root.nbytes for root in map(_root, views)}.values())


def _root(view: Any) -> Any:
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def row(model: str, plans: int, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        return _row(model, plans, rounds, Path(folder))


def _row(model: str, plans: int, rounds: int, folder: Path) -> dict[str, Any]:
    name = MEASURED[model]
    graph = tofu.models.get(name, **MODELS[name]).training_graph()
    programs = [tofu.lower(graph, randomly(graph, seed)) for seed in range(plans)]
    machine = tofu.machines.measure(programs, machine_file(folder, "first"), rounds=rounds)
    expected = [simulated(program, machine) for program in programs]
    seconds = [median(each) for each in iterations(programs, rounds)]
    alone = [
        tofu.machines.measure([program], machine_file(folder, f"{number}"), rounds=rounds)
        for number, program in enumerate(programs)
    ]
    moving = [simulated(*pair).transfer_seconds for pair in zip(programs, alone, strict=True)]
    planned = [sum(plan_memory(program).arena_bytes) for program in programs]
    memory = list(map(allocated_bytes, programs))
    return {
        "model": model,
        "measured": name,
        "plans": plans,
        "time_error": _error([each.seconds for each in expected], seconds),
        "transfer_error": _error([each.transfer_seconds for each in expected], moving),
        "memory_error": _error(planned, memory),
        "tensoropt": TENSOROPT[model],
    }


def _error(expected: Sequence[float], measured: Sequence[float]) -> float:
    """Return the mean relative error, in per cent."""
    return round(100 * fmean(abs(a / b - 1) for a, b in zip(expected, measured, strict=True)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    found = printed(row(model, arguments.plans, arguments.rounds) for model in MEASURED)
    keep({**described(), "results": found}, arguments.save)


if __name__ == "__main__":
    main()
