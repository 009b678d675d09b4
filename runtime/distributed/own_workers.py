"""The workers of one process: an engine that runs them, and the messages that they exchange with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..engine import Engine


@dataclass(frozen=True, slots=True)
class Crossed:
    """The bytes of an iteration's messages that this process sent and received."""

    sent: Mapping[int, int]
    """Those sent to each other process."""

    received: int
    """Those received from all of them."""


class MessageTraffic(Protocol):
    """The messages of a process to others, in one iteration after the other."""

    @property
    def nbytes(self) -> int:
        """Return the memory that messages take where workers have theirs."""
        ...

    def begin(self) -> None:
        """Begin to count another iteration."""
        ...

    def crossed(self, updates: bool) -> Crossed:
        """Return what crossed in the iteration that has just ended, which learned if there were `updates`."""
        ...


@dataclass(frozen=True, slots=True)
class OwnWorkers:
    """The workers of this process."""

    engine: Engine
    """Runs them. Its `fetched_bytes` also count those that come from other processes."""

    messages: MessageTraffic
    """Their messages to and from workers of others."""
