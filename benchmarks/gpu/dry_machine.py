"""A machine without cards: addresses that nothing lies at, commands that are made, counted and not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tofu.operators.cuda.launch.commands import Command, Convolution, KernelLaunch
from tofu.programs.program import Lane
from tofu.runtime.cuda.machine import Bytes, Event, Graph

ALIGNMENT_BYTES = 256
WORKER_BYTES = 1 << 40
"""How far apart the memory of two workers lies."""


@dataclass
class DryMachine:
    """A `Machine` of `workers` workers. `issued` counts commands by kind, `sources` are those to compile.

    Vendor libraries are not asked how much scratch they want: the answer is none.
    """

    workers: int
    issued: Counter[str] = field(default_factory=Counter)
    sources: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.used_bytes = [0] * self.workers

    def require(self, nbytes: Sequence[int]) -> None:
        pass

    def library_bytes(self, worker: int) -> int:
        return 0

    def scratch_bytes(self, worker: int, command: Convolution) -> int:
        return 0

    def allocate(self, worker: int, nbytes: int) -> int:
        start = self.used_bytes[worker]
        self.used_bytes[worker] += -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return (worker + 1) * WORKER_BYTES + start

    def pinned(self, nbytes: int) -> Bytes:
        return np.zeros(nbytes, np.uint8)

    def reaches(self, worker: int, other: int) -> bool:
        return True

    def load(self, worker: int, commands: Iterable[Command]) -> None:
        self.sources.update(command.source for command in commands if isinstance(command, KernelLaunch))

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        self.issued[type(command).__name__] += 1

    def record(self, worker: int, lane: Lane = Lane.COMPUTE) -> Event:
        return None

    def wait(self, worker: int, event: Event, lane: Lane = Lane.COMPUTE) -> None:
        pass

    def captured(self, issue: Callable[[], None]) -> Graph:
        issue()

    def captured_lane(self, issue: Callable[[], None], worker: int, lane: Lane) -> Graph:
        issue()

    def launch(self, graph: Graph, worker: int = 0, lane: Lane = Lane.COMPUTE) -> None:
        self.issued["Graph"] += 1

    def finish(self, worker: int, event: Event) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def write(self, worker: int, address: int, values: Bytes) -> None:
        pass

    def read(self, worker: int, address: int, nbytes: int) -> Bytes:
        return np.zeros(nbytes, np.uint8)

    def close(self) -> None:
        pass
