"""Turn the waits between instructions into waits between the threads that run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..programs.schedule import Waits
from .step_threads import Step, ThreadStep

Place = tuple[int, int]
"""A worker and the index of one of its instructions."""


@dataclass(frozen=True, slots=True)
class PlacedStep:
    """A step of an instruction. If it has several, others wait for the first one only."""

    place: Place
    step: Step
    others: tuple[Place, ...] = ()
    """Further instructions that the step runs."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Return all instructions that the step runs."""
        return self.place, *self.others


def thread_tasks(
    threads: Sequence[Sequence[PlacedStep]], waits: Sequence[Sequence[Waits]]
) -> list[list[ThreadStep]]:
    """Return the steps of every thread with the steps of other threads that each waits for.

    `waits` are those of a schedule. A wait that follows from an earlier one of the same thread is left out.
    """
    position: dict[Place, tuple[int, int]] = {}
    for thread, steps in enumerate(threads):
        for number, each in enumerate(steps):
            for place in each.places:
                position.setdefault(place, (thread, number))
    tasks: list[list[ThreadStep]] = []
    for thread, steps in enumerate(threads):
        known = [0] * len(threads)
        own: list[ThreadStep] = []
        for each in steps:
            needed: dict[int, int] = {}
            for wait in (wait for worker, index in each.places for wait in waits[worker][index]):
                other, number = position[wait]
                if other != thread and number + 1 > max(known[other], needed.get(other, 0)):
                    needed[other] = number + 1
            for other, count in needed.items():
                known[other] = count
            own.append(ThreadStep(each.step, tuple(needed.items())))
        tasks.append(own)
    return tasks
