"""Graphs whose gradients are rewritten learn on cards what they learn on the processor."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.rewrites.encoders import Cast, PowerSgd, Rewrite, TopK
from tofu.partitioner import lower
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)
from tofu.runtime.executor import Executor

from ...partitioner.methods.autodist.embedded import BATCH, ROWS, embedded
from ...partitioner.methods.autodist.recurrences import linear
from .bench import Arrays, Bench, agree, learned
from .guards import intact

WHOLE = (AllReduce(),)
HOWS = {
    "float16": Synchronisation(WHOLE, None, Rewrite(Cast("float16", feedback=True))),
    "bfloat16, late": Synchronisation(WHOLE, None, Rewrite(Cast("bfloat16", feedback=True), 1)),
    "PowerSGD": Synchronisation(WHOLE, None, Rewrite(PowerSgd(2))),
    "the largest elements": Synchronisation(WHOLE, None, Rewrite(TopK(5))),
    "two levels": Synchronisation((AllReduce(two_level=True),), None, Rewrite(Cast("bfloat16"))),
    "via": Synchronisation((Server(3, via=(0, 2)),), None, Rewrite(Cast("float16"))),
}


def whole_numbers(graph: Graph) -> Arrays:
    """Return values whose products and sums are exact in the first iterations."""
    rng = np.random.default_rng(4)
    values: Arrays = {}
    for tensor in graph.tensors:
        if tensor.role is Role.SCALAR:
            values[tensor.name] = np.full(tensor.shape, 2.0**-9)
        elif tensor.role in (Role.DATA, Role.PARAMETER) and tensor.alias is None:
            values[tensor.name] = rng.integers(-12, 13, tensor.shape).astype(np.float64)
    return values


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_cards_learn_what_the_processor_learns(how: Synchronisation, bench: Bench) -> None:
    plan = compile_strategy(linear("float32"), 4, SyncStrategy({"fc_weight": how}, ((0, 1), (2, 3))))
    assert plan.graph is not None
    values, program = whole_numbers(plan.graph), lower(plan.graph, plan)
    with Executor(program) as executor:
        expected = learned(executor, values, steps=2)
    with bench.executor(program) as executor:
        bench.poison()
        for tensor in plan.graph.tensors:
            if tensor.role is Role.STATE and tensor.alias is None:
                executor.write(tensor.name, np.zeros(tensor.shape))
        found = learned(executor, values, steps=2)
        assert executor.fetched_bytes == program.planned_bytes > 0
        assert intact(bench.machine)
    assert (expected["fc_weight"] != values["fc_weight"]).any()
    agree(found, expected)


def test_cards_look_up_the_rows_that_they_have(bench: Bench) -> None:
    """A table cut by rows: each card sums the rows that it has, and the sums are added where samples are."""
    graph = embedded("float32")
    table = Synchronisation(tuple(map(Server, range(4))), evenly(0, ROWS, 4), masked=True)
    plan = compile_strategy(graph, 4, SyncStrategy({**all_reduce(graph, 4).variables, "table_weight": table}))
    assert plan.graph is not None
    values, program = whole_numbers(plan.graph), lower(plan.graph, plan)
    values["data"] = np.arange(BATCH) * 5.0 % ROWS
    with Executor(program) as executor:
        expected = learned(executor, values, steps=2)
    with bench.executor(program) as executor:
        bench.poison()
        found = learned(executor, values, steps=2)
        assert executor.fetched_bytes == program.planned_bytes > 0
        assert intact(bench.machine)
    assert (expected["table_weight"] != values["table_weight"]).any()
    agree(found, expected)
