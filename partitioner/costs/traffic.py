"""Count what a plan sends over the links of a machine: bytes by level, and the least time for them.

The counts come from the pieces of the lowered programs, so from exactly what is fetched. In an iteration the
operations follow each other, each with two transfers: its inputs are fetched before it computes, and its
outputs are collected afterwards. All links work at once, and a transfer takes as long as its busiest link.
Latency is left out, and so is the overlap of transfers with computation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...machines.machine import Machine
from ...programs.cover import elements
from ...programs.program import Compute, MultiFetch, PartitionedGraph, Piece, Program, Reduce
from ...support.integers import Integers


@dataclass(frozen=True, slots=True)
class Traffic:
    """One iteration's traffic; tuples are by level, outermost first."""

    levels: tuple[str, ...]
    """The names of the levels."""

    crossing_bytes: tuple[int, ...]
    """The bytes between devices whose groups differ first at that level; they add up to all bytes
    fetched between devices.
    """

    busiest_bytes: tuple[int, ...]
    """The load of that level's busiest link in one direction."""

    busiest_seconds: tuple[float, ...]
    """The time for that load; no order of the transfers is faster than the largest of these."""

    transfer_seconds: float
    """The sum over the iteration's transfers, each as slow as its busiest link."""

    @property
    def bytes(self) -> int:
        return sum(self.crossing_bytes)


def traffic(partitioned: PartitionedGraph, machine: Machine) -> Traffic:
    """Count the traffic of lowered programs. Workers that share a device share it without links.

    Raises MachineError if the machine has too few devices, or no levels.
    """
    groups = np.array(machine.worker_groups(partitioned.workers), np.int64)
    moved = np.array(list(_moved(partitioned)), np.int64).reshape(-1, 4)
    moved = moved[(groups[:, moved[:, 1]] != groups[:, moved[:, 2]]).any(axis=0)]
    transfer, source, reader, count = moved.T
    apart = groups[:, source] != groups[:, reader]
    level = apart.argmax(axis=0)
    crossing = [int(count[level == number].sum()) for number in range(len(machine.levels))]
    slowest = np.zeros(int(transfer.max(initial=0)) + 1)
    busiest = []
    for number, link in enumerate(machine.levels):
        # a transfer between groups that differ here or further out uses the links of both devices' groups
        passing = apart[: number + 1].any(axis=0)
        load = 0
        for end in (source, reader):
            ends, amount = groups[number, end[passing]], count[passing]
            load = max(load, int(np.bincount(ends, amount).max(initial=0)))
            when, loads = _loads(transfer[passing], ends, amount)
            np.maximum.at(slowest, when, loads / link.bytes_per_second)
        busiest.append(load)
    return Traffic(
        machine.level_names,
        tuple(crossing),
        tuple(busiest),
        tuple(load / link.bytes_per_second for load, link in zip(busiest, machine.levels, strict=True)),
        float(slowest.sum()),
    )


def worker_bytes(partitioned: PartitionedGraph) -> Integers:
    """Count the bytes that cross between workers in an iteration, `[source, reader]`."""
    counted = np.zeros((partitioned.workers, partitioned.workers), np.int64)
    for _, source, reader, nbytes in _moved(partitioned):
        counted[source, reader] += nbytes
    return counted


def _loads(transfers: Integers, links: Integers, amounts: Integers) -> tuple[Integers, Integers]:
    """Return the load of every pair of a transfer and a link that it uses: transfers and bytes."""
    width = int(links.max(initial=0)) + 1
    pairs, places = np.unique(transfers * width + links, return_inverse=True)
    loads = np.zeros(len(pairs), np.int64)
    np.add.at(loads, places, amounts)
    return pairs // width, loads


def _moved(partitioned: PartitionedGraph) -> Iterator[tuple[int, int, int, int]]:
    """Yield (transfer, source, reader, bytes) for every piece that crosses between workers."""
    itemsize = [tensor.itemsize for tensor in partitioned.graph.tensors]
    for program in partitioned.programs:
        for transfer, target, pieces in _transfers(program):
            size = itemsize[program.buffers[target].tensor]
            for piece in pieces:
                if piece.worker != program.worker:
                    yield transfer, piece.worker, program.worker, elements(piece.region) * size


def _transfers(program: Program) -> Iterator[tuple[int, int, tuple[Piece, ...]]]:
    """Return every transfer's tick, target and pieces; those of one tick are a transfer of all workers."""
    for instruction in program.instructions:
        match instruction:
            case Compute():
                pass
            case MultiFetch(target=target, pieces=pieces):
                yield instruction.tick, target, pieces
            case Reduce(target=target, parts=parts):
                yield instruction.tick, target, tuple(piece for part in parts for piece in part)
