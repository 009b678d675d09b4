from __future__ import annotations

from typing import Any

import numpy as np

from tofu.dataflow.training import training_graph
from tofu.models import get
from tofu.partitioner import lower, partition
from tofu.programs.memory import plan_memory
from tofu.programs.offsets import ALIGNMENT_BYTES
from tofu.programs.program import Lane, PartitionedGraph
from tofu.runtime.executor import Executor
from tofu.runtime.footprint import footprint
from tofu.runtime.preparation import allocate, buffers_in, prepare


def small_residual_network(workers: int) -> PartitionedGraph:
    model = get("wresnet-10-1", batch=4, image=(1, 8, 8), classes=10)
    graph = training_graph(model.symbol, model.shapes, "sgd")
    return lower(graph, partition(graph, workers=workers))


def test_a_worker_needs_what_its_largest_kernel_needs(toys: Any) -> None:
    """Toy kernels that take scratch: the shared block is the largest need, not the sum."""
    needs = iter((100, 3000, 500, 64))

    def hungry(call: Any) -> Any:
        scratch = call.workspace.array((call.bound.nbytes,), np.uint8)
        return lambda: scratch.fill(255)

    class Bound(toys.FakeBound):  # type: ignore[misc]
        nbytes = 0

    toy = toys.Toy(1)
    x = toy.tensor("x", 4, toys.Role.DATA)
    for number in range(4):
        bound = Bound(toys.ADD.description, ("i",), frozenset(), hungry)
        object.__setattr__(bound, "nbytes", next(needs))
        x = toy.apply(bound, [x, x], f"t{number}")
    partitioned = toy.lower([x])
    memory = plan_memory(partitioned)
    buffers = buffers_in(partitioned, memory, allocate(partitioned, memory))
    assert prepare(partitioned, buffers, 0).workspace_bytes == 3008


def test_footprint_is_what_an_executor_holds() -> None:
    partitioned = small_residual_network(workers=2)
    expected = footprint(partitioned)
    with Executor(partitioned) as executor:
        assert executor.peak_bytes_per_worker == expected.peak_bytes
        assert executor.workspace_bytes_per_worker == max(expected.workspace_bytes) > 0
        assert executor.peak_bytes_per_worker > max(expected.arena_bytes)


def test_an_iteration_does_not_read_what_an_earlier_one_left_in_a_workspace() -> None:
    partitioned = small_residual_network(workers=2)
    generator = np.random.default_rng(0)
    first = {}
    for poison in (0, 255):
        with Executor(partitioned, threads=1) as executor:
            for prepared in executor._engine._prepared:
                for workspace in prepared.workspaces:
                    workspace.block.fill(poison)
            names = [t.name for t in partitioned.graph.tensors if t.role.persistent and t.alias is None]
            for name in names:
                shape = next(t.shape for t in partitioned.graph.tensors if t.name == name)
                first.setdefault(name, generator.integers(0, 3, shape).astype(np.float32))
                executor.write(name, first[name])
            executor.run()
            found = {name: executor.read(name) for name in names}
        if poison == 0:
            expected = found
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
        assert np.isfinite(value).all()


def test_workers_of_one_thread_have_their_scratch_in_the_same_memory() -> None:
    partitioned = small_residual_network(workers=2)
    for threads in (1, 2):
        with Executor(partitioned, threads=threads) as executor:
            blocks = [prepared.workspaces[Lane.COMPUTE].block for prepared in executor._engine._prepared]
            assert all(block.nbytes for block in blocks)
            assert np.shares_memory(*blocks) == (threads == 1)


def test_arenas_lie_one_after_the_other() -> None:
    memory = plan_memory(small_residual_network(workers=2))
    first, second = allocate(small_residual_network(workers=2), memory)
    assert (first.nbytes, second.nbytes) == memory.arena_bytes
    gap = second.ctypes.data - first.ctypes.data - first.nbytes
    assert 0 <= gap < ALIGNMENT_BYTES
    assert not (first.ctypes.data % ALIGNMENT_BYTES)
    assert not (second.ctypes.data % ALIGNMENT_BYTES)
    assert not (first.any())
    assert not (second.any())
