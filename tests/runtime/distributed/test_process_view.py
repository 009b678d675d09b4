"""Programs of processes: the bits of one process, the planned bytes, and memory that nobody spoils."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.programs.check_memory import check_memory
from tofu.programs.clock import writes
from tofu.programs.messages import SentPiece
from tofu.programs.process_messages import ProcessMessage, messages_of
from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime.executor import Executor

from .in_memory import engines_of, together, views_of

PLACES = [(0, 1, 2, 3), (0, 0, 1, 1), (0, 1, 1, 2), (1, 0, 1, 0)]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("rendezvous", [False, True])
def test_random_programs_have_the_bits_of_one_process(
    toys: Any, places: tuple[int, ...], rendezvous: bool
) -> None:
    for seed in range(6):
        _, partitioned, values = toys.random_toy(seed, workers=4, operations=8)
        graph = partitioned.graph
        tensors = {tensor.name: tensor for tensor in graph.tensors}
        engines, transports = engines_of(views_of(partitioned, places), rendezvous)
        with Executor(partitioned, threads=1) as alone:
            for name, value in values.items():
                alone.write(name, value)
                for worker, buffer in partitioned.homes[tensors[name].index]:
                    (lower, upper), *_ = partitioned.programs[worker].buffers[buffer].region
                    engines[places[worker]].write(worker, buffer, value[lower:upper])
            for _ in range(3):
                alone.run()
                together([engine.run for engine in engines])
            for name in values:
                for worker, buffer in partitioned.homes[tensors[name].index]:
                    (lower, upper), *_ = partitioned.programs[worker].buffers[buffer].region
                    found = engines[places[worker]].read(worker, buffer)
                    np.testing.assert_array_equal(found, alone.read(name)[lower:upper])
            assert sum(engine.fetched_bytes for engine in engines) == partitioned.planned_bytes
        planned = sum(message.nbytes for message in messages_of(partitioned, places))
        assert sum(sum(each.sent_bytes.values()) for each in transports) == 3 * planned
        assert sum(each.received_bytes for each in transports) == 3 * planned
        for engine in engines:
            engine.close()


def early(partitioned: PartitionedGraph, processes: Sequence[int]) -> tuple[ProcessMessage, ...]:
    """Send pieces with an earlier message to the same process, as soon as they are written."""
    written: dict[tuple[int, int], list[int]] = {}
    for worker, program in enumerate(partitioned.programs):
        for instruction in program.instructions:
            for buffer in writes(instruction):
                written.setdefault((worker, buffer), []).append(instruction.tick)

    def since(sent: SentPiece) -> int:
        ticks = written.get((sent.piece.worker, sent.piece.buffer), [])
        return max((tick for tick in ticks if tick < sent.needed), default=-1)

    open_for: dict[tuple[int, int], ProcessMessage] = {}
    found: list[ProcessMessage] = []
    for message in messages_of(partitioned, processes):
        pair = (message.sender, message.receiver)
        before = open_for.get(pair)
        if before is not None and max(map(since, message.pieces)) < before.tick:
            found.remove(before)
            message = replace(before, pieces=(*before.pieces, *message.pieces))
        open_for[pair] = message
        found.append(message)
    found.sort(key=lambda each: (each.tick, each.operation, each.sender, each.receiver))
    return tuple(replace(message, number=number) for number, message in enumerate(found))


@pytest.mark.parametrize("places", PLACES)
def test_messages_may_carry_what_is_needed_later(toys: Any, places: tuple[int, ...]) -> None:
    fewer = 0
    for seed in range(6):
        toy, partitioned, values = toys.random_toy(seed, workers=4, operations=8)
        views = views_of(partitioned, places, early)
        fewer += len(messages_of(partitioned, places)) - len(early(partitioned, places))
        for view in views:
            waits = schedule(view.partitioned, view.memory).waits
            check_memory(view.partitioned, view.memory.offsets, view.memory.arena_bytes, waits)
        engines, transports = engines_of(views)
        tensors = {tensor.name: tensor for tensor in partitioned.graph.tensors}
        homes = {name: partitioned.homes[tensors[name].index] for name in values}
        for name, value in values.items():
            for worker, buffer in homes[name]:
                (lower, upper), *_ = partitioned.programs[worker].buffers[buffer].region
                engines[places[worker]].write(worker, buffer, value[lower:upper])
        together([engine.run for engine in engines])
        expected = toy.expected(values)
        for name in values:
            for worker, buffer in homes[name]:
                (lower, upper), *_ = partitioned.programs[worker].buffers[buffer].region
                found = engines[places[worker]].read(worker, buffer)
                np.testing.assert_array_equal(found, expected[name][lower:upper])
        planned = sum(message.nbytes for message in messages_of(partitioned, places))
        assert sum(sum(each.sent_bytes.values()) for each in transports) == planned
        for engine in engines:
            engine.close()
    assert fewer > 0


@pytest.mark.parametrize("model", ["mlp", "lenet"])
@pytest.mark.parametrize("places", PLACES)
def test_memory_and_waits_of_views_pass_the_independent_checker(model: str, places: tuple[int, ...]) -> None:
    graph = tofu.models.get(model).training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, 4))
    for view in views_of(partitioned, places):
        waits = schedule(view.partitioned, view.memory).waits
        check_memory(view.partitioned, view.memory.offsets, view.memory.arena_bytes, waits)


def test_all_messages_are_those_of_the_plan() -> None:
    graph = tofu.models.get("mlp").training_graph()
    plan = tofu.partition(graph, 4)
    messages = messages_of(tofu.lower(graph, plan), range(4))
    assert sum(message.nbytes for message in messages) == plan.cost_bytes
    assert [message.number for message in messages] == list(range(len(messages)))
    keys = [(each.tick, each.operation, each.sender, each.receiver) for each in messages]
    assert keys == sorted(set(keys))


def test_workers_of_one_process_send_nothing() -> None:
    graph = tofu.models.get("mlp").training_graph()
    assert messages_of(tofu.lower(graph, tofu.partition(graph, 4)), [0] * 4) == ()
