"""A training graph of over 200,000 operations, placed by ParDNN on 16 devices: the time of each stage.

    python -m benchmarks.placement_scale [--save benchmarks/results/placement_scale.json] [--layers 44]

The graph is an LSTM of 120 steps. *Placed* is the sum of the stages from the graph to workers and an order:
arrays, ParDNN, order and memory, the last within 1.25 times the mean of the workers' peaks. The plan, with
every form and copy, and its simulation come after that. Seconds are processor seconds, after compilation.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

import tofu
from tofu.partitioner.lowering.arenas import Arenas
from tofu.partitioner.methods.pardnn.pardnn import place
from tofu.partitioner.methods.placement.lifetimes import live_intervals
from tofu.partitioner.methods.placement.mend import mend
from tofu.partitioner.methods.placement.placing import Placing
from tofu.partitioner.methods.placement.priorities import emulated

from .machine import described
from .placement_memory import asked_for
from .record import Row, keep

WORKERS = 16
STEPS = 120
COMPILING_LAYERS = 2
"""The layers of a graph that goes through all stages first, so that their loops are compiled."""

T = TypeVar("T")


def stages(layers: int) -> Row:
    """Return the seconds of all stages, and the peak of the process after each."""
    found: Row = {"model": "lstm", "layers": layers, "steps": STEPS, "workers": WORKERS}

    def timed(stage: str, run: Callable[[], T]) -> T:
        begin = time.process_time()
        result = run()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        found[stage] = {"seconds": round(time.process_time() - begin, 2), "peak_mib": round(peak)}
        print(stage, found[stage], flush=True)
        return result

    model = tofu.models.get("lstm", layers=layers, steps=STEPS, batch=16, hidden=256)
    graph = timed("graph", model.training_graph)
    found["operations"] = len(graph.operations)
    arenas = Arenas(graph)
    placing = timed("arrays", lambda: Placing(asked_for(graph, WORKERS, arenas, 10**12), WORKERS))
    nodes, devices = placing.training.nodes, placing.devices
    worker = timed("pardnn", lambda: place(nodes, devices))
    schedule = timed("order", lambda: emulated(nodes, devices, worker)[1])
    peaks = live_intervals(nodes, WORKERS, schedule.order, worker).peak_bytes
    limited = replace(devices, memory_bytes=np.full(WORKERS, int(peaks.mean() * 1.25)))
    worker = timed("memory", lambda: mend(nodes, limited, schedule.order, worker))
    found["placed_seconds"] = round(
        sum(found[stage]["seconds"] for stage in ("arrays", "pardnn", "order", "memory")), 2
    )
    plan = timed("plan, simulated", lambda: placing.plan(replace(schedule, worker=worker)))
    found["step_seconds"] = plan.step_seconds
    found["largest_peak_bytes"] = timed("arenas", lambda: arenas.largest(plan))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="write the results to this file")
    parser.add_argument("--layers", type=int, default=44, help="layers of the LSTM")
    arguments = parser.parse_args()
    stages(COMPILING_LAYERS)
    print(keep({**described(), "results": [stages(arguments.layers)]}, arguments.save))


if __name__ == "__main__":
    main()
