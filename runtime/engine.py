"""What every engine can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..operators.kernels.kernel import Array
from ..programs.memory import MemoryPlan
from ..programs.program import PartitionedGraph
from .timing import StepSeconds


class Engine(Protocol):
    """A partitioned graph in the memory of its workers, all zeros at first."""

    iterations: int

    @property
    def fetched_bytes(self) -> int:
        """Bytes copied from one worker to another in the last iteration."""
        ...

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Bytes beside each worker's arena."""
        ...

    @property
    def failed(self) -> bool:
        """Whether an iteration stopped half way."""
        ...

    def run(self, updates: bool = True) -> None:
        """Run one iteration; without `updates` what a graph with micro-batches learns waits for another one.

        Raises ExecutionError; the engine then refuses to run again.
        """
        ...

    def write(self, worker: int, buffer: int, values: Array) -> None:
        """Fill a buffer with an array of its shape, converted to its type."""
        ...

    def read(self, worker: int, buffer: int) -> Array:
        """What a buffer holds, for looking at before the next iteration."""
        ...

    def close(self) -> None:
        """Give threads and memory back. The engine cannot run again."""
        ...


@dataclass(frozen=True, slots=True)
class Watch:
    """What an engine does beside running, at a cost.

    `seconds` receives what every instruction takes. With `detect_nan` an instruction fails whose result
    holds something that is not a number. No worker may go without progress for `watchdog_seconds`.
    """

    watchdog_seconds: float
    seconds: StepSeconds | None = None
    detect_nan: bool = False


MakeEngine = Callable[[PartitionedGraph, MemoryPlan, Watch], Engine]
