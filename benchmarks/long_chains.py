"""A network of 2,000 layers, and a chain of 100,000 operators, in less than 2 GB.

    python -m benchmarks.long_chains [--save benchmarks/results/long_chains.json]

Each runs in a process of its own, whose peak is measured: it builds the symbol and the graph, searches a plan
for 2 workers, lowers it, plans memory, and runs an iteration. The network is trained by `sgd`. The chain, of
additions and hyperbolic tangents in turn, is computed only. Seconds are those of the processor, on a machine
that others use as well.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.training import inference_graph
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

from .machine import described
from .record import keep

WORKERS = 2
BATCH, WIDTH = 4, 8
MOST_BYTES = 2_000_000_000


def network(layers: int) -> Graph:
    """Return the training graph of a perceptron."""
    body = tofu.sym.Variable("data")
    for layer in range(layers):
        body = tofu.sym.FullyConnected(body, num_hidden=WIDTH, name=f"fc{layer}")
        body = tofu.sym.Activation(body, act_type="relu", name=f"relu{layer}")
    net = tofu.sym.SoftmaxOutput(body, name="softmax")
    return tofu.training_graph(net, {"data": (BATCH, WIDTH), "softmax_label": (BATCH,)}, "sgd")


def chain(operators: int) -> Graph:
    """Return the graph of a chain of element-wise operators."""
    body = tofu.sym.Variable("data")
    for number in range(operators):
        body = tofu.sym.tanh(body) if number % 2 else body + 1.0
    return inference_graph(body, {"data": (BATCH, WIDTH)})


CASES: dict[str, tuple[Callable[[int], Graph], int]] = {
    "network of layers": (network, 2_000),
    "chain of operators": (chain, 100_000),
}


def measured(make: Callable[[int], Graph], length: int) -> dict[str, Any]:
    """Return the operations of a graph, the seconds of each stage, and the peak of this process."""
    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = work()
        seconds[stage] = round(time.process_time() - started, 2)
        return found

    graph = timed("build", lambda: make(length))
    plan = timed("search", lambda: partition(graph, WORKERS))
    programs = timed("lower", lambda: lower(graph, plan))
    executor = timed("prepare", lambda: Executor(programs))
    with executor:
        for tensor in graph.tensors:
            if tensor.role in (Role.DATA, Role.PARAMETER):
                executor.write(tensor.name, np.zeros(tensor.shape, np.float32))
        timed("run", executor.run)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "length": length,
        "operations": len(graph.operations),
        "seconds": seconds,
        "peak_bytes": peak,
        "within_2_gb": peak < MOST_BYTES,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the lengths, for a quick look")
    parser.add_argument("--save", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    for name, (make, length) in CASES.items():
        results[name] = _alone(make, int(length * arguments.share))
        print(keep({**described(), "results": results}, arguments.save), flush=True)


def _alone(make: Callable[[int], Graph], length: int) -> dict[str, Any]:
    """Measure in a process of its own, so that its peak is of nothing else."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_send, args=(there, make, length))
    process.start()
    there.close()
    found: dict[str, Any] = here.recv()
    process.join()
    return found


def _send(there: Connection, make: Callable[[int], Graph], length: int) -> None:
    there.send(measured(make, length))


if __name__ == "__main__":
    main()
