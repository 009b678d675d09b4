"""Any assignment of tasks and holdings computes what one worker computes, and moves what is counted.

Every plan is random, see `assignments`, and goes through its file. The programs are checked, then run on the
NumPy engine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.layouts.forms import Spread, expand
from tofu.partitioner.plans.plan import Plan, decode_plan
from tofu.partitioner.plans.plan_file import encode_plan
from tofu.programs import plan_memory, schedule
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.clock import transferred
from tofu.programs.program import Compute, PartitionedGraph

from .assignments import MODELS, network, random_plan

Values = dict[str, Any]

STEPS = 2


def trained(program: PartitionedGraph, threads: int | None = None) -> tuple[Values, int]:
    """The persistent tensors after some steps, and the bytes fetched in one."""
    drawn = np.random.default_rng(0)
    with tofu.Executor(program, threads=threads) as executor:
        names = [t.name for t in program.graph.tensors if t.role.persistent and t.alias is None]
        for tensor in (t for t in program.graph.tensors if t.name in names):
            value = drawn.uniform(0.1, 0.4, tensor.shape) * drawn.choice([-1, 1], tensor.shape)
            executor.write(tensor.name, np.zeros_like(value) if "label" in tensor.name else value)
        for _ in range(STEPS):
            executor.run()
        return {name: executor.read(name) for name in names}, executor.fetched_bytes


@cache
def trained_alone(graph: Graph) -> Values:
    """The values that one worker learns."""
    return trained(tofu.lower(graph, tofu.partition(graph, 1)))[0]


def check(name: str, seed: int) -> None:
    workers = 2 + seed % 4
    graph = network(name)
    runs(graph, random_plan(graph, workers, seed), threads=2 * workers if seed % 2 else None)


def runs(graph: Graph, plan: Plan, threads: int | None = None) -> None:
    """A plan and its programs are right, compute what one worker computes, and move what is counted."""
    assert decode_plan(encode_plan(plan).encode()) == plan
    plan.verify(graph)
    tofu.verify(graph, plan)
    program = tofu.lower(graph, plan)
    memory = plan_memory(program)
    check_program(graph, plan.workers, plan.cost_bytes, program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)
    idle(plan, program)
    found, fetched = trained(program, threads)
    assert fetched == program.planned_bytes == plan.cost_bytes
    for tensor, value in trained_alone(graph).items():
        largest = float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[tensor], value, rtol=1e-3, atol=2e-4 * largest, err_msg=tensor)


def idle(plan: Plan, program: PartitionedGraph) -> None:
    """A worker computes exactly its tasks."""
    for worker, one in enumerate(program.programs):
        computed = [each.operation for each in one.instructions if isinstance(each, Compute)]
        for operation in program.graph.operations:
            form, bound = plan.strategies[operation.name], operation.bound
            parts = expand(form, bound.full_box, bound.variables.index, plan.factors)  # type: ignore[arg-type]
            assert computed.count(operation.index) == (parts.workers == worker).sum()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", MODELS)
def test_random_assignments(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 52))
@pytest.mark.parametrize("name", MODELS)
def test_many_random_assignments(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.parametrize(
    ("workers", "feed"),
    [
        (3, "anywhere"),
        (4, "batch"),
        pytest.param(3, "batch", marks=pytest.mark.slow),
        pytest.param(8, "batch", marks=pytest.mark.slow),
        pytest.param(8, "anywhere", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_searched_plans_that_keep_what_is_made(name: str, workers: int, feed: str) -> None:
    graph = network(name)
    runs(graph, tofu.partition(graph, workers, "refine", feed=feed))


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
def test_an_all_reduce_moves_the_tensor_twice_to_each_but_one(workers: int) -> None:
    """Data parallel: parameters everywhere, every worker a part of the samples, gradients reduced in two
    hops.
    """
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plan = tofu.partition(graph, workers)
    samples = {o.name: _over_samples(o, workers) for o in graph.operations}
    layouts: dict[str, Any] = {}
    for tensor in graph.tensors:
        split = tensor.shape and tensor.shape[0] == 16
        everywhere = Spread(((None, workers),), tuple(range(workers)))
        form = Spread(((0, workers),), tuple(range(workers))) if split else everywhere
        reduced = not split and tensor.shape and tensor.shape[0] >= workers
        via = Spread(((0, workers),), tuple(range(workers))) if reduced else None
        layouts[tensor.name] = replace(plan.layouts[tensor.name], form=form, via=via)
    total = count_bytes(graph, layouts, samples, plan.factors)[-1]
    plan = replace(
        plan,
        layouts=layouts,
        strategies=samples,
        cost_bytes=total,
        step_cost_bytes=(total,),
        lower_bound_bytes=0,
        unproven=(),
    )
    tofu.verify(graph, plan)
    parameters = [t for t in graph.tensors if t.role.name == "PARAMETER" and t.alias is None]
    nbytes = sum(int(np.prod(t.shape)) * t.itemsize for t in parameters)
    assert total == 2 * (workers - 1) * nbytes
    program = tofu.lower(graph, plan)
    received = [_received(one, program) for one in program.programs]
    assert sum(received) == total
    assert max(received) - min(received) <= total // 50
    found, fetched = trained(program)
    assert fetched == total
    expected, _ = trained(tofu.lower(graph, tofu.partition(graph, 1)))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)


def _over_samples(operation: Any, workers: int) -> Spread:
    """Split an operation along its variable with 16 values, if there is one; repeat it otherwise."""
    bound = operation.bound
    along = [v for v, extent in bound.extents.items() if extent == 16 and bound.kind(v) is not None]
    return Spread(((along[0] if along else None, workers),), tuple(range(workers)))


def _received(one: Any, program: PartitionedGraph) -> int:
    moved = [piece for each in one.instructions for piece in transferred(each) if piece.worker != one.worker]
    tensors = program.graph.tensors
    return sum(
        int(np.prod([b - a for a, b in piece.region]))
        * tensors[program.programs[piece.worker].buffers[piece.buffer].tensor].itemsize
        for piece in moved
    )
