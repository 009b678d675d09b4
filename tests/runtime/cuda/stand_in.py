"""A stand-in for CuPy without a driver: as strict as CUDA about devices and capture, its streams the host's.

Every call that CUDA wants with a stream's or an event's own device current raises without it. Work that was
put into a stream is done when somebody waits for it, and no sooner.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tofu.operators.cuda.launch.commands import Command, KernelLaunch, MemoryCopy
from tofu.operators.cuda.vendor import cublas, cudnn
from tofu.programs.program import Lane
from tofu.runtime.cuda import card_facts, card_times, cards, cupy_machine, inspection

from .host_machine import Compiled, HostMachine, Queues, Record, Wait

MOST_STREAMS = 48
PORTABLE = 1
"""CUDA's flag for memory of the host that all cards reach."""

NAMES = {
    2: "cudaErrorMemoryAllocation: out of memory",
    100: "cudaErrorNoDevice: no CUDA-capable device is detected",
    400: "cudaErrorInvalidResourceHandle: invalid resource handle",
    700: "cudaErrorIllegalAddress: an illegal memory access was encountered",
    704: "cudaErrorPeerAccessAlreadyEnabled: peer access is already enabled",
    900: "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing",
    904: "cudaErrorStreamCaptureUnjoined: capturing stream has unjoined work",
    905: "cudaErrorStreamCaptureIsolation: dependency created on uncaptured work in another stream",
}


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(NAMES[status])


class CompileException(Exception):
    pass


class OutOfMemoryError(MemoryError):
    pass


@dataclass(eq=False)
class StandIn:
    """`cards` devices with `capacity` bytes each. `calls` are names of calls with the device then current.

    Cards take their `names` in turn. `version` is that of CuPy.
    `broken` are calls that fail, with the status of CUDA. A stream of `endless` never ends.
    """

    kernels: Compiled
    cards: int = 2
    capacity: int = 1 << 26
    access: bool = True
    calls: list[tuple[str, int]] = field(default_factory=list)
    enabled: list[tuple[int, int]] = field(default_factory=list)
    broken: dict[str, int] = field(default_factory=dict)
    endless: set[int] = field(default_factory=set)
    closed: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ("NVIDIA H100 80GB HBM3",)
    version: str = "14.0"
    bus: int = 0
    """The address of the first card on the bus."""

    seed: int = 0
    """Decides in which order streams advance."""

    def __post_init__(self) -> None:
        self.host = HostMachine(MOST_STREAMS, self.kernels, self.seed)
        self.used = [0] * self.cards
        self.streams: list[Any] = []
        self.capturing: Any = None
        self._thread = threading.local()

    @property
    def device(self) -> int:
        return getattr(self._thread, "device", 0)

    def call(self, name: str, device: int | None = None, capturable: bool = True) -> None:
        """Take note of a call that wants this device current."""
        self.calls.append((name, self.device))
        if name in self.broken:
            raise CUDARuntimeError(self.broken[name])
        if device is not None and device != self.device:
            raise CUDARuntimeError(400)
        if self.capturing is not None and not capturable:
            raise CUDARuntimeError(900)

    @contextmanager
    def current(self, device: int) -> Iterator[Any]:
        before = self.device
        self._thread.device = device
        try:
            yield SimpleNamespace(compute_capability="90")
        finally:
            self._thread.device = before

    def stream(self, pointer: int) -> Any:
        return self.streams[pointer - 1]

    def issue(self, pointer: int, command: Command, name: str) -> None:
        """Put a command into the stream with this pointer."""
        stream = self.stream(pointer)
        self.call(name, stream.device)
        self.host.issue(stream.number, command)

    def module(self) -> Any:
        """Return a module in place of `cupy`."""
        return SimpleNamespace(
            cuda=_cuda(self), RawModule=_raw_module(self), RawKernel=self._kernel, __version__=self.version
        )

    def _kernel(self, code: str, name: str) -> Callable[..., None]:
        """A kernel with numbers for arguments, which does nothing that shows."""

        def launched(grid: Any, block: Any, arguments: Any, stream: Any) -> None:
            self.call(name, stream.device)

        return launched


