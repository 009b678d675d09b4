"""What a plan sends over the links of a machine: bytes by level, and how long that takes at least.

Counted from the pieces of the lowered programs, so from exactly what is fetched. In an iteration the
operations follow each other, each with two transfers: inputs are fetched before it computes, outputs
collected after. All links work at once; a transfer takes as long as its busiest link. Latency, and
transfers hidden behind computation, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...machines.machine import Machine
from ...programs.program import Compute, MultiFetch, PartitionedGraph, Piece, Program, Reduce
from .cover import elements

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Traffic:
    """One iteration's traffic; tuples are by level, outermost first.

    `crossing_bytes` goes between devices that part at that level, and adds up to all bytes fetched.
    `busiest_bytes` is the load of that level's busiest link in one direction, `busiest_seconds` the time
    for it. `transfer_seconds` is the sum over the transfers of the iteration, each as slow as its busiest
    link; no order of the same transfers is faster than the largest of `busiest_seconds`.
    """

    levels: tuple[str, ...]
    crossing_bytes: tuple[int, ...]
    busiest_bytes: tuple[int, ...]
    busiest_seconds: tuple[float, ...]
    transfer_seconds: float

    @property
    def bytes(self) -> int:
        return sum(self.crossing_bytes)


def traffic(partitioned: PartitionedGraph, machine: Machine) -> Traffic:
    """Count the traffic of lowered programs, worker `w` on device `w`.

    Raises MachineError where the machine has too few devices.
    """
    machine.check_workers(partitioned.workers)
    moved = np.array(list(_moved(partitioned)), np.int64).reshape(-1, 4)
    transfer, source, reader, count = moved.T
    groups = np.array(machine.groups, np.int64)
    apart = groups[:, source] != groups[:, reader]
    level = apart.argmax(axis=0)
    crossing = [int(count[level == number].sum()) for number in range(len(machine.levels))]
    slowest = np.zeros(int(transfer.max(initial=0)) + 1)
    busiest = []
    for number, link in enumerate(machine.levels):
        # what parts at this level or further out passes a link of the source's group, and one of the reader's
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


def _loads(transfers: Integers, links: Integers, amounts: Integers) -> tuple[Integers, Integers]:
    """The load of every pair of a transfer and a link that it uses: transfers and bytes."""
    width = int(links.max(initial=0)) + 1
    pairs, places = np.unique(transfers * width + links, return_inverse=True)
    loads = np.zeros(len(pairs), np.int64)
    np.add.at(loads, places, amounts)
    return pairs // width, loads


def _moved(partitioned: PartitionedGraph) -> Iterator[tuple[int, int, int, int]]:
    """(transfer, source, reader, bytes) of every piece that crosses between workers."""
    itemsize = [tensor.itemsize for tensor in partitioned.graph.tensors]
    for program in partitioned.programs:
        for transfer, target, pieces in _transfers(program):
            size = itemsize[program.buffers[target].tensor]
            for piece in pieces:
                if piece.worker != program.worker:
                    yield transfer, piece.worker, program.worker, elements(piece.region) * size


def _transfers(program: Program) -> Iterator[tuple[int, int, tuple[Piece, ...]]]:
    """Every transfer's number (two per operation: before and after it computes), target and pieces."""
    computed = -1
    for instruction in program.instructions:
        number = 2 * instruction.operation + (computed == instruction.operation)
        match instruction:
            case Compute():
                computed = instruction.operation
            case MultiFetch(target=target, pieces=pieces):
                yield number, target, pieces
            case Reduce(target=target, parts=parts):
                yield number, target, tuple(piece for part in parts for piece in part)
