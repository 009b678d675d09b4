"""Bands around all memory that an engine was given, on any machine: what nothing may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tofu.runtime.cuda.machine import Bytes, CudaMachine

GUARD_BYTES = 4096
GUARD = 0xA5
NAN = 0xFF
"""A byte of which floating-point numbers that are none are made."""


@dataclass(frozen=True)
class Block:
    """Memory of a worker, with a band of `GUARD_BYTES` on either side."""

    worker: int
    address: int
    nbytes: int


class Guarded(CudaMachine, Protocol):
    """A machine that keeps what it allocated, in this order."""

    blocks: list[Block]
    captures: int


def bands(block: Block) -> tuple[int, int]:
    """Where the bands of a block start."""
    return block.address - GUARD_BYTES, block.address + block.nbytes


def intact(machine: Guarded) -> bool:
    """Whether nothing was written next to what was allocated."""
    return all(
        (machine.read(block.worker, start, GUARD_BYTES) == GUARD).all()
        for block in machine.blocks
        for start in bands(block)
    )


def fill(machine: Guarded, worker: int, address: int, nbytes: int, byte: int = NAN) -> None:
    """Set `nbytes` bytes."""
    values: Bytes = np.full(nbytes, byte, np.uint8)
    machine.write(worker, address, values)
