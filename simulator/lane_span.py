"""Spans of time in which lanes are occupied."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """The time in which a lane is occupied by one computation, transfer or message."""

    kind: str
    """`compute`, `transfer` or `message`."""

    operation: str
    """The name of the operation that computes, or for which bytes move."""

    worker: int
    """The worker that computes, or that reads."""

    start_nanoseconds: int
    """When it starts."""

    end_nanoseconds: int
    """When it ends."""

    source: int
    """The worker that a message comes from; `worker` itself for others."""

    nbytes: int
    """The bytes that come from other workers; 0 for a computation."""
