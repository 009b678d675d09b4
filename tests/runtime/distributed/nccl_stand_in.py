"""A stand-in for NCCL, whose processes are threads of one, as strict as the card library.

It refuses a card that is there twice, another card than the communicator's, other sizes at the two ends, a
group that is not ended, and calls after an abort. Sending ends when the other end receives, and a stream goes
on when all of a group has crossed. If nothing comes any more, it says so where NCCL would hang.
"""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..cuda.stand_in import StandIn

HANG_SECONDS = 20.0
NEWEST = 22800
UINT8 = 1
FLOAT32 = 7


class NcclError(RuntimeError):
    """An error of the library."""


class Hang(AssertionError):
    """NCCL would wait here for ever."""


@dataclass(eq=False)
class Call:
    """A call that sends or receives, while its stream is at it."""

    address: int
    count: int
    type: int
    done: bool = False


@dataclass
class World:
    """All communicators of a run."""

    hang_seconds: float = HANG_SECONDS
    joined: dict[int, str] = field(default_factory=dict)
    """The card of each rank."""

    aborted: set[int] = field(default_factory=set)
    moved: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    """The bytes that crossed from rank to rank."""

    def __post_init__(self) -> None:
        self.news = threading.Condition()
        self.sends: dict[tuple[int, int], deque[Call]] = defaultdict(deque)
        self.receives: dict[tuple[int, int], deque[Call]] = defaultdict(deque)

    def module(self, cuda: StandIn) -> Any:
        """Return a module in place of `cupy.cuda.nccl`, of the process whose cards are `cuda`."""
        own = _Process(self, cuda)
        return SimpleNamespace(
            NCCL_UINT8=UINT8,
            get_version=lambda: NEWEST,
            get_unique_id=lambda: tuple(range(128)),
            groupStart=own.start,
            groupEnd=own.end,
            NcclCommunicator=own.communicator,
        )

    def post(self, pair: tuple[int, int], call: Call, sends: bool) -> None:
        """Take a call that a stream has come to, and move what both ends have come to."""
        (self.sends if sends else self.receives)[pair].append(call)
        while self.sends[pair] and self.receives[pair]:
            sent, received = self.sends[pair].popleft(), self.receives[pair].popleft()
            if (sent.count, sent.type) != (received.count, received.type):
                raise NcclError(f"{pair}: {sent.count} of type {sent.type} sent, {received.count} received")
            ctypes.memmove(received.address, sent.address, sent.count)
            self.moved[pair] += sent.count
            sent.done = received.done = True
            self.news.notify_all()


class _Process:
    """The library in one process."""

    def __init__(self, world: World, cuda: StandIn) -> None:
        self.world = world
        self.cuda = cuda
        self.depth = 0
        self.calls: list[tuple[Any, bool, int, Call, int]] = []

    def start(self) -> None:
        self.depth += 1

    def end(self) -> None:
        if not self.depth:
            raise NcclError("ncclGroupEnd without ncclGroupStart")
        self.depth -= 1
        if not self.depth and self.calls:
            calls, self.calls = self.calls, []
            self._issue(calls)

    def _issue(self, calls: list[Any]) -> None:
        streams = {stream for *_, stream in calls}
        communicators = {communicator for communicator, *_ in calls}
        assert len(streams) == len(communicators) == 1, "a group has one communicator and one stream"
        (stream,), (communicator,) = streams, communicators
        if communicator.stream not in (None, stream):
            raise NcclError("a communicator keeps the order of one stream only")
        communicator.stream = stream
        group = Group(communicator, [(sends, peer, call) for _, sends, peer, call, _ in calls])
        self.cuda.issue(stream, group, "ncclGroup")  # type: ignore[arg-type]

    def communicator(self, count: int, name: tuple[int, ...], rank: int) -> Any:
        return Communicator(self, count, name, rank)


class Communicator:
    def __init__(self, process: _Process, count: int, name: tuple[int, ...], rank: int) -> None:
        assert len(name) == 128
        world, cuda = process.world, process.cuda
        self.process, self.rank, self.count = process, rank, count
        self.device = cuda.device
        self.stream: int | None = None
        with world.news:
            card = f"0000:{cuda.bus + cuda.device:02x}:00.0"
            twice = card in world.joined.values()
            world.joined[rank] = card
            world.news.notify_all()
            if twice:
                raise NcclError("ncclInvalidUsage: Duplicate GPU detected")
            if not world.news.wait_for(lambda: len(world.joined) == count, world.hang_seconds):
                raise Hang("ncclCommInitRank waits for other ranks")

    def send(self, address: int, count: int, type: int, peer: int, stream: int) -> None:
        self._call(True, address, count, type, peer, stream)

    def recv(self, address: int, count: int, type: int, peer: int, stream: int) -> None:
        self._call(False, address, count, type, peer, stream)

    def check_async_error(self) -> None:
        self._require()

    def abort(self) -> None:
        with self.process.world.news:
            self.process.world.aborted.add(self.rank)
            self.process.world.news.notify_all()

    def destroy(self) -> None:
        self._require()
        self.device = -1

    def _call(self, sends: bool, address: int, count: int, type: int, peer: int, stream: int) -> None:
        self._require()
        if peer == self.rank or not 0 <= peer < self.count:
            raise NcclError(f"ncclInvalidArgument: rank {peer}")
        if self.process.cuda.device != self.device or self.process.cuda.stream(stream).device != self.device:
            raise NcclError("ncclInvalidUsage: the communicator belongs to another card")
        self.process.start()
        self.process.calls.append((self, sends, peer, Call(address, count, type), stream))
        self.process.end()

    def _require(self) -> None:
        if self.rank in self.process.world.aborted or self.device < 0:
            raise NcclError("ncclInvalidArgument: the communicator was aborted or destroyed")


@dataclass(eq=False)
class Group:
    """The calls of a group, in a stream."""

    communicator: Communicator
    calls: list[tuple[bool, int, Call]]
    under_way: list[Call] = field(default_factory=list)

    def may_go(self) -> bool:
        world, rank = self.communicator.process.world, self.communicator.rank
        with world.news:
            if not self.under_way:
                for sends, peer, call in self.calls:
                    own = Call(call.address, call.count, call.type)
                    self.under_way.append(own)
                    world.post((rank, peer) if sends else (peer, rank), own, sends)
            return rank in world.aborted or all(call.done for call in self.under_way)

    def wait(self, seconds: float | None = None) -> None:
        world = self.communicator.process.world
        with world.news:
            came = world.news.wait_for(self.may_go, world.hang_seconds if seconds is None else seconds)
            if not came and seconds is None:
                raise Hang(f"rank {self.communicator.rank} waits in a group for ever")

    def run(self) -> None:
        self.under_way = []
