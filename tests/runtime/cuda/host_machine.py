"""The CUDA engine's commands on the processor: kernels behind the shim, libraries by NumPy.

Streams are queues. They advance in an order that only events hold back: at random, or one as far ahead and
another as far behind as events let them be, so that a missing edge shows as a wrong result. Each has a clock,
which every command moves by a tick, and an event to its own time if that is later. All memory lies between
bands that nothing may write.
"""

from __future__ import annotations

import ctypes
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import Command, Convolution, KernelLaunch, MatrixProduct, MemoryCopy
from tofu.programs.program import Lane

from ...operators.cuda.unit import Unit
from ...operators.cuda.vendor_stand_ins import run_convolution, run_product
from .guards import GUARD, GUARD_BYTES, Block

ALIGNMENT_BYTES = 256
HOST = -1
"""The worker of blocks that are memory of the host."""

MOMENT_SECONDS = 0.05
TICK = 2.0**-16
"""The seconds that every command takes by the streams' clocks."""


@dataclass(eq=False)
class Event:
    """Happens when its stream comes to it, at a time by the stream's clock."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Record:
    event: Event


@dataclass(frozen=True)
class Wait:
    event: Event


class Meeting(Protocol):
    """A step that a stream takes together with those of other processes."""

    def may_go(self) -> bool:
        """Tell whether all that it needs has come. The stream has come to it."""
        ...

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it may go, for so long at most; without a limit it then has to."""
        ...

    def run(self) -> None: ...


Entry = Command | Record | Wait | Meeting
Queues = list[deque[Entry]]


