"""What the engine asks of the cards that it runs on.

One implementation drives real cards; tests bring another, which runs the same commands on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...operators.cuda.launch.commands import Command, Convolution

Bytes = npt.NDArray[np.uint8]
Event = Any
Graph = Any


class Machine(Protocol):
    """Memory and one stream for each of `workers`; several workers may share a card.

    Commands of one worker run in the order in which they are issued. Errors of the cards are ExecutionErrors.
    """

    @property
    def workers(self) -> int:
        """How many workers there are."""
        ...

    def require(self, nbytes: Sequence[int]) -> None:
        """Raise ExecutionError unless the workers' cards have so much memory left, all of it together."""
        ...

    def library_bytes(self, worker: int) -> int:
        """Memory of a worker that vendor libraries were given, beside what is allocated."""
        ...

    def scratch_bytes(self, worker: int, command: Convolution) -> int:
        """What the library of convolutions asks for on a worker's card."""
        ...

    def allocate(self, worker: int, nbytes: int) -> int:
        """The address of new memory of a worker, all zeros; held until `close`."""
        ...

    def reaches(self, worker: int, other: int) -> bool:
        """Whether a worker's kernels can read another worker's memory."""
        ...

    def load(self, worker: int, commands: Iterable[Command]) -> None:
        """Make ready what a worker's commands need: compiled kernels, the libraries' handles and plans."""
        ...

    def issue(self, worker: int, command: Command) -> None:
        """Put a command at the end of a worker's stream."""
        ...

    def record(self, worker: int) -> Event:
        """An event that happens once everything issued to the worker so far is done."""
        ...

    def wait(self, worker: int, event: Event) -> None:
        """Let what is issued to the worker from now on wait for an event."""
        ...

    def captured(self, issue: Callable[[], None]) -> Graph:
        """What `issue` puts into the streams, of all workers together, not run but kept."""
        ...

    def launch(self, graph: Graph) -> None:
        """Run what was captured."""
        ...

    def synchronize(self) -> None:
        """Wait until everything that was issued is done."""
        ...

    def write(self, worker: int, address: int, values: Bytes) -> None:
        """Copy bytes of the host into a worker's memory; done when it returns."""
        ...

    def read(self, worker: int, address: int, nbytes: int) -> Bytes:
        """Copy bytes of a worker's memory to the host."""
        ...

    def close(self) -> None:
        """Give all memory back."""
        ...
