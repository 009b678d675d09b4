"""Messages in the simulator: pieces that travel together pay the latency once."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.analyzer.indices.region import Region
from tofu.dataflow.graph import Graph, Role, Tensor
from tofu.errors import MachineError
from tofu.machines.profile import Profile
from tofu.programs import PartitionedGraph
from tofu.programs.gathering import gather
from tofu.programs.messages import messages
from tofu.programs.program import Buffer, BufferKind, MultiFetch, Piece, Program
from tofu.simulator import check_timeline, simulate

from .test_simulate import machine

LATENCY, PER_BYTE, START, COPY = 2_000, 2, 1_000, 2
"""Nanoseconds of `machine`: a message, a byte of it, the start of a kernel, and copying a byte."""


def two_fetches(nbytes: int) -> PartitionedGraph:
    """Worker 1 fetches two parts of a tensor of worker 0, one after the other."""
    elements = nbytes // 4
    graph = Graph("net", (Tensor(0, "x", (2 * elements,), Role.DATA, "float32", None),), (), ())
    regions: list[Region] = [((0, elements),), ((elements, 2 * elements),)]
    whole: Region = ((0, 2 * elements),)
    held = (Buffer(0, 0, whole, BufferKind.SHARD, 2 * nbytes),)
    got = tuple(Buffer(n, 0, region, BufferKind.FETCHED, nbytes) for n, region in enumerate(regions))
    fetches = tuple(MultiFetch(0, n, (Piece(0, 0, region),), n) for n, region in enumerate(regions))
    return PartitionedGraph(graph, 2, (Program(0, held, ()), Program(1, got, fetches)), ((),), 2 * nbytes)


def test_a_message_of_two_transfers_pays_its_latency_once() -> None:
    program, box = two_fetches(400), machine(2)
    apart = simulate(program, box)
    assert apart.nanoseconds == 2 * (START + LATENCY + 400 * PER_BYTE)
    together = simulate(program, box, messages=messages(program))
    assert together.nanoseconds == 2 * START + LATENCY + 800 * PER_BYTE + 400 * COPY
    assert together.moved_bytes == apart.moved_bytes == 800
    assert simulate(program, box, messages=messages(program, 0)).nanoseconds == apart.nanoseconds


@pytest.mark.parametrize("method", ["recursive", "all-reduce", "ps"])
@pytest.mark.parametrize("ahead", [None, 0, 4])
def test_time_lines_with_messages_are_right(method: str, ahead: int | None) -> None:
    graph = tofu.models.get("lenet", batch=8).training_graph()
    program = tofu.lower(graph, tofu.partition(graph, 4, method))
    found = messages(program, ahead)
    timeline = simulate(program, machine(4), messages=found)
    check_timeline(timeline)
    assert len(timeline.work.nbytes) == found.count
    assert timeline.moved_bytes == program.planned_bytes


def test_merged_gradients_gain_what_latency_costs() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    program = tofu.lower(graph, tofu.partition(graph, 4, "all-reduce"))
    gradients = [t.index for t in graph.tensors if t.role is Role.GRADIENT and "_output" not in t.name]
    merged = gather(program, [gradients])
    slow, free = (
        machine(4, levels=[{"name": "gpu", "bandwidth": "0.5 GB/s", "latency": "90 us"}]),
        machine(4, levels=[{"name": "gpu", "bandwidth": "0.5 GB/s"}]),
    )
    gains = [
        simulate(program, box).seconds - simulate(merged, box, messages=messages(merged, 0)).seconds
        for box in (slow, free)
    ]
    assert gains[0] > 0.5 * 10 * 3 * 90e-6 > gains[1]


def test_messages_are_refused_where_transfers_were_measured() -> None:
    program = two_fetches(8)
    profile = Profile.__new__(Profile)
    with pytest.raises(MachineError, match="leave out messages"):
        simulate(program, replace(machine(2), profile=profile), messages=messages(program))
