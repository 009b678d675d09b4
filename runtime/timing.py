"""Measure an iteration, instruction by instruction: the time of a processor, or of cards."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time

from ..programs.program import Compute, PartitionedGraph
from .collectives import Step


class StepSeconds:
    """Seconds of a processor or a card that every instruction of every worker took in the last iteration."""

    def __init__(self, partitioned: PartitionedGraph) -> None:
        self._partitioned = partitioned
        self.seconds = [[0.0] * len(program.instructions) for program in partitioned.programs]
        """`seconds[worker][index]`: the time of an instruction."""

    def timed(self, worker: int, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Wrap a worker's steps to measure each by the clock of the thread that runs it."""
        return tuple(self._timed(self.seconds[worker], index, step) for index, step in enumerate(steps))

    def timed_messages(self, worker: int, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the steps of another process's stand-in, whose messages are not measured."""
        return steps

    def record(self, worker: int, index: int, seconds: float) -> None:
        """Record the time of one instruction, measured elsewhere."""
        self.seconds[worker][index] = seconds

    def by_operator(self) -> dict[str, float]:
        """Sum the seconds of all workers by operator, `MultiFetch` or `Reduce`; largest first."""
        totals: dict[str, float] = {}
        for program, seconds in zip(self._partitioned.programs, self.seconds, strict=True):
            for instruction, taken in zip(program.instructions, seconds, strict=True):
                name = type(instruction).__name__
                if isinstance(instruction, Compute):
                    name = self._partitioned.graph.operations[instruction.operation].bound.description.name
                totals[name] = totals.get(name, 0.0) + taken
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    @staticmethod
    def _timed(seconds: list[float], index: int, step: Step) -> Step:
        def run() -> None:
            started = thread_time()
            step()
            seconds[index] = thread_time() - started

        return run
