"""The interface of engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..operators.kernels.kernel import Array
from ..programs.memory import MemoryPlan
from ..programs.program import Held, PartitionedGraph
from .timing import StepSeconds

CLOSED = "the executor was closed during run; close it afterwards"
"""Why an iteration failed that another thread, a signal handler or an operation cut short by `close`."""


class Engine(Protocol):
    """A partitioned graph in the memory of its workers, all zeros at first."""

    iterations: int

    @property
    def local(self) -> Collection[int]:
        """Return the workers that this process runs."""
        ...

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes copied from one worker to another in the last iteration."""
        ...

    @property
    def process_bytes(self) -> tuple[tuple[int, ...], ...]:
        """Return the bytes that each process fetched from each in the last iteration: `[source][reader]`.

        All processes read this in the same order.
        """
        ...

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Count the bytes besides each worker's arena."""
        ...

    @property
    def failed(self) -> bool:
        """Tell whether an iteration stopped halfway."""
        ...

    def run(self, updates: bool = True) -> None:
        """Run one iteration. If `updates` is False, skip the parameter updates (for micro-batches).

        Raises ExecutionError; the engine then refuses to run again.
        """
        ...

    def write(self, worker: int, buffer: int, values: Array) -> None:
        """Fill a buffer with an array of its shape, converted to its type."""
        ...

    def read(self, worker: int, buffer: int) -> Array:
        """Return a buffer's contents, valid until the next iteration."""
        ...

    def read_own(self, worker: int, buffer: int) -> Array:
        """Return the contents of a buffer of a local worker; other processes need not call this."""
        ...

    def bring(self, held: Sequence[Held], process: int) -> bool:
        """Bring buffers into one process, so that `read` there is local; tell whether it is this one."""
        ...

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the contents that all processes give for a purpose, by process."""
        ...

    def close(self) -> None:
        """Release threads and memory. An iteration that runs fails, and the engine cannot run again."""
        ...


class OneProcess(ABC):
    """The part of an engine that is simple if all workers run in one process."""

    @property
    @abstractmethod
    def fetched_bytes(self) -> int:
        """Count the bytes copied from one worker to another in the last iteration."""

    @property
    def process_bytes(self) -> tuple[tuple[int, ...], ...]:
        """Return the bytes that the process fetched from its own workers."""
        return ((self.fetched_bytes,),)

    @abstractmethod
    def read(self, worker: int, buffer: int) -> Array:
        """Return a buffer's contents, valid until the next iteration."""

    def read_own(self, worker: int, buffer: int) -> Array:
        """Return a buffer's contents."""
        return self.read(worker, buffer)

    def bring(self, held: Sequence[Held], process: int) -> bool:
        """Tell that all buffers are in this process."""
        return True

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the content that this process gives."""
        return [content]


@dataclass(frozen=True, slots=True)
class Watch:
    """The checks and measurements that an engine makes besides running, which take time."""

    watchdog_seconds: float
    """The longest time that a worker may be without progress."""

    seconds: StepSeconds | None = None
    """Receives the time of every instruction."""

    detect_nan: bool = False
    """Whether an instruction fails if its result holds NaN."""

    guard_buffers: bool = False
    """Whether an instruction fails if it writes outside its buffers; the memory plan has bands then."""

    note_arrivals: bool = False
    """Whether gradients are applied in the order in which they arrive, which is noted as it happens."""


MakeEngine = Callable[[PartitionedGraph, MemoryPlan, Watch], Engine]
