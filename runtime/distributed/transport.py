"""How messages cross between processes."""

from __future__ import annotations

from typing import Protocol

from ...errors import ExecutionError


class LinkLost(ExecutionError):
    """The connection to a process broke, or the process sent something else than expected.

    `process` is None if it is not known which one it was.
    """

    def __init__(self, process: int | None, reason: str) -> None:
        super().__init__(reason if process is None else f"process {process}: {reason}")
        self.process = process
        self.reason = reason


class Transport(Protocol):
    """Moves bytes between this process and others.

    One thread sends and another one receives. Messages between two processes arrive in the order in which
    they were sent.
    """

    sent_bytes: dict[int, int]
    """The bytes of messages that were sent so far to each other process, counted as they left."""

    received_bytes: int
    """The bytes of messages that were received so far."""

    def send(self, process: int, number: int, content: memoryview) -> None:
        """Send message `number` to a process; when this returns, the memory may be written again.

        Raises LinkLost.
        """
        ...

    def receive(self, process: int, number: int, into: memoryview) -> None:
        """Receive message `number` from a process. Raises LinkLost, also if another message arrives."""
        ...

    def abort(self) -> None:
        """Let everything that waits in `send` and `receive` fail at once. Safe in any thread."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...
