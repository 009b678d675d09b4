"""Drive real cards through CuPy: memory, streams, events, launches, graphs.

The engine of one process drives all cards. Arenas are allocated directly by CUDA, not from CuPy's pools,
because kernels of other cards cannot read CuPy's asynchronous pools.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np

from ...errors import ExecutionError
from ...operators.cuda.launch.commands import (
    Command,
    Convolution,
    Exchange,
    KernelLaunch,
    MatrixProduct,
    MemoryCopy,
)
from ...operators.cuda.vendor.libraries import library
from ...operators.emit.kernel import OPTIONS
from ...programs.program import Lane
from .machine import Bytes, Event, Graph
from .vendor import VendorLibraries

ALREADY_ENABLED = 704
"""CUDA's status if access between two cards has been enabled before."""

BUSY_SECONDS = 1e-3
"""How long the host polls for the end of an iteration without a pause."""

PAUSE_SECONDS = 5e-5

_ABANDONED: list[Any] = []
"""Memory that hanging streams may still use: freeing it would wait for them for ever."""


class Communicator(Protocol):
    """Moves messages between the cards of processes."""

    def exchange(self, messages: Exchange, stream: int) -> None:
        """Put messages into the stream with this pointer, whose card is the current one."""
        ...

    def check(self) -> None:
        """Raise ExecutionError if messages cannot arrive any more."""
        ...


