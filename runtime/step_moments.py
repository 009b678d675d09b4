"""Measure when every instruction of an iteration begins and ends, by the clock on the wall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from ..programs.program import PartitionedGraph
from .collectives import Step
from .timing import StepSeconds

Clock = Callable[[], float]


class StepMoments(StepSeconds):
    """When each instruction of every worker began and ended in the last iteration."""

    def __init__(self, partitioned: PartitionedGraph, clock: Clock = perf_counter) -> None:
        super().__init__(partitioned)
        self._clock = clock
        self.moments = [[(0.0, 0.0)] * len(program.instructions) for program in partitioned.programs]
        """`moments[worker][index]`: the beginning and the end, in seconds."""

    def timed(self, worker: int, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Wrap a worker's steps to note when each begins and ends."""
        moments, clock = self.moments[worker], self._clock

        def wrapped(index: int, step: Step) -> Step:
            def run() -> None:
                begin = clock()
                step()
                moments[index] = (begin, clock())

            return run

        return tuple(wrapped(index, step) for index, step in enumerate(steps))
