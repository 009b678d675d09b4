"""Which of a machine's workers runs each worker of the programs, and where its memory lies.

Alone they are the same. In one of several processes, a machine has the workers of this process and one more,
whose stream packs and moves messages. Stand-ins of other processes have that stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .machine import CudaMachine


@dataclass(frozen=True, slots=True)
class Seats:
    """The machine's worker for each worker of the programs."""

    numbers: Sequence[int | None]
    """The number of the machine's worker; None for workers of other processes, which have no instructions."""

    local: Sequence[int]
    """The workers of this process."""

    on_host: frozenset[int] = frozenset()
    """The workers whose memory is that of the host, which all cards reach."""

    @classmethod
    def alone(cls, workers: int) -> Seats:
        """Return the seats of a process that runs all workers."""
        return cls(range(workers), range(workers))

    @classmethod
    def among(cls, workers: int, local: Sequence[int], stand_ins: Sequence[int], on_host: bool) -> Seats:
        """Return the seats of one of several processes.

        `workers` is the number of all, and stand-ins are numbered after them. Memory of stand-ins lies on the
        host, or on the card of the first local worker.
        """
        own = {worker: number for number, worker in enumerate(local)}
        numbers = [own.get(worker) for worker in range(workers)] + [len(local)] * len(stand_ins)
        return cls(numbers, local, frozenset(stand_ins if on_host else ()))

    def number(self, worker: int) -> int:
        """Return the machine's worker for a worker that has instructions."""
        found = self.numbers[worker]
        assert found is not None, "workers of other processes have no instructions"
        return found

    def reaches(self, machine: CudaMachine, worker: int, other: int) -> bool:
        """Tell whether a worker's kernels can read another worker's memory."""
        return other in self.on_host or machine.reaches(self.number(worker), self.number(other))