def _cuda(own: StandIn) -> Any:
    class Stream:
        def __init__(self, non_blocking: bool) -> None:
            assert non_blocking, "the default stream would order what must not be ordered"
            own.call("Stream")
            self.number, self.device = len(own.streams), own.device
            own.streams.append(self)
            self.ptr = len(own.streams)

        @property
        def done(self) -> bool:
            own.call("streamQuery", self.device, capturable=False)
            if self.number in own.endless:
                return False
            own.host.synchronize(len(Lane) * self.number)
            return True

        def synchronize(self) -> None:
            own.call("streamSynchronize", self.device, capturable=False)
            own.host.synchronize(len(Lane) * self.number)

        def wait_event(self, event: Any) -> None:
            own.call("wait_event", self.device)
            own.host.wait(self.number, event.happens)

        def begin_capture(self, mode: str) -> None:
            own.call(f"begin_capture {mode}", self.device, capturable=False)
            own.host.synchronize()
            own.capturing = self

        def end_capture(self) -> Any:
            assert own.capturing is self, "the stream that began the capture ends it"
            own.capturing = None
            graph = own.host.taken()
            own.call("end_capture", self.device)
            joined(graph, len(Lane) * self.number)

            def launch(stream: Stream) -> None:
                own.call("graphLaunch", stream.device)
                own.host.launch(graph)
                if stream.number != self.number:
                    raise AssertionError("this stand-in launches a graph on the card that captured it")

            return SimpleNamespace(launch=launch)

    class Event:
        def __init__(self, disable_timing: bool) -> None:
            own.call("Event" if disable_timing else "timed Event")
            self.device = own.device
            self.timed = not disable_timing

        @property
        def done(self) -> bool:
            own.call("eventQuery", self.device, capturable=False)
            own.host.finish(0, self.happens)
            return True

        def record(self, stream: Stream) -> None:
            own.call("record", stream.device)
            own.call("record", self.device)
            self.happens = own.host.record(stream.number)

    def elapsed(begin: Event, end: Event) -> float:
        """Return milliseconds."""
        assert begin.timed, "only events that are timed have a time"
        assert end.timed, "only events that are timed have a time"
        own.call("eventElapsedTime", begin.device, capturable=False)
        return 1000 * own.host.seconds_between(0, begin.happens, end.happens)

    class Memory:
        def __init__(self, size: int) -> None:
            own.call("malloc", capturable=False)
            if own.used[own.device] + size > own.capacity:
                raise CUDARuntimeError(2)
            own.used[own.device] += size
            self.ptr = own.host.allocate(0, size)
            self._taken = own.device, size

        def __del__(self) -> None:
            if hasattr(self, "_taken"):
                device, size = self._taken
                own.used[device] -= size

    class PinnedMemory:
        def __init__(self, size: int, flags: int) -> None:
            assert flags == PORTABLE, "every card reaches it"
            own.call("hostAlloc", capturable=False)
            self.memory = own.host.pinned(size)

    class PinnedMemoryPointer:
        def __new__(cls, memory: PinnedMemory, offset: int) -> Any:
            return memoryview(memory.memory[offset:])

    errors = {
        "compiler": SimpleNamespace(CompileException=CompileException),
        "memory": SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    }
    return SimpleNamespace(
        Stream=Stream,
        Event=Event,
        Memory=Memory,
        PinnedMemory=PinnedMemory,
        PinnedMemoryPointer=PinnedMemoryPointer,
        Device=own.current,
        get_elapsed_time=elapsed,
        runtime=_runtime(own),
        **errors,
    )


