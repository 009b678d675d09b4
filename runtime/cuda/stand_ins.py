"""Workers of other processes, as the CUDA engine runs them: their instructions are messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..step_threads import Step
from ..thread_tasks import Place
from .machine import CudaMachine
from .preparation import PreparedCommands, Views
from .seats import Seats


class CardStandIns(Protocol):
    """The stand-ins of a process, which are numbered after all workers.

    A stand-in receives in its lane of computations and sends in its lane of transfers. Its messages of one
    tick are issued together, in one stream.
    """

    @property
    def first(self) -> int:
        """Return the number of the first stand-in."""
        ...

    @property
    def seats(self) -> Seats:
        """Return the machine's worker of all workers and stand-ins."""
        ...

    def host_memory(self, machine: CudaMachine) -> Mapping[int, int]:
        """Return the addresses of arenas that lie on the host, by stand-in."""
        ...

    def prepare(self, views: Views, machine: CudaMachine) -> Mapping[int, PreparedCommands]:
        """Return the commands of every stand-in."""
        ...

    def host_steps(self) -> Mapping[Place, Step] | None:
        """Return the part that the host has in each message; None if cards exchange them by themselves.

        To send, the host waits for the commands of the message, then sends. To receive, it waits for what the
        message waits for, then receives. A received message has no commands.
        """
        ...

    def sent(self) -> Sequence[Place]:
        """List the messages that are sent, in their order."""
        ...

    def received(self) -> Sequence[Place]:
        """List the messages that are received, in their order."""
        ...

    def place(self, worker: int, index: int) -> str:
        """Describe a message, for errors."""
        ...
