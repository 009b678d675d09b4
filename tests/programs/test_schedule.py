"""The waits order every two accesses of different workers to the same memory, checked independently."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tofu import models
from tofu.dataflow.graph import Role
from tofu.errors import ProgramError
from tofu.partitioner import lower, partition
from tofu.programs.clock import reads, writes
from tofu.programs.memory import plan_memory
from tofu.programs.program import BufferKind, Lane, MultiFetch, PartitionedGraph, Program
from tofu.programs.schedule import Schedule, _Shadow, schedule


def ancestors(plan: Schedule) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """For every instruction all instructions that must finish before it starts."""
    before: dict[tuple[int, int], set[tuple[int, int]]] = {}
    order = sorted((now, w, i) for w, values in enumerate(plan.ticks) for i, now in enumerate(values))
    for _, worker, index in order:
        lanes = plan.lanes[worker]
        earlier = [(worker, i) for i in range(index) if lanes[i] == lanes[index]]
        direct = list(plan.waits[worker][index]) + earlier[-1:]
        before[worker, index] = set(direct).union(*(before[d] for d in direct))
    return before


def races(partitioned: PartitionedGraph, plan: Schedule) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Unordered pairs of instructions of different lanes on the same bytes, one of them writing."""
    offsets = plan_memory(partitioned).offsets

    def lane(place: tuple[int, int]) -> tuple[int, Lane]:
        return place[0], plan.lanes[place[0]][place[1]]

    accesses: list[list[tuple[int, int, tuple[int, int], bool]]] = [[] for _ in partitioned.programs]
    for worker, program in enumerate(partitioned.programs):
        for index, instruction in enumerate(program.instructions):
            touched = [(worker, b, True) for b in writes(instruction)]
            touched += [(w, b, False) for w, b in reads(worker, instruction)]
            for owner, buffer, write in touched:
                start = offsets[owner][buffer]
                end = start + partitioned.programs[owner].buffers[buffer].nbytes
                accesses[owner].append((start, end, (worker, index), write))
    before = ancestors(plan)
    found = []
    for arena in accesses:
        for start, end, one, one_writes in arena:
            for other_start, other_end, other, other_writes in arena:
                if lane(one) == lane(other) or not (one_writes or other_writes):
                    continue
                if max(start, other_start) < min(end, other_end) and not (
                    one in before[other] or other in before[one]
                ):
                    found.append((one, other))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_races(toys: Any, seed: int) -> None:
    _, partitioned, _ = toys.random_toy(seed, workers=2 + seed % 6, operations=10)
    plan = schedule(partitioned, plan_memory(partitioned))
    assert races(partitioned, plan) == []


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_no_races_in_a_network(workers: int) -> None:
    """A convolution, reductions, concatenations and updates in place, as the partitioner makes them."""
    graph = models.get("lenet", batch=8).training_graph()
    partitioned = lower(graph, partition(graph, workers))
    plan = schedule(partitioned, plan_memory(partitioned))
    assert any(wait for waits in plan.waits for wait in waits)
    assert races(partitioned, plan) == []


@pytest.mark.parametrize("seed", range(20))
def test_every_wait_is_needed(toys: Any, seed: int) -> None:
    """Without any one wait, another order between two accesses would be lost."""
    _, partitioned, _ = toys.random_toy(seed, workers=3, operations=6)
    plan = schedule(partitioned, plan_memory(partitioned))
    for worker, waits in enumerate(plan.waits):
        for index, own in enumerate(waits):
            assert len({(other, plan.lanes[other][last]) for other, last in own}) == len(own)
            for wait in own:
                less = [list(w) for w in plan.waits]
                less[worker][index] = tuple(w for w in own if w != wait)
                fewer = Schedule(tuple(map(tuple, less)), plan.lanes, plan.ticks)
                assert races(partitioned, fewer), f"worker {worker} waits for {wait} in vain"


