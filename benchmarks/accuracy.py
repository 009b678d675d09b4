"""Simulated against measured iterations on the NumPy engine, two workers on two processors.

    python -m benchmarks.accuracy [--save benchmarks/results/accuracy.json] [--rounds 15]

Four models, five plans of each: `recursive`, *plain* (without replicas and copies), `data-parallel`, *halves*
(the first half of the operations, by flops, on one worker, the rest on the other) and *random* (every
operation split along a random variable, whole on a random worker, or on both). `tofu.machines.measure`
profiles the programs of a model. Then its plans run in turn, two iterations each, of which the second counts,
and `seconds` is the median of the rounds. `spread` is the distance between the quartiles of the rounds, over
the median. `error` is the simulated time over the measured one, less 1. `unseen_error` is that of simulating
with the times of the plan of `recursive` alone, so that others are fitted.

Two plans of a model are in order if their simulated times are, unless their measured times differ by less
than the spread of either. *Sleep* is a plan whose kernels only sleep.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import tofu
from tofu.dataflow.graph import Graph
from tofu.machines.machine import Machine
from tofu.partitioner.layouts.forms import Form
from tofu.partitioner.plans.plan import Plan
from tofu.plans import Spread, compose
from tofu.programs import PartitionedGraph, plan_memory, schedule
from tofu.runtime.executor import Executor
from tofu.runtime.instruction_times import initial_values
from tofu.runtime.processor import host

from .machine import described
from .record import keep, printed
from .scale import sleeping

WORKERS = 2
MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"batch": 128},
    "lenet": {"batch": 512},
    "wresnet-10-2": {"batch": 64},
    "transformer-encoder-2-256": {"batch": 16, "steps": 64, "vocabulary": 1000},
}
SEED = 7
SLEEP_SECONDS = 0.004
ALLOWED, ALLOWED_MEDIAN, ALLOWED_SLEEP = 0.20, 0.08, 0.05


def halves(graph: Graph) -> Plan:
    """Place the first half of the operations, by flops, on worker 0 and the rest on worker 1."""
    flops = [operation.bound.flops or 0 for operation in graph.operations]
    reached, form_of = 0, {}
    for operation, own in zip(graph.operations, flops, strict=True):
        form_of[operation.name] = Spread((), (int(2 * reached > sum(flops)),))
        reached += own
    return compose(graph, WORKERS, form_of, _sources(graph, lambda tensor: Spread((), (0,))))


def randomly(graph: Graph, seed: int = SEED) -> Plan:
    """Split each operation along a random variable, or place it on a random worker, or on both."""
    draw = random.Random(seed)

    def form(labels: Sequence[str | int]) -> Form:
        chance = draw.random()
        if labels and chance < 0.7:
            return Spread(((draw.choice(labels), 2),), (0, 1))
        return Spread((), (draw.randrange(WORKERS),)) if chance < 0.9 else Spread(((None, 2),), (0, 1))

    operations = {
        operation.name: form([v for v in operation.bound.splits if operation.bound.kind(v) == "concat"])
        for operation in graph.operations
    }
    return compose(
        graph,
        WORKERS,
        operations,
        _sources(graph, lambda tensor: form([d for d, size in enumerate(tensor.shape) if size > 1])),
    )


def _sources(graph: Graph, form: Callable[[Any], Form]) -> dict[str, Form]:
    """Return forms of the tensors that no operation makes."""
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    return {tensor.name: form(tensor) for tensor in graph.tensors if tensor.index not in made}


PLANS: dict[str, Callable[[Graph], Plan]] = {
    "recursive": lambda graph: tofu.partition(graph, WORKERS),
    "plain": lambda graph: tofu.partition(graph, WORKERS, replicate=False, keep=False),
    "data-parallel": lambda graph: tofu.partition(graph, WORKERS, method="data-parallel"),
    "halves": halves,
    "random": randomly,
}


def simulated(program: PartitionedGraph, machine: Machine) -> tofu.Timeline:
    """Simulate as the engine runs: with the waits for memory that is used again."""
    return tofu.simulate(program, machine, schedule(program, plan_memory(program)))


def iterations(programs: Sequence[PartitionedGraph], rounds: int) -> list[list[float]]:
    """Return the seconds of the rounds of each program; all run in turn."""
    found: list[list[float]] = [[] for _ in programs]
    with ExitStack() as stack:
        executors = []
        for program in programs:
            executors.append(stack.enter_context(Executor(program)))
            for name, value in initial_values(program.graph):
                executors[-1].write(name, value)
            executors[-1].run()
        for _ in range(rounds):
            for executor, seconds in zip(executors, found, strict=True):
                executor.run()
                begin = time.perf_counter()
                executor.run()
                seconds.append(time.perf_counter() - begin)
    return found


def rows(folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield simulated and measured times of every plan."""
    for name, options in MODELS.items():
        graph = tofu.models.get(name, **options).training_graph()
        programs = {label: tofu.lower(graph, plan(graph)) for label, plan in PLANS.items()}
        first = tofu.machines.measure([programs["recursive"]], machine_file(folder, "first"), rounds=rounds)
        unseen = {label: simulated(program, first) for label, program in programs.items()}
        machine = tofu.machines.measure(programs.values(), machine_file(folder, "all"), rounds=rounds)
        measured = iterations(list(programs.values()), rounds)
        for (label, program), seconds in zip(programs.items(), measured, strict=True):
            timeline = simulated(program, machine)
            yield {
                "model": name,
                "plan": label,
                "instructions": len(timeline.work.workers),
                "moved_bytes": program.planned_bytes,
                **_compared(timeline.seconds, seconds),
                "times": timeline.times,
                "unseen_error": round(unseen[label].seconds / median(seconds) - 1, 4),
                "unseen_times": unseen[label].times,
            }


