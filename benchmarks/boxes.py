"""Several boxes of eight cards, simulated: plans that know the levels, flat plans, and data parallelism.

    python -m benchmarks.boxes [--only MODEL] [--boxes 2] [--save benchmarks/results/boxes.json]

A box is a `dgx-1-v100`, and the network between boxes is its slowest link. `flat` is the method `recursive`
for the fewest bytes, which does not know the machine. `levels` minimises the time over its links, and
`step-time` adds latency and computations, see `docs/machines.md`. No search has a limit of memory, so
`arena_gb`, the largest arena of a worker, is in the table. `step_ms` is the simulated time of an iteration,
`between_gb` the bytes that cross between boxes, `inside_gb` the others.

Every plan is searched, lowered and simulated in a process of its own, which has `LIMIT_SECONDS` of the
processor. A case that needs more is in the table without figures. With `--save`, what the file has is not
computed again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import tofu
from tofu.machines.machine_file import load_machine
from tofu.partitioner.costs.traffic import traffic
from tofu.programs.memory import plan_memory

from .machine import described
from .record import Row, keep

MODELS = {"wresnet-152-10": 4, "rnn-10-8k": 32, "gpt-36-1280": 1}
"""The samples of every model for each card."""

BOXES = (2, 4, 8)
CARDS = 8
PLANS = {
    "flat": ("recursive", "bytes"),
    "levels": ("recursive", "time"),
    "step-time": ("recursive", "step-time"),
    "data parallel": ("data-parallel", "bytes"),
}
"""The method and the objective of every kind of plan."""

LIMIT_SECONDS = 240


def measured(model: str, boxes: int, kind: str) -> Row:
    """Return the figures of one plan."""
    machine = load_machine(f"{boxes}x-dgx-1-v100")
    graph = tofu.models.get(model, batch=MODELS[model] * boxes * CARDS).training_graph()
    method, objective = PLANS[kind]
    start = time.process_time()
    plan = tofu.partition(
        graph,
        boxes * CARDS,
        method,
        memory="unlimited",
        objective=objective,
        machine=None if objective == "bytes" else machine,
    )
    searched = time.process_time() - start
    programs = tofu.lower(graph, plan)
    crossing = dict(zip(machine.level_names, traffic(programs, machine).crossing_bytes, strict=True))
    between = crossing.pop("node")
    return {
        "step_ms": round(tofu.simulate(programs, machine).seconds * 1e3, 1),
        "between_gb": round(between / 1e9, 3),
        "inside_gb": round(sum(crossing.values()) / 1e9, 3),
        "arena_gb": round(max(plan_memory(programs).arena_bytes) / 1e9, 2),
        "search_seconds": round(searched, 1),
        "total_seconds": round(time.process_time() - start, 1),
    }


def apart(model: str, boxes: int, kind: str) -> Row:
    """Return the figures of one plan, computed in a process of its own; none if they take too long."""
    named = {"model": model, "batch": MODELS[model] * boxes * CARDS, "boxes": boxes, "plan": kind}
    command = [sys.executable, "-m", "benchmarks.boxes", "--only", model, "--boxes", str(boxes)]
    done = subprocess.run([*command, "--plan", kind], stdout=subprocess.PIPE, check=False)
    if done.returncode < 0:
        return {**named, "stopped_after_seconds": LIMIT_SECONDS}
    done.check_returncode()
    return {**named, **json.loads(done.stdout)}


def rows(models: list[str], boxes: list[int], known: list[Row]) -> Iterator[Row]:
    done = {(row["model"], row["boxes"], row["plan"]): row for row in known}
    for count in boxes:
        for model in models:
            for kind in PLANS:
                yield done.get((model, count, kind)) or apart(model, count, kind)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=MODELS, help="one model")
    parser.add_argument("--boxes", type=int, choices=BOXES, help="one number of boxes")
    parser.add_argument("--plan", choices=PLANS, help="print the figures of one plan of a model")
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    if arguments.plan is not None:
        if arguments.only is None or arguments.boxes is None:
            parser.error("--plan needs --only and --boxes")
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
        print(json.dumps(measured(arguments.only, arguments.boxes, arguments.plan)))
        return
    models = list(MODELS) if arguments.only is None else [arguments.only]
    boxes = list(BOXES) if arguments.boxes is None else [arguments.boxes]
    path = arguments.save
    known = json.loads(path.read_text())["results"] if path is not None and path.exists() else []
    found: list[Row] = []
    for row in rows(models, boxes, known):
        print(json.dumps(row), flush=True)
        found.append(row)
        keep({**described(), "results": found}, path)


if __name__ == "__main__":
    main()