class Compiled:
    """Kernels by their source, each compiled once for all machines that share this.

    The shim has one card's worth of state, so one launch runs at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._units: dict[str, Unit] = {}
        self._shim = threading.Lock()

    def load(self, sources: Iterable[str]) -> None:
        new = [source for source in sources if source not in self._units]
        if new:
            self._units.update(dict.fromkeys(new, Unit(new, self._folder)))

    def run(self, launch: KernelLaunch) -> None:
        with self._shim:
            self._units[launch.source].run(launch)


@dataclass(eq=False)
class HostMachine:
    """A `Machine` of some workers, safe in any thread; `seed` decides which stream advances if several can.

    A worker's streams are numbered `len(Lane) * worker + lane`.

    `limit_bytes` is what all workers may allocate together. Workers reach those of their island.
    `issued` are all commands that ran, by worker. `ahead` is a stream that advances first, `behind` one that
    advances last.
    """

    workers: int
    kernels: Compiled
    seed: int = 0
    limit_bytes: int = 1 << 30
    islands: Sequence[int] | None = None
    ahead: int | None = None
    behind: int | None = None
    issued: list[list[Command]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    captures: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._random = random.Random(self.seed)
        self._queues: Queues = [deque() for _ in range(len(Lane) * self.workers)]
        self._memory: list[np.ndarray[Any, Any]] = []
        self._happened: set[Event] = set()
        self._clocks = [0.0] * len(self._queues)
        self.issued = [[] for _ in range(self.workers)]

    def require(self, nbytes: Sequence[int]) -> None:
        if sum(nbytes) > self.limit_bytes:
            raise ExecutionError(f"the card has {self.limit_bytes} bytes, {sum(nbytes)} are needed")

    def library_bytes(self, worker: int) -> int:
        return 0

    def scratch_bytes(self, worker: int, command: Convolution) -> int:
        return 1000 + command.data.size % 7

    def allocate(self, worker: int, nbytes: int) -> int:
        block = np.full(nbytes + 2 * GUARD_BYTES + ALIGNMENT_BYTES, GUARD, np.uint8)
        start = GUARD_BYTES + -(block.ctypes.data + GUARD_BYTES) % ALIGNMENT_BYTES
        block[start : start + nbytes] = 0
        self._memory.append(block)
        self.blocks.append(Block(worker, int(block.ctypes.data) + start, nbytes))
        return self.blocks[-1].address

    def pinned(self, nbytes: int) -> Any:
        block = self.allocate(HOST, nbytes)
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(block), np.uint8)

    def reaches(self, worker: int, other: int) -> bool:
        return self.islands is None or self.islands[worker] == self.islands[other]

    def load(self, worker: int, commands: Iterable[Command]) -> None:
        launches = (command for command in commands if isinstance(command, KernelLaunch))
        self.kernels.load(dict.fromkeys(command.source for command in launches))

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        assert not self.closed
        with self._lock:
            self._queues[len(Lane) * worker + lane].append(command)

    def record(self, worker: int, lane: Lane = Lane.COMPUTE, *, timed: bool = False) -> Event:
        event = Event()
        with self._lock:
            self._queues[len(Lane) * worker + lane].append(Record(event))
        return event

    def seconds_between(self, worker: int, begin: Event, end: Event) -> float:
        assert {begin, end} <= self._happened
        return end.seconds - begin.seconds

    def wait(self, worker: int, event: Event, lane: Lane = Lane.COMPUTE) -> None:
        with self._lock:
            self._queues[len(Lane) * worker + lane].append(Wait(event))

    def captured(self, issue: Callable[[], None]) -> Queues:
        assert not any(self._queues), "capture begins where nothing is under way"
        issue()
        return self.taken()

    def captured_lane(self, issue: Callable[[], None], worker: int, lane: Lane) -> Queues:
        graph = self.captured(issue)
        own = len(Lane) * worker + lane
        assert not any(queue for stream, queue in enumerate(graph) if stream != own), "one stream is captured"
        return graph

    def taken(self) -> Queues:
        """Return the commands that were issued and will never run."""
        graph, self._queues = self._queues, [deque() for _ in self._queues]
        self.captures += 1
        return graph

    def launch(self, graph: Queues, worker: int = 0, lane: Lane = Lane.COMPUTE) -> None:
        again: dict[Event, Event] = {}
        with self._lock:
            for queue, entries in zip(self._queues, graph, strict=True):
                for entry in entries:
                    match entry:
                        case Record(event) | Wait(event):
                            queue.append(type(entry)(again.setdefault(event, Event())))
                        case _:
                            queue.append(entry)

    def finish(self, worker: int, event: Event) -> None:
        self._go_on(lambda: event not in self._happened)

    def synchronize(self, stream: int | None = None) -> None:
        """Go on until all streams, or this one, are at their end; others may be anywhere then."""
        self._go_on(lambda: any(self._queues) if stream is None else bool(self._queues[stream]))

    def _go_on(self, wanted: Callable[[], bool]) -> None:
        with self._lock:
            while wanted():
                self._favour_meeting()
                listed = enumerate(self._queues)
                ready = [number for number, queue in listed if queue and self._may_go(queue[0])]
                meetings = [queue[0] for queue in self._queues if queue and hasattr(queue[0], "may_go")]
                assert ready or meetings, "streams wait for each other"
                if ready:
                    self._step(self._chosen(ready))
                else:
                    meetings[0].wait()

    def write(self, worker: int, address: int, values: Any) -> None:
        self.synchronize()
        ctypes.memmove(address, values.ctypes.data, values.nbytes)

    def read(self, worker: int, address: int, nbytes: int) -> Any:
        self.synchronize()
        values = np.empty(nbytes, np.uint8)
        ctypes.memmove(values.ctypes.data, address, nbytes)
        return values

    def close(self) -> None:
        self.closed = True

    def _favour_meeting(self) -> None:
        """Let the stream that advances first wait a moment for other processes, before others advance."""
        queue = self._queues[self.ahead] if self.ahead is not None else None
        if queue and hasattr(queue[0], "may_go"):
            queue[0].wait(MOMENT_SECONDS)

    def _chosen(self, ready: list[int]) -> int:
        if self.ahead in ready:
            return self.ahead
        others = [stream for stream in ready if stream != self.behind]
        return self._random.choice(others or ready)

    def _may_go(self, entry: Entry) -> bool:
        if hasattr(entry, "may_go"):
            return bool(entry.may_go())
        return not isinstance(entry, Wait) or entry.event in self._happened

    def _step(self, stream: int) -> None:
        entry = self._queues[stream].popleft()
        match entry:
            case Record(event):
                event.seconds = self._clocks[stream]
                self._happened.add(event)
            case Wait(event):
                self._clocks[stream] = max(self._clocks[stream], event.seconds)
            case KernelLaunch():
                self.kernels.run(entry)
            case MemoryCopy(target, source, nbytes):
                ctypes.memmove(target, source, nbytes)
            case MatrixProduct():
                run_product(entry)
            case Convolution():
                run_convolution(entry)
            case _:
                entry.run()
        if not isinstance(entry, Record | Wait):
            self._clocks[stream] += TICK
            self.issued[stream // len(Lane)].append(entry)