def slept(folder: Path, rounds: int) -> dict[str, Any]:
    """Compare a plan whose kernels sleep."""
    graph = tofu.models.get("lstm", batch=2, layers=2, steps=4, hidden=4).training_graph()
    program = sleeping(tofu.lower(graph, halves(graph)), SLEEP_SECONDS)
    machine = tofu.machines.measure([program], machine_file(folder, "all"), rounds=rounds)
    (seconds,) = iterations([program], rounds)
    return _compared(simulated(program, machine).seconds, seconds)


def machine_file(folder: Path, profile: str) -> Path:
    """Return a copy of the machine file with a profile of its own, so that the processor is measured once."""
    path, first = folder / f"{profile}.yaml", folder / "first.yaml"
    if not path.exists() and first.exists():
        path.write_bytes(first.read_bytes())
    return path


def _compared(simulated_seconds: float, seconds: Sequence[float]) -> dict[str, Any]:
    lower, middle, upper = quantiles(seconds, n=4, method="inclusive")
    return {
        "seconds": round(middle, 6),
        "spread": round((upper - lower) / middle, 4),
        "simulated_seconds": round(simulated_seconds, 6),
        "error": round(simulated_seconds / middle - 1, 4),
    }


def summary(found: Sequence[dict[str, Any]], sleep: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that must hold, and whether they do."""
    errors = [abs(row["error"]) for row in found]
    pairs = [(a, b) for a, b in combinations(found, 2) if a["model"] == b["model"] and _differ(a, b)]
    wrong = [
        f"{a['model']}: {a['plan']}, {b['plan']}"
        for a, b in pairs
        if (a["seconds"] < b["seconds"]) != (a["simulated_seconds"] < b["simulated_seconds"])
    ]
    return {
        "plans": len(found),
        "largest_error": max(errors),
        "median_error": round(median(errors), 4),
        "largest_spread": max(row["spread"] for row in found),
        "pairs": len(pairs),
        "pairs_out_of_order": wrong,
        "sleep_error": sleep["error"],
        "median_unseen_error": round(median(abs(row["unseen_error"]) for row in found), 4),
        "holds": max(errors) < ALLOWED
        and median(errors) < ALLOWED_MEDIAN
        and abs(sleep["error"]) < ALLOWED_SLEEP
        and not wrong,
    }


def _differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    noise = max(row["spread"] * row["seconds"] for row in (one, other))
    return abs(one["seconds"] - other["seconds"]) > noise


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="write the results to this file")
    parser.add_argument(
        "--rounds", type=int, default=15, help="iterations of each plan, profiled and measured"
    )
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = printed(rows(Path(folder), arguments.rounds))
        sleep = slept(Path(folder), arguments.rounds)
    whole = {
        **described(),
        "blas": host().blas,
        "results": found,
        "sleep": sleep,
        "summary": summary(found, sleep),
    }
    text = keep(whole, arguments.save)
    print(text[text.index('"sleep"') :])


if __name__ == "__main__":
    main()
