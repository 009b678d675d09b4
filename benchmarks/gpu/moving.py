"""Multi-fetch and fetch-reduce compared with a plain copy of as many bytes, over shapes and piece counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from tofu.operators.cuda.launch.commands import Command, MemoryCopy
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.transfers.transfers import fetch, moved_bytes, reduce
from tofu.operators.emit.datatypes import data_type
from tofu.runtime.cuda.machine import CudaMachine
from tofu.tdl.ast import Reducer

from .bench_device import Stand, seconds_of

REPEATS = 10
MOST_PIECES = 8


@dataclass(frozen=True)
class Case:
    """A box that is assembled or summed."""

    name: str
    """The purpose of the case, in a word."""

    shape: tuple[int, ...]
    """The shape of the box."""

    type: str
    """The element type."""

    axis: int | None
    """The axis along which the pieces are cut; None if every piece is a whole term of a sum."""

    pieces: int
    """The number of pieces."""

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * int(data_type(self.type).numpy.itemsize)

    @property
    def title(self) -> str:
        what = "term" if self.axis is None else "piece"
        shape = "x".join(map(str, self.shape))
        return f"{self.name} {shape} {self.type}, {self.pieces} {what}{'s' * (self.pieces > 1)}"


def cases(small: bool) -> tuple[Case, ...]:
    """Boxes of 256 MiB, or small ones of the same kinds."""
    side, high = (64, 8) if small else (8192, 64)
    matrix, image = (side, side), (high, 4 * high, high, high)
    strips = (prod(matrix) // 64, 64)
    return (
        *(Case("rows", matrix, "float32", 0, pieces) for pieces in (1, 2, 4, 8)),
        *(Case("columns", matrix, "float32", 1, pieces) for pieces in (1, 2, 4, 8)),
        Case("columns", (side, 2 * side), "float16", 1, 8),
        Case("channels", image, "float32", 1, 8),
        Case("image rows", image, "float32", 2, 8),
        Case("strips of 32 bytes", strips, "float32", 1, 8),
        *(Case("sum", (side // 2, side // 2), "float32", None, terms) for terms in (2, 4, 8)),
        Case("sum", (side // 2, side), "float16", None, 8),
    )


def measured(stand: Stand, small: bool) -> Iterator[dict[str, Any]]:
    """Yield for each case its bandwidth, and the ratio to a plain copy; without cards, its commands."""
    machine = stand.machine(max(stand.cards, 1))
    try:
        room = max(case.nbytes for case in cases(small))
        target = machine.allocate(0, room)
        sources = [machine.allocate(number % machine.workers, room) for number in range(MOST_PIECES)]
        for case in cases(small):
            yield {"case": case.title, **_one(case, machine, target, sources, stand.dry)}
    finally:
        machine.close()


def _one(case: Case, machine: CudaMachine, target: int, sources: Sequence[int], dry: bool) -> dict[str, Any]:
    commands, moved = made(case, target, sources)
    copy = (MemoryCopy(target, sources[0], case.nbytes),)
    machine.load(0, commands)
    result: dict[str, Any] = {"moved_bytes": moved, "commands": len(commands)}
    taken, plain = (seconds_of(machine, partial(_issue, machine, each), REPEATS) for each in (commands, copy))
    if dry:
        return result
    bandwidth, copied = moved / taken, 2 * case.nbytes / plain
    return {**result, "seconds": taken, "bytes_a_second": bandwidth, "part_of_copy": bandwidth / copied}


def made(case: Case, target: int, sources: Sequence[int]) -> tuple[tuple[Command, ...], int]:
    """Return the commands, and how many bytes they read and write."""
    whole = DeviceView.dense(target, case.shape, case.type)
    if case.axis is None:
        terms = [
            [(DeviceView.dense(source, case.shape, case.type), whole)] for source in sources[: case.pieces]
        ]
        return reduce(Reducer.SUM, terms), moved_bytes(terms)
    length = case.shape[case.axis]
    pairs = []
    for number, source in zip(range(case.pieces), sources, strict=False):
        lower, upper = length * number // case.pieces, length * (number + 1) // case.pieces
        shape = (*case.shape[: case.axis], upper - lower, *case.shape[case.axis + 1 :])
        place = (*[slice(None)] * case.axis, slice(lower, upper))
        pairs.append((DeviceView.dense(source, shape, case.type), whole[place]))
    return fetch(pairs), moved_bytes([pairs])


def _issue(machine: CudaMachine, commands: Sequence[Command]) -> None:
    for command in commands:
        machine.issue(0, command)
