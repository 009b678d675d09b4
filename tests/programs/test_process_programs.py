"""The programs of all processes at once: who sends what, in which order, and the bytes of the plan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tofu
from tofu.programs.clock import check_order, reads
from tofu.programs.process_messages import messages_of
from tofu.programs.process_programs import process_programs
from tofu.programs.program import BufferKind, Compute, PartitionedGraph

PLACES = [(0, 1, 2, 3), (0, 0, 1, 1), (0, 1, 1, 2), (1, 0, 1, 0)]


def lowered(model: str, workers: int) -> PartitionedGraph:
    graph = tofu.models.get(model, batch=12).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


@pytest.mark.parametrize("model", ["mlp", "lenet"])
@pytest.mark.parametrize("places", PLACES)
def test_every_message_is_sent_carried_and_received(model: str, places: Sequence[int]) -> None:
    partitioned = lowered(model, 4)
    joint = process_programs(partitioned, places)
    messages = messages_of(partitioned, places)
    moved: dict[BufferKind, list[int]] = {}
    for worker, helper in enumerate(joint.helpers, joint.workers):
        program = joint.partitioned.programs[worker]
        check_order(program)
        assert joint.places[worker] == helper.process
        for instruction, buffer in zip(program.instructions, program.buffers, strict=True):
            assert buffer.kind is helper.part
            moved.setdefault(helper.part, []).append(buffer.nbytes)
            for held, _ in reads(worker, instruction):
                expected = helper.other if helper.part is BufferKind.CARRIED else helper.process
                assert joint.places[held] == expected
    expected = sorted(message.nbytes for message in messages)
    assert all(sorted(found) == expected for found in moved.values())
    assert len(moved) == 3


@pytest.mark.parametrize("places", PLACES)
def test_workers_read_their_own_process_alone(places: Sequence[int]) -> None:
    joint = process_programs(lowered("lenet", 4), places)
    for worker in range(joint.workers):
        program = joint.partitioned.programs[worker]
        check_order(program)
        for instruction in program.instructions:
            assert {joint.places[held] for held, _ in reads(worker, instruction)} <= {joint.places[worker]}


@pytest.mark.parametrize("places", PLACES)
def test_what_is_read_was_written_at_earlier_ticks(places: Sequence[int]) -> None:
    """Of messages. Workers read what the one before wrote, as in the programs without messages."""
    partitioned = process_programs(lowered("mlp", 4), places).partitioned
    written: dict[tuple[int, int], int] = {}
    for program in partitioned.programs:
        for instruction in program.instructions:
            targets = instruction.outputs if isinstance(instruction, Compute) else (instruction.target,)
            for target in targets:
                if program.buffers[target].kind in (BufferKind.SENT, BufferKind.CARRIED, BufferKind.RECEIVED):
                    written[program.worker, target] = instruction.tick
    for program in partitioned.programs:
        for instruction in program.instructions:
            for held in reads(program.worker, instruction):
                if held in written:
                    assert written[held] < instruction.tick


def test_workers_of_one_process_need_no_helpers() -> None:
    partitioned = lowered("mlp", 4)
    joint = process_programs(partitioned, [0] * 4)
    assert joint.helpers == ()
    assert joint.helper(3) is None
    assert joint.partitioned.planned_bytes == partitioned.planned_bytes
