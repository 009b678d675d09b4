"""The interface between the engine and the cards that it runs on.

One implementation drives real cards. Tests bring another, which runs the same commands on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...operators.cuda.launch.commands import Command, Convolution
from ...programs.program import Lane

Bytes = npt.NDArray[np.uint8]
Event = Any
Graph = Any


class CudaMachine(Protocol):
    """Memory, and a stream for each lane, of each of `workers`; several workers may share a card.

    Commands of one lane run in the order in which they are issued. Errors of the cards are ExecutionErrors.
    """

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        ...

    def require(self, nbytes: Sequence[int]) -> None:
        """Raise ExecutionError unless the workers' cards have this much memory left, for all together."""
        ...

    def library_bytes(self, worker: int) -> int:
        """Return the bytes that vendor libraries hold for a worker, besides the allocations."""
        ...

    def scratch_bytes(self, worker: int, command: Convolution) -> int:
        """Return the scratch that the library of convolutions needs on a worker's card."""
        ...

    def allocate(self, worker: int, nbytes: int) -> int:
        """Allocate zeroed memory of a worker, held until `close`; return its address."""
        ...

    def pinned(self, nbytes: int) -> Bytes:
        """Allocate memory of the host, held until `close`, that all cards reach at its address."""
        ...

    def reaches(self, worker: int, other: int) -> bool:
        """Tell whether a worker's kernels can read another worker's memory."""
        ...

    def load(self, worker: int, commands: Iterable[Command]) -> None:
        """Prepare a worker's commands: compile kernels, open the libraries' handles, make their plans."""
        ...

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        """Put a command at the end of a lane's stream."""
        ...

    def record(self, worker: int, lane: Lane = Lane.COMPUTE, *, timed: bool = False) -> Event:
        """Return an event that happens once everything issued to the lane so far is done.

        If `timed`, the card notes when it happens.
        """
        ...

    def seconds_between(self, worker: int, begin: Event, end: Event) -> float:
        """Return the time between two timed events of a worker that have happened."""
        ...

    def wait(self, worker: int, event: Event, lane: Lane = Lane.COMPUTE) -> None:
        """Let everything that is issued to the lane from now on wait for an event."""
        ...

    def captured(self, issue: Callable[[], None]) -> Graph:
        """Capture as a graph, without running it, what `issue` puts into the streams of all lanes."""
        ...

    def captured_lane(self, issue: Callable[[], None], worker: int, lane: Lane) -> Graph:
        """Capture as a graph, without running it, what `issue` puts into the stream of one lane alone."""
        ...

    def launch(self, graph: Graph, worker: int = 0, lane: Lane = Lane.COMPUTE) -> None:
        """Run a captured graph: one of all lanes, or that of a lane in its stream."""
        ...

    def finish(self, worker: int, event: Event) -> None:
        """Wait until an event of a worker has happened. Safe in any thread."""
        ...

    def synchronize(self) -> None:
        """Wait until everything that was issued is done."""
        ...

    def write(self, worker: int, address: int, values: Bytes) -> None:
        """Copy bytes of the host into a worker's memory; the copy is done when this returns."""
        ...

    def read(self, worker: int, address: int, nbytes: int) -> Bytes:
        """Copy bytes of a worker's memory to the host."""
        ...

    def close(self) -> None:
        """Release all memory."""
        ...
