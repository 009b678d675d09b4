"""The training step in Tofu: python -m benchmarks.steps.tofu_step FOLDER CORE WORKERS [native] [merge]."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from statistics import median
from typing import Any

import numpy as np

from benchmarks.steps.serving import RATE, given, loss_of, pin, serve

PROFILED_STEPS = 5
PASSES = 3
"""The forward pass, and the gradients of data and weights, each about as many operations."""

SQUARE = 1024


def main(folder: str, core: str, workers: str, *options: str) -> None:
    """Serve steps; with `native` by kernels in C, with `merge` of operations that are merged."""
    pin(int(core))
    from tofu.operators.native.asked import asking

    with asking() if "native" in options else nullcontext():
        serve_steps(folder, workers, merge="merge" in options)


def serve_steps(folder: str, workers: str, merge: bool) -> None:
    """Serve steps in this process."""
    from tofu import models, partition
    from tofu.dataflow.graph import Graph, Phase
    from tofu.partitioner import lower
    from tofu.partitioner.plans.plan import graph_of
    from tofu.runtime.executor import Executor
    from tofu.runtime.processor_libraries import library_names

    facts, tensors = given(folder)
    model = models.get(facts["model"], batch=facts["batch"], **facts.get("options", {}))
    rate = RATE * facts["batch"] / tensors["softmax_label"].size  # peers take the mean over all labels
    written: Graph = model.training_graph()
    plan = partition(written, workers=int(workers), merge=merge, memory="unlimited" if merge else None)
    graph = graph_of(plan)

    def started(timed: bool) -> Executor:
        executor = Executor(lower(graph, plan), threads=1, timed=timed)
        for name in tensors:
            if executor.has(name):
                executor.write(name, tensors[name])
        executor.write("learning_rate", np.full(1, rate, np.float32))
        return executor

    executor = started(timed=False)

    def step() -> float:
        executor.run()
        return loss_of(executor.read(f"{facts['output']}_output"), tensors["softmax_label"])

    def profile() -> dict[str, Any]:
        """Return the parts of a step's time, and the time of its floating-point operations as one product."""
        with started(timed=True) as timed:
            taken: list[dict[str, float]] = []
            for _ in range(1 + PROFILED_STEPS):
                timed.run()
                taken.append(timed.operator_seconds)
            seconds = {name: median(each[name] for each in taken[1:]) for name in taken[-1]}
            instructions = sum(len(program.instructions) for program in timed.partitioned.programs)
        forward = (each for each in graph.operations if each.phase is Phase.FORWARD)
        flops = PASSES * sum(operation.bound.flops or 0 for operation in forward)
        return {
            "operator_seconds": seconds,
            "instructions": instructions,
            "fetched_bytes": executor.fetched_bytes,
            "operations": flops,
            "product_seconds": flops / product_rate(),
        }

    serve(
        {
            "version": f"NumPy {version('numpy')}",
            "code_for": library_names(),
            "merged": plan.merged,
            "parameters": model.weight_count,
            "threads": 1,
        },
        step,
        profile=profile,
    )
    executor.close()


def product_rate() -> float:
    """Operations per second of one large product of matrices, the best of several."""
    a = np.ones((SQUARE, SQUARE), np.float32)
    out = np.empty_like(a)
    return 2 * SQUARE**3 / min(_seconds(lambda: np.matmul(a, a, out=out)) for _ in range(7))


def _seconds(run: Callable[[], object]) -> float:
    started = time.thread_time()
    run()
    return time.thread_time() - started


if __name__ == "__main__":
    main(*sys.argv[1:])
