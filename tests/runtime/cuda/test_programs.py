"""The programs of both engines, and the places of the CUDA engine's arenas, with nothing allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu.dry_machine import WORKER_BYTES, DryMachine
from tofu.operators.cuda.launch.commands import Convolution, KernelLaunch, MatrixProduct, MemoryCopy
from tofu.programs.check_memory import check_memory
from tofu.programs.memory import MemoryPlan, plan_memory
from tofu.programs.offsets import ALIGNMENT_BYTES
from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import Schedule, schedule
from tofu.runtime import numpy_engine
from tofu.runtime.context import cpu, gpu
from tofu.runtime.cuda import cupy_machine
from tofu.runtime.cuda import engine as cuda_engine
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.cuda.preparation import arena_views
from tofu.runtime.engine import Watch
from tofu.runtime.module import TrainableModule

from .bench import over
from .graphs import ZOO, graph
from .test_module import batches, network

LARGE = ("inception-v3", "resnet-18", "transformer-1-16", "transformer-decoder-1-16", "vgg-11")
CASES = [
    pytest.param(name, workers, marks=pytest.mark.slow) if workers == 8 or name in LARGE else (name, workers)
    for name in ZOO
    for workers in (2, 8)
]


@dataclass
class Given:
    """The arguments that an engine was made with; it cannot run."""

    partitioned: PartitionedGraph
    memory: MemoryPlan
    schedule: Schedule

    def __init__(self, partitioned: Any, memory: Any, schedule: Any, *machine: Any, **options: Any) -> None:
        self.partitioned, self.memory, self.schedule = partitioned, memory, schedule

    @property
    def failed(self) -> bool:
        return True

    def write(self, *arguments: Any) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """The engines that were made."""
    made: list[Given] = []

    class Kept(Given):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(numpy_engine, "NumpyEngine", Kept)
    monkeypatch.setattr(cuda_engine, "CudaEngine", Kept)
    monkeypatch.setattr(cupy_machine, "CupyMachine", lambda cards, **options: None)
    return made


def same_programs(made: list[Given]) -> bool:
    """Whether two engines got the same instructions, on buffers at the same places, in the same order."""
    one, other = made
    return (
        one.partitioned.programs == other.partitioned.programs
        and one.partitioned.homes == other.partitioned.homes
        and (one.memory.offsets, one.memory.arena_bytes) == (other.memory.offsets, other.memory.arena_bytes)
        and one.schedule == other.schedule
    )


def test_modules_lower_alike_for_both(engines: list[Given]) -> None:
    for device in (cpu, gpu):
        with TrainableModule(network(), [device(worker) for worker in range(4)], lower=over) as module:
            module.bind(batches().shapes, accumulate=2)
    assert same_programs(engines)
    assert len(engines[0].partitioned.programs) == 4


@pytest.mark.parametrize(("name", "workers"), CASES)
def test_views_and_commands_of_the_zoo(name: str, workers: int) -> None:
    """Without a card: buffers lie where the plan says, and a command is made for whatever there is to do."""
    partitioned = over(graph(name), workers)
    memory = plan_memory(partitioned)
    plan = schedule(partitioned, memory)
    offsets = offsets_of(partitioned, memory)
    assert offsets == [list(own) for own in memory.offsets]
    check_memory(partitioned, offsets, memory.arena_bytes, plan.waits)
    machine = DryMachine(workers)
    engine = CudaEngine(partitioned, memory, plan, machine, watch=Watch(1.0))
    for prepared, program in zip(engine._prepared, partitioned.programs, strict=True):
        assert len(prepared.commands) == len(program.instructions)
        for command in (each for commands in prepared.commands for each in commands):
            for address in addresses(command):
                worker, offset = divmod(address, WORKER_BYTES)
                assert 0 <= offset < machine.used_bytes[worker - 1]
    engine.run()
    assert machine.issued.total() > len(partitioned.programs[0].instructions)


def offsets_of(partitioned: PartitionedGraph, memory: MemoryPlan) -> list[list[int]]:
    """Where views of every worker's buffers lie in arenas at made-up addresses: in them, and aligned."""
    bases = [(worker + 1) * WORKER_BYTES for worker in range(partitioned.workers)]
    views = arena_views(partitioned, memory, bases)
    for base, size, own, program in zip(bases, memory.arena_bytes, views, partitioned.programs, strict=True):
        for view, buffer in zip(own, program.buffers, strict=True):
            assert view.nbytes == buffer.nbytes
            assert view.shape == tuple(upper - lower for lower, upper in buffer.region)
            assert view.type == np.dtype(partitioned.graph.tensors[buffer.tensor].dtype).name
            assert view.address % ALIGNMENT_BYTES == 0
            assert base <= view.address <= view.address + view.nbytes <= base + size
    return [[view.address - base for view in own] for base, own in zip(bases, views, strict=True)]


def addresses(command: Any) -> list[int]:
    match command:
        case MemoryCopy(target, source, nbytes):
            return [target, target + nbytes - 1, source, source + nbytes - 1]
        case MatrixProduct(left, right, result):
            return [left.address, right.address, result.address]
        case Convolution(data=data, weight=weight, output=output):
            return [data.address, weight.address, output.address]
        case KernelLaunch(struct=struct):
            names = struct.dtype.names
            return [int(struct["out_0"]["data"][0])] if "out_0" in names else []
    raise AssertionError(command)
