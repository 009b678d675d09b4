"""The speed of a run, and the time that is left."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..runtime.progress import Progress

LATEST = 50


@dataclass(slots=True)
class Pace:
    """The pace of the latest iterations, evaluation left out; nothing is known before the first."""

    _latest: deque[Progress] = field(default_factory=lambda: deque(maxlen=LATEST))

    def add(self, step: Progress) -> None:
        self._latest.append(step)

    @property
    def samples_per_second(self) -> float:
        seconds = sum(step.seconds for step in self._latest)
        return sum(step.samples for step in self._latest) / seconds if seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """The time of the iterations that are left, at this pace."""
        if not self._latest:
            return 0.0
        newest = self._latest[-1]
        mean = sum(step.seconds for step in self._latest) / len(self._latest)
        return (newest.steps - newest.step) * mean
