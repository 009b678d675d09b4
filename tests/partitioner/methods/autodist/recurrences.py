"""A linear network with one weight, and what NumPy alone says that training learns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.rewrites.encoders import Rewrite
from tofu.dataflow.training import training_graph
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import AllReduce, Synchronisation, SyncStrategy
from tofu.runtime.executor import Executor

Values = npt.NDArray[np.float64]

BATCH, INPUTS, OUTPUTS, RATE = 8, 6, 4, 2.0**-9
GENERATOR = np.random.default_rng(11)
WEIGHT: Values = GENERATOR.integers(-4, 5, (OUTPUTS, INPUTS)).astype(np.float64)
BATCHES = [
    (
        GENERATOR.integers(-40, 41, (BATCH, INPUTS)).astype(np.float64),
        GENERATOR.integers(-40, 41, (BATCH, OUTPUTS)).astype(np.float64),
    )
    for _ in range(4)
]

Exchange = Callable[[list[Values]], Values]
"""From the local gradients of all workers to the gradient that they learn from."""


def linear(dtype: str = "float64") -> Graph:
    """Return the training graph: `fc_weight` learns by plain gradient descent."""
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=OUTPUTS, no_bias=True, name="fc")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (BATCH, INPUTS), "label": (BATCH, OUTPUTS)}
    return training_graph(net, shapes, sgd(momentum=0, rescale=1.0), dtype=dtype)


def planned(rewrite: Rewrite, workers: int, how: Synchronisation | None = None) -> Plan:
    """Return the plan of a strategy that rewrites the gradient of the weight."""
    base = how or Synchronisation((AllReduce(),))
    strategy = SyncStrategy({"fc_weight": Synchronisation(base.parts, base.partition, rewrite)})
    return compile_strategy(linear(), workers, strategy)


def learned(plan: Plan) -> list[Values]:
    """Return the weight after each iteration."""
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    program = lower(plan.graph, plan)
    assert program.planned_bytes == plan.cost_bytes
    found = []
    with Executor(program) as executor:
        executor.write("fc_weight", WEIGHT)
        executor.write("learning_rate", [RATE])
        for data, label in BATCHES:
            executor.write("data", data)
            executor.write("label", label)
            executor.run()
            assert executor.fetched_bytes == program.planned_bytes
            found.append(np.array(executor.read("fc_weight"), np.float64))
    return found


def recurrence(workers: int, exchange: Exchange, delay: int = 0) -> list[Values]:
    """Return the weight after each iteration, from NumPy."""
    weight, waiting, found = WEIGHT, [np.zeros_like(WEIGHT)] * delay, []
    for data, label in BATCHES:
        local = [
            (x @ weight.T - y).T @ x / OUTPUTS
            for x, y in zip(np.split(data, workers), np.split(label, workers), strict=True)
        ]
        waiting.append(exchange(local))
        weight = weight - RATE * waiting.pop(0)
        found.append(weight)
    return found


def rounded(values: Values, dtype: str) -> Values:
    """Round to a type of 16 bits; bfloat16 by the bits of float32, ties to even."""
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float64)
    bits = values.astype(np.float32).view(np.uint32)
    upper = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return upper.view(np.float32).astype(np.float64)
