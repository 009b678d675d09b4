"""Where the benchmarks run: cards, or nowhere at all, to see that they could."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tofu.operators.cuda.vendor.libraries import library
from tofu.runtime.cuda.cards import shared
from tofu.runtime.cuda.cupy_machine import CupyMachine
from tofu.runtime.cuda.machine import CudaMachine

from .dry_machine import DryMachine

LAUNCHES = 7
"""Timed launches of a graph; the median counts."""


@dataclass(frozen=True)
class Stand:
    """A number of cards; 0 if commands are made but not run. Time is up `seconds` after `begun`."""

    cards: int
    begun: float
    seconds: float

    @property
    def dry(self) -> bool:
        return not self.cards

    @property
    def late(self) -> bool:
        return time.monotonic() - self.begun > self.seconds

    def machine(self, workers: int, tf32: bool = False) -> CudaMachine:
        """Workers that are next to each other share a card."""
        if self.dry:
            return DryMachine(workers)
        return CupyMachine([card.device_id for card in shared(workers)], tf32=tf32)

    def free_bytes(self) -> int:
        """Return the free memory of all cards together; 0 without a card."""
        return sum(self._memory(card)[0] for card in range(self.cards))

    def taken_bytes(self) -> int:
        """Return the allocated memory of all cards together."""
        return sum(total - free for free, total in map(self._memory, range(self.cards)))

    def _memory(self, card: int) -> tuple[int, int]:
        cuda = library("cupy", "a GPU").cuda
        with cuda.Device(card):
            free, total = cuda.runtime.memGetInfo()
        return int(free), int(total)


def seconds_of(machine: CudaMachine, issue: Callable[[], Any], repeats: int) -> float:
    """Time one `issue`, among several in one graph, so that launching them takes no extra time."""

    def all_of_them() -> None:
        for _ in range(repeats):
            issue()

    issue()
    machine.synchronize()
    graph = machine.captured(all_of_them)
    taken = []
    for number in range(1 + LAUNCHES):
        begun = time.perf_counter()
        machine.launch(graph)
        machine.synchronize()
        if number:  # the first one uploads the graph
            taken.append(time.perf_counter() - begun)
    return median(taken) / repeats
