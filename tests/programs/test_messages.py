"""Messages: every piece once, within its interval, and as few as brute force finds."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tofu
from tofu.analyzer.indices.region import Region
from tofu.dataflow.graph import Graph, Role, Tensor
from tofu.programs import PartitionedGraph
from tofu.programs.clock import transferred, writes
from tofu.programs.messages import START, count_messages, messages
from tofu.programs.program import Buffer, BufferKind, Compute, Instruction, MultiFetch, Piece, Program

REGION: Region = ((0, 2),)
TICKS = 6
AHEAD = [None, 0, 1, 3]


def written_and_fetched(writes: list[int], fetches: list[tuple[int, int]]) -> PartitionedGraph:
    """Worker 0 writes its only buffer at each tick in `writes`, and worker 1 fetches it at other ticks.

    `fetches` are a tick, and the number of pieces.
    """
    graph = Graph("net", (Tensor(0, "x", (2,), Role.DATA, "float32", None),), (), ())
    computes: list[Instruction] = [Compute(0, (), (), (), (0,), 2 * tick) for tick in sorted(set(writes))]
    got: list[Instruction] = [
        MultiFetch(0, 0, (Piece(0, 0, REGION),) * pieces, 2 * tick + 1) for tick, pieces in sorted(fetches)
    ]
    own = (Buffer(0, 0, REGION, BufferKind.SHARD, 8),)
    return PartitionedGraph(graph, 2, (Program(0, own, tuple(computes)), Program(1, own, tuple(got))), (), 0)


def intervals(program: PartitionedGraph, ahead: int | None) -> list[tuple[int, int]]:
    """Return the ticks between which each piece of worker 1 may travel, found by search."""
    found = []
    for fetch in program.programs[1].instructions:
        since = max((i.tick for i in program.programs[0].instructions if i.tick < fetch.tick), default=START)
        first = since + 1 if ahead is None else max(since + 1, fetch.tick - ahead)
        found += [(first, fetch.tick)] * len(transferred(fetch))
    return found


def fewest_points(found: list[tuple[int, int]]) -> int:
    """Return the least number of ticks such that every interval has one, over all sets of ticks."""
    ticks = range(2 * TICKS + 2)
    counts = [
        sum(chosen)
        for chosen in product((0, 1), repeat=len(ticks))
        if all(any(chosen[first : last + 1]) for first, last in found)
    ]
    return min(counts)


@given(
    st.lists(st.integers(0, TICKS - 1), max_size=4),
    st.lists(st.tuples(st.integers(0, TICKS - 1), st.integers(1, 2)), max_size=4),
    st.sampled_from(AHEAD),
)
def test_no_set_of_ticks_is_smaller(
    writes: list[int], fetches: list[tuple[int, int]], ahead: int | None
) -> None:
    program = written_and_fetched(writes, fetches)
    assert messages(program, ahead).count == fewest_points(intervals(program, ahead))


def test_pieces_travel_between_their_writing_and_their_reading() -> None:
    found = messages(written_and_fetched([1, 3], [(0, 1), (1, 2), (2, 1), (3, 1)]))
    assert [(m.after, m.before, len(m.pieces), m.nbytes) for m in found.of[0, 1]] == [
        (START, 1, 1, 8),
        (2, 3, 3, 24),
        (6, 7, 1, 8),
    ]


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("method", ["recursive", "all-reduce", "ps"])
def test_every_piece_travels_once_in_its_interval(method: str, ahead: int | None) -> None:
    graph = tofu.models.get("lenet", batch=8).training_graph()
    program = tofu.lower(graph, tofu.partition(graph, 4, method))
    written: dict[tuple[int, int], list[int]] = {}
    fetched = []
    for each in program.programs:
        for index, instruction in enumerate(each.instructions):
            for buffer in writes(instruction):
                written.setdefault((each.worker, buffer), []).append(instruction.tick)
            pieces = enumerate(transferred(instruction))
            fetched += [(each.worker, index, place) for place, p in pieces if p.worker != each.worker]
    travelled = []
    found = messages(program, ahead)
    for (sender, reader), listed in found.of.items():
        limits = [message.before for message in listed]
        assert limits == sorted(set(limits))
        for message in listed:
            assert (message.sender, message.reader) == (sender, reader)
            assert message.after < message.before
            for sent in message.pieces:
                travelled.append((reader, sent.instruction, sent.place))
                needed = program.programs[reader].instructions[sent.instruction].tick
                last = max(
                    (t for t in written.get((sender, sent.piece.buffer), ()) if t < needed), default=START
                )
                assert last <= message.after < message.before <= needed
                assert ahead is None or needed - message.before <= ahead
    assert sorted(travelled) == sorted(fetched)
    assert sum(message.nbytes for message in found) == program.planned_bytes


def test_counts_are_those_of_messages() -> None:
    counts = count_messages(written_and_fetched([1], [(0, 1), (1, 2), (2, 1)]))
    assert (counts.separate, counts.at_once, counts.fewest) == (3, 3, 2)


def test_random_programs_have_no_more_messages_than_transfers(toys: Any) -> None:
    for seed in range(20):
        _, program, _ = toys.random_toy(seed, 3, 8)
        counts = count_messages(program)
        assert counts.fewest <= counts.at_once <= counts.separate
