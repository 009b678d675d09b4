"""Bugs planted into the engine, one at a time: its tests see them, on the host's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tofu.analyzer.indices.region import Region
from tofu.operators.cuda.launch import workspace
from tofu.operators.cuda.launch.commands import Command, KernelLaunch
from tofu.operators.kernels.workspace import aligned
from tofu.programs.clock import reads, writes
from tofu.programs.program import Compute, Lane, MultiFetch, PartitionedGraph, Reduce
from tofu.runtime.cuda import engine as cuda_engine
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.executor import Executor

from .bench import Arrays, Bench, over, same
from .graphs import graph
from .guards import intact
from .host_machine import HostMachine, Record, Wait

WORKER = 0
"""The one that bugs are planted into: all have the same instructions, on other regions."""

Bytes = set[tuple[int, int]]
"""Worker and address of each."""


class Saboteur(HostMachine):
    """Leaves out the wait with the number `dropped`; records events `early`, before the last command."""

    dropped: int | None = None
    early = False
    waits = 0

    def wait(self, worker: int, event: Any, lane: Lane = Lane.COMPUTE) -> None:
        if self.waits != self.dropped:
            super().wait(worker, event, lane)
        self.waits += 1

    def record(self, worker: int, lane: Lane = Lane.COMPUTE) -> Any:
        event = super().record(worker, lane)
        queue = self._queues[len(Lane) * worker + lane]
        if self.early and len(queue) > 1 and not isinstance(queue[-2], Record | Wait):
            queue[-1], queue[-2] = queue[-2], queue[-1]
        return event


class Trial:
    """One iteration again and again, from memory full of NaN and the same values, and what it gives."""

    def __init__(self, partitioned: PartitionedGraph, host: Bench, **options: Any) -> None:
        kernels = host.new_machine(1).kernels
        self.bench = Bench("host", lambda workers, **own: Saboteur(workers, kernels, **own))
        self.partitioned = partitioned
        self.executor: Executor = self.bench.executor(partitioned, eager=True, **options)
        self.values = values(partitioned)
        self.expected = self.run()

    @property
    def machine(self) -> Saboteur:
        assert isinstance(self.bench.machine, Saboteur)
        return self.bench.machine

    @property
    def engine(self) -> CudaEngine:
        return self.bench.engine

    def run(self) -> Arrays:
        self.bench.poison()
        for name, value in self.values.items():
            self.executor.write(name, value)
        self.machine.waits = 0
        self.executor.run()
        tensors = self.partitioned.graph.tensors
        names = [*self.values, *(tensors[index].name for index in self.partitioned.graph.outputs)]
        return {name: np.array(self.executor.read(name)) for name in names}

    def notices(self) -> bool:
        """Whether something is other than it was without the bug."""
        try:
            same(self.run(), self.expected)
        except AssertionError:
            return True
        return not intact(self.machine)

    def notices_with(self, worker: int, index: int, commands: tuple[Command, ...]) -> bool:
        """Whether it notices these commands in place of an instruction's own."""
        own = self.engine._prepared[worker].commands
        kept, own[index] = own[index], commands
        try:
            return self.notices()
        finally:
            own[index] = kept


def fetches(trial: Trial, index: int) -> bool:
    return isinstance(trial.partitioned.programs[WORKER].instructions[index], MultiFetch)


def values(partitioned: PartitionedGraph) -> Arrays:
    """For all that persists, so that no output is at its limit: what is wrong anywhere has to show."""
    rng = np.random.default_rng(3)
    found: Arrays = {}
    for tensor in partitioned.graph.tensors:
        if tensor.role.persistent and tensor.alias is None:
            drawn = rng.uniform(0.1, 0.4, tensor.shape) * rng.choice([-1, 1], tensor.shape)
            found[tensor.name] = np.abs(drawn) if "var" in tensor.name else drawn
            if "label" in tensor.name:
                found[tensor.name] = rng.integers(0, 3, tensor.shape)
    return found


@pytest.fixture(params=[("mlp", 3), ("residual", 2)], ids=lambda case: f"{case[0]}-{case[1]}")
def trial(request: pytest.FixtureRequest, host: Bench) -> Iterator[Trial]:
    name, workers = request.param
    trial = Trial(over(graph(name), workers), host)
    yield trial
    trial.executor.close()


def test_nothing_planted_nothing_seen(trial: Trial) -> None:
    assert not trial.notices()
    assert all(np.isfinite(value).all() for value in trial.expected.values())


def test_any_wait_that_is_left_out_is_seen(trial: Trial) -> None:
    """But for those that keep apart what has no byte in common: waits are for whole buffers.

    And but for those around a fetch of what lies there already, since an operation before had fetched it too.
    """
    edges = [
        (worker, index, wait)
        for worker, index in trial.engine._order
        for wait in trial.engine._schedule.waits[worker][index]
    ]
    unseen = 0
    for number, (worker, index, (other, last)) in enumerate(edges):
        trial.machine.dropped = number
        lanes = trial.engine._schedule.lanes
        trial.machine.ahead = len(Lane) * worker + lanes[worker][index]
        trial.machine.behind = len(Lane) * other + lanes[other][last]
        if not trial.notices():
            unseen += 1
            trial.machine.dropped = None
            matter = all(trial.notices_with(*each, ()) for each in ((worker, index), (other, last)))
            assert not (matter and meet(trial.engine, (worker, index), (other, last))), edges[number]
    assert unseen < len(edges) / 10


