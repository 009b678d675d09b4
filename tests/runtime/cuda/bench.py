"""Executors on the CUDA engine, whose machine is the host's stand-in or real cards, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.dataflow.graph import Graph, Role
from tofu.partitioner import lower, partition
from tofu.programs.memory import MemoryPlan
from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.engine import Watch
from tofu.runtime.executor import Executor

from .guards import Guarded, fill

Arrays = dict[str, npt.NDArray[Any]]


class Bench:
    """Makes executors; the newest one's engine and machine are `engine` and `machine`.

    `new_machine(workers, **options)` makes machines.
    """

    def __init__(self, name: str, new_machine: Callable[..., Guarded]) -> None:
        self.name = name
        self.new_machine = new_machine
        self.machine: Guarded
        self.engine: CudaEngine

    @property
    def on_cards(self) -> bool:
        return self.name == "cards"

    def maker(self, *, eager: bool = False, **options: Any) -> Callable[..., CudaEngine]:
        """A `MakeEngine`; `options` are the machine's."""

        def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> CudaEngine:
            self.machine = self.new_machine(partitioned.workers, **options)
            plan = schedule(partitioned, memory)
            try:
                self.engine = CudaEngine(partitioned, memory, plan, self.machine, watch=watch, eager=eager)
            except BaseException:
                self.machine.close()
                raise
            return self.engine

        return make

    def executor(
        self,
        partitioned: PartitionedGraph,
        *,
        eager: bool = False,
        timed: bool = False,
        detect_nan: bool = False,
        **machine: Any,
    ) -> Executor:
        make = self.maker(eager=eager, **machine)
        return Executor(partitioned, make_engine=make, timed=timed, detect_nan=detect_nan)

    def poison(self) -> None:
        """Make all numbers in arenas and scratch NaN; flags stay zero."""
        for worker, prepared in enumerate(self.engine._prepared):
            arena, *others = [block for block in self.machine.blocks if block.worker == worker]
            fill(self.machine, worker, arena.address, arena.nbytes)
            if prepared.scratch_bytes:
                fill(self.machine, worker, others[0].address, prepared.scratch_bytes)


def over(graph: Graph, workers: int) -> PartitionedGraph:
    return lower(graph, partition(graph, workers=workers))


def start(graph: Graph, seed: int = 0) -> Arrays:
    """Values for all that persists, so that numbers stay near one; data are small whole numbers."""
    rng = np.random.default_rng(seed)
    values: Arrays = {}
    for tensor in graph.tensors:
        if tensor.role.persistent and tensor.alias is None:
            if tensor.role is Role.DATA:
                value = rng.integers(0, 3, tensor.shape)
            elif tensor.role is Role.SCALAR:
                value = np.full(tensor.shape, 0.01)
            elif len(tensor.shape) > 1:
                value = rng.standard_normal(tensor.shape) / np.sqrt(np.prod(tensor.shape[1:]))
            else:
                value = rng.uniform(0.5, 1, tensor.shape)
            values[tensor.name] = np.abs(value) if tensor.role is Role.STATE else value
    return values


def learned(executor: Executor, values: Arrays, steps: int = 3) -> Arrays:
    """Return the persistent tensors after some iterations, and the outputs of the graph."""
    for name, value in values.items():
        executor.write(name, value)
    for _ in range(steps):
        executor.run()
    graph = executor.partitioned.graph
    outputs = [graph.tensors[index].name for index in graph.outputs]
    return {name: np.array(executor.read(name)) for name in (*values, *outputs)}


def agree(found: Arrays, expected: Arrays, tolerance: float = 2e-5) -> None:
    """Raise AssertionError unless all numbers are close, relative to the largest of their tensor."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert np.isfinite(values).all(), name
        scale = np.abs(values).max(initial=1e-3)
        np.testing.assert_allclose(found[name], values, tolerance, tolerance * scale, err_msg=name)


def same(found: Arrays, expected: Arrays) -> None:
    """Raise AssertionError unless all bits are the same."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name].view(np.uint8), values.view(np.uint8), err_msg=name)
