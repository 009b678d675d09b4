"""The jobs of one iteration, and the instruction that each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .jobs import Jobs


class JobKind(IntEnum):
    COMPUTE = 0
    """a kernel"""
    BEGIN = 1
    """the start of a transfer"""
    MESSAGE = 2
    """bytes on their way from another worker"""
    FINISH = 3
    """pieces copied, or terms combined, after the messages"""
    WAKE = 4
    """a thread learns that what it waits for elsewhere has ended"""


@dataclass(frozen=True, slots=True)
class IterationJobs:
    """The jobs of one iteration, in the order of the clock."""

    jobs: Jobs
    """The jobs."""

    kinds: Sequence[int]
    """The JobKind of each job."""

    instructions: Sequence[int]
    """The instruction that each job belongs to, numbered in the order of the clock."""

    workers: Sequence[int]
    """The worker of each instruction."""

    operations: Sequence[int]
    """The operation of each instruction."""

    sources: Sequence[int]
    """The worker that each message comes from, in the order of the jobs."""

    nbytes: Sequence[int]
    """The bytes of each message, likewise."""