def test_an_event_that_happens_too_early_is_seen(trial: Trial) -> None:
    trial.machine.early = True
    assert any(trial.notices() for _ in range(3))


def test_any_instruction_that_is_left_out_is_seen(trial: Trial) -> None:
    """But for fetches of what lies there already, since an operation before had fetched it too."""
    count, unseen = len(trial.partitioned.programs[WORKER].instructions), 0
    for index in range(count):
        if not trial.notices_with(WORKER, index, ()):
            unseen += 1
            assert fetches(trial, index), trial.engine._place(WORKER, index)
    assert unseen < count / 10
    assert not trial.notices()


def test_exchanged_instructions_are_seen(trial: Trial) -> None:
    """Wherever the second needs what the first computes."""
    commands = trial.engine._prepared[WORKER].commands
    exchanged = 0
    for first, (before, after) in enumerate(pairwise(trial.partitioned.programs[WORKER].instructions)):
        needed = set(reads(WORKER, after)) & {(WORKER, buffer) for buffer in writes(before)}
        if needed and not fetches(trial, first):
            exchanged += 1
            kept = commands[first]
            commands[first] = commands[first + 1]
            assert trial.notices_with(WORKER, first + 1, kept), trial.engine._place(WORKER, first)
            commands[first] = kept
    assert exchanged > 5
    assert not trial.notices()


def test_a_block_too_few_is_seen(trial: Trial) -> None:
    launches = 0
    for index, kept in enumerate(trial.engine._prepared[WORKER].commands):
        launched = [command for command in kept if isinstance(command, KernelLaunch)]
        if launched and launched == [*kept] and not fetches(trial, index):
            launches += 1
            fewer = tuple(replace(command, blocks=command.blocks - 1) for command in launched)
            assert trial.notices_with(WORKER, index, fewer), trial.engine._place(WORKER, index)
    assert launches > 10


@pytest.mark.parametrize("bug", ["pieces overlap", "too small"])
def test_scratch_that_is_too_small_is_seen(bug: str, host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all that is fetched is staged in scratch."""
    partitioned, islands = over(graph("mlp"), 3), (0, 1, 2)
    expected = Trial(partitioned, host, islands=islands).expected
    if bug == "pieces overlap":
        monkeypatch.setattr(workspace, "aligned", lambda nbytes: aligned(nbytes // 2))
    else:
        prepare = cuda_engine.prepare

        def smaller(placed: Any, worker: int, machine: HostMachine, seats: Any, groups: Any) -> Any:
            allocate = machine.allocate
            monkeypatch.setattr(machine, "allocate", lambda worker, nbytes: allocate(worker, nbytes - 64))
            return prepare(placed, worker, machine, seats, groups)

        monkeypatch.setattr(cuda_engine, "prepare", smaller)
    trial = Trial(partitioned, host, islands=islands)
    trial.expected = expected
    assert trial.notices()


@pytest.mark.parametrize("shift", [-64, 64])
def test_a_buffer_in_the_wrong_place_is_seen(
    shift: int, host: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitioned = over(graph("residual"), 2)
    expected = Trial(partitioned, host).expected
    arena_views: Callable[..., Any] = cuda_engine.arena_views

    def moved(*arguments: Any) -> Any:
        views = arena_views(*arguments)
        largest = max(range(len(views[1])), key=lambda index: views[1][index].nbytes)
        views[1][largest] = replace(views[1][largest], address=views[1][largest].address + shift)
        return views

    monkeypatch.setattr(cuda_engine, "arena_views", moved)
    trial = Trial(partitioned, host)
    trial.expected = expected
    assert trial.notices()


def meet(engine: CudaEngine, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one of two instructions writes a byte that the other reads or writes."""
    (reads_one, writes_one), (reads_other, writes_other) = (touched(engine, *each) for each in (one, other))
    return bool(writes_one & (reads_other | writes_other) or reads_one & writes_other)


def touched(engine: CudaEngine, worker: int, index: int) -> tuple[Bytes, Bytes]:
    """Return the buffers that an instruction reads, and those that it writes."""
    instruction = engine._partitioned.programs[worker].instructions[index]
    match instruction:
        case Compute():
            pairs = zip(instruction.inputs, instruction.input_regions, strict=True)
            inputs = [(worker, buffer, region) for buffer, region in pairs if buffer is not None]
            outputs = [(worker, buffer, None) for buffer in instruction.outputs]
        case MultiFetch() | Reduce():
            parts = (instruction.pieces,) if isinstance(instruction, MultiFetch) else instruction.parts
            pieces = [piece for part in parts for piece in part]
            inputs = [(piece.worker, piece.buffer, piece.region) for piece in pieces]
            outputs = [(worker, instruction.target, piece.region) for piece in pieces]
    return occupied(engine, inputs), occupied(engine, outputs)


def occupied(engine: CudaEngine, parts: list[tuple[int, int, Region | None]]) -> Bytes:
    found: Bytes = set()
    for worker, buffer, region in parts:
        view = engine.views[worker][buffer]
        held = engine._partitioned.programs[worker].buffers[buffer].region
        if region is not None:
            view = view[
                tuple(
                    slice(lower - start, upper - start)
                    for (lower, upper), (start, _) in zip(region, held, strict=True)
                )
            ]
        places = np.zeros(view.shape, np.int64) + view.address
        for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
            places += (np.arange(length) * stride).reshape([-1] + [1] * (view.ndim - axis - 1))
        found |= {(worker, place) for place in places.reshape(-1).tolist()}
    return found
