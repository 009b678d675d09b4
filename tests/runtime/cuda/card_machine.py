"""Cards as tests want them: memory between bands, kernels that take their time, islands without access."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import Command
from tofu.programs.program import Lane
from tofu.runtime.cuda.cards import card_count
from tofu.runtime.cuda.cupy_machine import CupyMachine
from tofu.runtime.cuda.machine import Graph

from .guards import GUARD, GUARD_BYTES, Block, bands, fill

SPIN = """
extern "C" __global__ void tofu_spin(long long cycles) {
    const long long begun = clock64();
    while (clock64() - begun < cycles) {}
}
"""
CYCLES_PER_SECOND = 2_000_000_000
"""More than the clock of any card, so a kernel spins at least as long as it should."""

DELAYS = (0.0, 2e-5, 2e-4)
DELAYED = 0.2
"""The part of all commands that wait."""


class CardMachine(CupyMachine):
    """Virtual workers, shared out over all cards of this machine.

    With a `seed` other than 0 random commands wait for a kernel that spins. `limit_bytes` is what all
    workers may take together. Workers reach only those of their island.
    """

    def __init__(
        self,
        workers: int,
        *,
        seed: int = 0,
        limit_bytes: int | None = None,
        islands: Sequence[int] | None = None,
        tf32: bool = False,
        watchdog_seconds: float = 60.0,
    ) -> None:
        self.blocks: list[Block] = []
        self.captures = 0
        self.stall_seconds = 0.0
        self._limit_bytes = limit_bytes
        self._islands = islands
        self._random = random.Random(seed) if seed else None
        cards = card_count()
        super().__init__(
            [worker % cards for worker in range(workers)], tf32=tf32, watchdog_seconds=watchdog_seconds
        )
        self._spin = self._cupy.RawKernel(SPIN, "tofu_spin")
        for worker in range(workers):
            self.spin(worker, 0)

    def require(self, nbytes: Sequence[int]) -> None:
        if self._limit_bytes is not None and sum(nbytes) > self._limit_bytes:
            raise ExecutionError(f"the card has {self._limit_bytes} bytes, {sum(nbytes)} are needed")
        super().require([size + 2 * GUARD_BYTES for size in nbytes])

    def allocate(self, worker: int, nbytes: int) -> int:
        block = Block(worker, super().allocate(worker, nbytes + 2 * GUARD_BYTES) + GUARD_BYTES, nbytes)
        for start in bands(block):
            fill(self, worker, start, GUARD_BYTES, GUARD)
        self.blocks.append(block)
        return block.address

    def reaches(self, worker: int, other: int) -> bool:
        if self._islands is not None and self._islands[worker] != self._islands[other]:
            return False
        return super().reaches(worker, other)

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        if self._random is not None and self._random.random() < DELAYED:
            self.spin(worker, self._random.choice(DELAYS), lane)
        if self.stall_seconds:
            self.spin(worker, self.stall_seconds, lane)
            self.stall_seconds = 0.0
        super().issue(worker, command, lane)

    def captured(self, issue: Callable[[], None]) -> Graph:
        self.captures += 1
        return super().captured(issue)

    def spin(self, worker: int, seconds: float, lane: Lane = Lane.COMPUTE) -> None:
        """Let a lane's stream wait for so long."""
        with self._errors(), self._current(worker):
            cycles = np.int64(seconds * CYCLES_PER_SECOND)
            self._spin((1,), (1,), (cycles,), stream=self._streams[worker][lane])