def test_one_worker_waits_only_between_its_lanes(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(3, workers=1, operations=10)
    plan = schedule(partitioned, plan_memory(partitioned))
    for index, waits in enumerate(plan.waits[0]):
        assert all(plan.lanes[0][last] != plan.lanes[0][index] for _, last in waits)


def test_reused_memory_waits_for_the_peer_that_reads_it(toys: Any) -> None:
    """Worker 0 makes `c` where `a` was; worker 1 read `a` for `b`."""
    toy = toys.Toy(2)
    x = toy.tensor("x", 16, Role.DATA)
    a = toy.apply(toys.ADD, [x, x], "a", cuts=[(0, 16), (16, 16)])
    b = toy.apply(toys.ADD, [a, a], "b", cuts=[(0, 0), (0, 16)])
    c = toy.apply(toys.ADD, [x, x], "c", cuts=[(0, 16), (16, 16)])
    partitioned = toy.lower([b, c])
    memory = plan_memory(partitioned)
    assert (
        memory.offsets[0][dict(partitioned.homes[a])[0]] == memory.offsets[0][dict(partitioned.homes[c])[0]]
    )
    plan = schedule(partitioned, memory)
    fetches_of_a = [
        index
        for index, instruction in enumerate(partitioned.programs[1].instructions)
        if isinstance(instruction, MultiFetch) and instruction.operation == 1
    ]
    make_c = next(i for i, instr in enumerate(partitioned.programs[0].instructions) if instr.operation == 2)
    assert plan.waits[0][make_c] == ((1, fetches_of_a[-1]),)


def test_reading_a_shard_while_it_is_written_is_an_error(toys: Any) -> None:
    toy = toys.Toy(2)
    x = toy.tensor("x", 8, Role.DATA)
    y = toy.apply(toys.ADD, [x, x], "y", work=[(0, 6), (6, 8)])
    partitioned = toy.lower([y])
    shard = dict(partitioned.homes[y])[0]

    def from_shard(instruction: Any) -> Any:
        if not isinstance(instruction, MultiFetch):
            return instruction
        pieces = tuple(
            type(p)(p.worker, shard if p.worker == 0 else p.buffer, p.region) for p in instruction.pieces
        )
        return replace(instruction, pieces=pieces)

    kinds = {b.index: b.kind for b in partitioned.programs[1].buffers}
    second = partitioned.programs[1]
    changed = tuple(
        from_shard(i) if isinstance(i, MultiFetch) and kinds[i.target] is BufferKind.SHARD else i
        for i in second.instructions
    )
    programs = (partitioned.programs[0], Program(1, second.buffers, changed))
    broken = PartitionedGraph(partitioned.graph, 2, programs, partitioned.homes, 0)
    with pytest.raises(ProgramError, match="operation 'make_y': worker 1 reads 'y' from worker 0"):
        schedule(broken, plan_memory(broken))


def test_ticks_never_decrease(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(5, workers=4, operations=10)
    plan = schedule(partitioned, plan_memory(partitioned))
    assert all((np.diff(values) >= 0).all() for values in plan.ticks)


@pytest.mark.parametrize("seed", range(20))
def test_a_shadow_remembers_who_touched_every_byte(seed: int) -> None:
    """Buffers that overlap in any way, next to a record byte by byte."""
    generator = random.Random(seed)
    bounds = [tuple(sorted(generator.choices(range(12), k=2))) for _ in range(6)]
    shadow = _Shadow(bounds)
    writers: list[Any] = [-1] * 12
    readers: list[dict[int, int]] = [{} for _ in range(12)]
    for now in range(60):
        buffer, lane = generator.randrange(6), generator.randrange(3)
        event = (now, lane, now, np.zeros(0, np.int64))
        span = range(*bounds[buffer])
        cells = shadow.cells(buffer)
        expected = [(writers[byte], readers[byte]) for byte in span]
        found = [(c.writer[0], {lane: each[0] for lane, each in c.readers.items()}) for c in cells]
        assert all(each in found for each in expected)
        assert all(each in expected for each in found)
        if generator.random() < 0.5:
            for cell in shadow.join(buffer):
                cell.writer, cell.readers = event, {}
            assert len(shadow.cells(buffer)) == (1 if span else 0)
            for byte in span:
                writers[byte], readers[byte] = now, {}
        else:
            for cell in cells:
                cell.readers[lane] = event
            for byte in span:
                readers[byte] = {**readers[byte], lane: now}