def _runtime(own: StandIn) -> Any:
    def count() -> int:
        own.call("getDeviceCount")
        return own.cards

    def copy(target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        own.issue(stream, MemoryCopy(target, source, nbytes), "memcpyAsync")

    def fill(target: int, value: int, nbytes: int, stream: int) -> None:
        values = np.full(nbytes, value, np.uint8)
        kept.append(values)
        own.issue(stream, MemoryCopy(target, values.ctypes.data, nbytes), "memsetAsync")

    def enable(other: int) -> None:
        own.call("deviceEnablePeerAccess")
        if (own.device, other) in own.enabled:
            raise CUDARuntimeError(704)
        own.enabled.append((own.device, other))

    kept: list[Any] = []
    return SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=count,
        getDevice=lambda: own.device,
        getDeviceProperties=lambda card: {"name": own.names[card % len(own.names)].encode()},
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 12090,
        memGetInfo=lambda: (own.capacity - own.used[own.device], own.capacity),
        memcpyAsync=copy,
        memsetAsync=fill,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memcpyDefault=4,
        streamCaptureModeThreadLocal="thread local",
        deviceCanAccessPeer=lambda card, other: own.access,
        deviceEnablePeerAccess=enable,
        deviceGetPCIBusId=lambda card: f"0000:{own.bus + card:02x}:00.0",
        hostAllocPortable=PORTABLE,
    )


def _raw_module(own: StandIn) -> Any:
    sources: dict[str, None] = {}

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            assert options == ("-std=c++17",)
            self._code = code

        def compile(self) -> None:
            own.call("compile", capturable=False)
            if "compile" in own.broken:
                raise CompileException("error: expected a ;")

        def get_function(self, name: str) -> Callable[..., None]:
            own.call("get_function", capturable=False)
            sources[self._code] = None
            loaded_on = own.device

            def launched(grid: Any, block: Any, arguments: Any, stream: Any) -> None:
                assert loaded_on == own.device, "a function belongs to the card that it was loaded on"
                own.kernels.load(sources)  # all of them together: compiling one takes as long
                (struct,) = arguments
                launch = KernelLaunch(self._code, name, *grid, *block, "_blocks" in name, struct)
                own.issue(stream.ptr, launch, "launchKernel")

            return launched

    return RawModule


def joined(graph: Queues, origin: int) -> None:
    """Raise as CUDA does where a stream of a capture was not forked from its origin, or not joined to it."""
    awaited = {entry.event for entry in graph[origin] if isinstance(entry, Wait)}
    for number, entries in enumerate(graph):
        if number == origin or not entries:
            continue
        if not isinstance(entries[0], Wait):
            raise CUDARuntimeError(905)
        last = entries[-1]
        if not (isinstance(last, Record) and last.event in awaited):
            raise CUDARuntimeError(904)


def installed(own: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Let machines that are made from now on use the stand-in, for CuPy and for vendor libraries."""

    class Blas:
        def __init__(self, stream: int, workspace: int, nbytes: int, tf32: bool) -> None:
            own.call("cublasCreate", own.stream(stream).device, capturable=False)
            self._stream = stream

        def multiply(self, command: Any) -> None:
            own.issue(self._stream, command, "cublasGemm")

        def close(self) -> None:
            own.closed.append("cublas")

    class Plans:
        def __init__(self, handle: int, tf32: bool) -> None:
            own.call("plans", own.stream(handle).device, capturable=False)

        def workspace_bytes(self, command: Any) -> int:
            return 1000

        def plan(self, command: Any) -> Any:
            return SimpleNamespace(execute=lambda command, handle: own.issue(handle, command, "cudnn"))

    def opened(stream: int) -> int:
        own.call("cudnnCreate", own.stream(stream).device, capturable=False)
        return stream

    def closed(handle: int) -> None:
        own.call("cudnnDestroy", own.stream(handle).device)
        own.closed.append("cudnn")

    module = own.module()
    monkeypatch.setattr(cublas, "WORKSPACE_BYTES", 1 << 16)
    monkeypatch.setattr(cublas, "version", lambda: "13.1.0")
    for user in (cupy_machine, cards, card_facts, card_times, inspection):
        monkeypatch.setattr(user, "library", lambda name, purpose: module)
    monkeypatch.setattr(cublas, "Cublas", Blas)
    monkeypatch.setattr(cudnn, "Plans", Plans)
    monkeypatch.setattr(cudnn, "open_handle", opened)
    monkeypatch.setattr(cudnn, "close_handle", closed)
    return own