class CupyMachine:
    """Worker `i` runs on card `cards[i]`, each of its lanes in a separate stream.

    If `tf32`, products and convolutions of float32 may round their factors to TF32. An iteration that does
    not end is abandoned after `watchdog_seconds`. `names` are the workers in errors. A `communicator` moves
    messages to the cards of other processes. Raises ExecutionError for a card that does not exist, and if
    CuPy is missing.

    Every access to memory goes into a worker's stream, because these streams do not wait for CUDA's default
    one.
    """

    def __init__(
        self,
        cards: Sequence[int],
        *,
        tf32: bool = False,
        watchdog_seconds: float = 600.0,
        names: Sequence[str] | None = None,
        communicator: Communicator | None = None,
    ) -> None:
        self._cupy = library("cupy", "a GPU")
        self._cuda = self._cupy.cuda
        self._runtime = self._cuda.runtime
        self._cards = tuple(cards)
        self._watchdog_seconds = watchdog_seconds
        self._communicator = communicator
        self._names = names or [f"worker {worker}" for worker in range(len(self._cards))]
        self._blocks: list[Any] = []
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[int, str], Any] = {}
        self._stuck = False
        with self._errors():
            count = self._runtime.getDeviceCount()
            missing = sorted({card for card in self._cards if not 0 <= card < count})
            if missing:
                raise ExecutionError(
                    f"gpu({missing[0]}) was requested, but this machine has {count} "
                    f"card{'' if count == 1 else 's'}; several workers may share one"
                )
            self._streams = [
                {lane: self._on(card, self._cuda.Stream, non_blocking=True) for lane in Lane}
                for card in self._cards
            ]
            self._access = self._enable_peers()
        pointers = [streams[Lane.COMPUTE].ptr for streams in self._streams]
        self._libraries = VendorLibraries(self._cards, pointers, self.allocate, tf32=tf32)

    @property
    def workers(self) -> int:
        return len(self._cards)

    def require(self, nbytes: Sequence[int]) -> None:
        for card in sorted(set(self._cards)):
            own = [worker for worker, each in enumerate(self._cards) if each == card]
            needed = sum(nbytes[worker] for worker in own)
            with self._errors():
                free, total = self._on(card, self._runtime.memGetInfo)
            if needed > free:
                named = ", ".join(self._names[worker] for worker in own if nbytes[worker])
                raise ExecutionError(
                    f"gpu({card}) has {free:,} of {total:,} bytes left, but the arenas of {named} take "
                    f"{needed:,}; use more cards or a smaller batch"
                )

    def library_bytes(self, worker: int) -> int:
        return self._libraries.nbytes[worker]

    def scratch_bytes(self, worker: int, command: Convolution) -> int:
        with self._errors(), self._current(worker):
            return self._libraries.scratch_bytes(worker, command)

    def allocate(self, worker: int, nbytes: int) -> int:
        card = self._cards[worker]
        try:
            with self._errors(), self._current(worker):
                block = self._cuda.Memory(max(nbytes, 1))
                stream = self._streams[worker][Lane.COMPUTE]
                self._runtime.memsetAsync(block.ptr, 0, max(nbytes, 1), stream.ptr)
                stream.synchronize()
        except ExecutionError as error:
            raise ExecutionError(
                f"{self._names[worker]}: {nbytes:,} bytes of gpu({card}): {error}"
            ) from error
        self._blocks.append(block)
        return int(block.ptr)

    def pinned(self, nbytes: int) -> Bytes:
        with self._errors():
            block = self._cuda.PinnedMemory(max(nbytes, 1), self._runtime.hostAllocPortable)
        self._blocks.append(block)
        memory: Bytes = np.frombuffer(self._cuda.PinnedMemoryPointer(block, 0), np.uint8, nbytes)
        memory[...] = 0
        return memory

    def reaches(self, worker: int, other: int) -> bool:
        return (self._cards[worker], self._cards[other]) in self._access

    def write(self, worker: int, address: int, values: Bytes) -> None:
        self._copy(worker, address, values.ctypes.data, values.nbytes, self._runtime.memcpyHostToDevice)

    def read(self, worker: int, address: int, nbytes: int) -> Bytes:
        values = np.empty(nbytes, np.uint8)
        self._copy(worker, values.ctypes.data, address, nbytes, self._runtime.memcpyDeviceToHost)
        return values

    def _copy(self, worker: int, target: int, source: int, nbytes: int, kind: int) -> None:
        if nbytes:
            with self._errors(), self._current(worker):
                stream = self._streams[worker][Lane.COMPUTE]
                self._runtime.memcpyAsync(target, source, nbytes, kind, stream.ptr)
                stream.synchronize()

    def load(self, worker: int, commands: Iterable[Command]) -> None:
        issued = list(commands)
        launches = [command for command in issued if isinstance(command, KernelLaunch)]
        with self._errors(), self._current(worker):
            self._libraries.open(worker, issued)
            self._compile(dict.fromkeys(launch.source for launch in launches))
            for launch in launches:
                key = (self._cards[worker], launch.function)
                if key not in self._functions:
                    self._functions[key] = self._modules[launch.source].get_function(launch.function)

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        with self._errors(), self._current(worker):
            stream = self._streams[worker][lane]
            match command:
                case KernelLaunch():
                    function = self._functions[self._cards[worker], command.function]
                    function((command.blocks,), (command.threads,), (command.struct,), stream=stream)
                case MemoryCopy(target, source, nbytes):
                    self._runtime.memcpyAsync(target, source, nbytes, self._runtime.memcpyDefault, stream.ptr)
                case MatrixProduct():
                    self._libraries.multiply(worker, command)
                case Convolution():
                    self._libraries.convolve(worker, command)
                case Exchange():
                    assert self._communicator is not None, "messages between cards need a communicator"
                    self._communicator.exchange(command, stream.ptr)

    def record(self, worker: int, lane: Lane = Lane.COMPUTE, *, timed: bool = False) -> Event:
        with self._errors(), self._current(worker):
            event = self._cuda.Event(disable_timing=not timed)
            event.record(self._streams[worker][lane])
            return event

    def seconds_between(self, worker: int, begin: Event, end: Event) -> float:
        with self._errors(), self._current(worker):
            return float(self._cuda.get_elapsed_time(begin, end)) / 1000

    def wait(self, worker: int, event: Event, lane: Lane = Lane.COMPUTE) -> None:
        with self._errors(), self._current(worker):
            self._streams[worker][lane].wait_event(event)

    def captured(self, issue: Callable[[], None]) -> Graph:
        def forked() -> None:
            self._fork()
            issue()
            self._join()

        return self.captured_lane(forked, 0, Lane.COMPUTE)

    def captured_lane(self, issue: Callable[[], None], worker: int, lane: Lane) -> Graph:
        origin = self._streams[worker][lane]
        with self._errors():
            with self._current(worker):
                origin.begin_capture(self._runtime.streamCaptureModeThreadLocal)
            try:
                issue()
            except BaseException:
                self._abandon_capture(worker, lane)
                raise
            with self._current(worker):
                return origin.end_capture()

    def launch(self, graph: Graph, worker: int = 0, lane: Lane = Lane.COMPUTE) -> None:
        with self._errors(), self._current(worker):
            graph.launch(self._streams[worker][lane])

    def finish(self, worker: int, event: Event) -> None:
        self._poll(worker, lambda: bool(event.done), time.monotonic())

    def synchronize(self) -> None:
        begun = time.monotonic()
        for worker, lane in self._lanes():
            stream = self._streams[worker][lane]
            self._poll(worker, lambda stream=stream: bool(stream.done), begun)  # type: ignore[misc]
        self._check_communicator()  # streams also end if messages are given up

    def _poll(self, worker: int, done: Callable[[], bool], begun: float) -> None:
        """Wait until a worker's card has done something."""
        with self._errors(), self._current(worker):
            while not done():
                waited = time.monotonic() - begun
                self._check_communicator()
                if waited > self._watchdog_seconds:
                    self._stuck = True
                    raise ExecutionError(
                        f"no progress for {self._watchdog_seconds:g} s: {self._names[worker]} on "
                        f"gpu({self._cards[worker]}) has not finished"
                    )
                if waited > BUSY_SECONDS:
                    time.sleep(PAUSE_SECONDS)

    def _check_communicator(self) -> None:
        """Raise ExecutionError if messages fail, and give up what still waits for them."""
        if self._communicator is not None:
            try:
                self._communicator.check()
            except ExecutionError:
                self._stuck = True
                raise

    def close(self) -> None:
        """Release all memory, unless the watchdog gave up: CUDA would wait for the streams' end."""
        if self._stuck:
            _ABANDONED.append((self._libraries, self._blocks))
        else:
            for worker, close in self._libraries.closing():
                with suppress(ExecutionError), self._errors(), self._current(worker):
                    close()  # after a card's error every call fails
        self._blocks = []

    def _fork(self) -> None:
        """Let every stream begin after the first one has."""
        begun = self.record(0)
        for worker, lane in self._lanes()[1:]:
            self.wait(worker, begun, lane)

    def _join(self) -> None:
        """Let the first stream end after all others have."""
        for worker, lane in self._lanes()[1:]:
            self.wait(0, self.record(worker, lane))

    def _lanes(self) -> list[tuple[int, Lane]]:
        """List all lanes; the first one is where an iteration begins and ends."""
        return [(worker, lane) for worker in range(self.workers) for lane in Lane]

    def _abandon_capture(self, worker: int, lane: Lane) -> None:
        """Leave a failed capture; ignore the error that it is incomplete."""
        with suppress(ExecutionError), self._errors(), self._current(worker):
            self._streams[worker][lane].end_capture()

    def _compile(self, sources: Iterable[str]) -> None:
        """Compile several at a time: NVRTC takes a while for each, and CuPy caches the results on disk."""
        new = [source for source in sources if source not in self._modules]
        card = self._runtime.getDevice()

        def compiled(source: str) -> Any:
            with self._cuda.Device(card):
                module = self._cupy.RawModule(code=source, options=OPTIONS)
                module.compile()
                return module

        with ThreadPoolExecutor() as pool:
            self._modules.update(zip(new, pool.map(compiled, new), strict=True))

    def _enable_peers(self) -> frozenset[tuple[int, int]]:
        """Return the pairs of cards whose first one can read the second one's memory."""
        cards = sorted(set(self._cards))
        reached = {(card, card) for card in cards}
        for card in cards:
            for other in cards:
                if card != other and self._runtime.deviceCanAccessPeer(card, other):
                    try:
                        self._on(card, self._runtime.deviceEnablePeerAccess, other)
                    except self._runtime.CUDARuntimeError as error:
                        if error.status != ALREADY_ENABLED:
                            raise
                    reached.add((card, other))
        return frozenset(reached)

    def _on(self, card: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with self._cuda.Device(card):
            return function(*arguments, **options)

    def _current(self, worker: int) -> Any:
        """Make the worker's card the current one."""
        return self._cuda.Device(self._cards[worker])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn CUDA's errors into ExecutionError."""
        cuda = self._cuda
        try:
            yield
        except (  # errors of the runtime, the driver and the loading of NVRTC are RuntimeErrors
            RuntimeError,
            cuda.compiler.CompileException,
            cuda.memory.OutOfMemoryError,
        ) as error:
            raise ExecutionError(f"CUDA: {str(error).strip()}") from error
