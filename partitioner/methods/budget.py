"""The seconds of a random search, and what its watch is told."""

from __future__ import annotations

import time

from ...errors import PlanError
from ...simulator.times import NANOSECONDS
from ...support.checked_argument import require
from ..plans.sampling import Sampling
from .simulated import SearchProgress, Watch

_OFTEN = 0.1
"""The seconds between two reports without a better plan."""


class Budget:
    """The budget of a search, which begins when this is made."""

    def __init__(self, sampling: Sampling, watch: Watch | None) -> None:
        self.sampling = sampling
        """The seed and the budget."""
        require(watch is None or callable(watch), watch, "watch", "a function", PlanError)
        self._watch = watch
        self._begin = self._shown = time.perf_counter()
        self._best: int | None = None
        self._at = 0, 0, 0, 0.0
        """The chain, the chains, and the proposals so far, in all and per second."""

    @property
    def left(self) -> float | None:
        """Return the seconds that are left; None without a limit."""
        seconds = self.sampling.seconds
        return None if seconds is None else max(self._begin + seconds - time.perf_counter(), 0.0)

    @property
    def spent(self) -> bool:
        """Tell whether no seconds are left."""
        return self.left == 0.0

    def show(
        self, found: int, chain: int = 0, chains: int = 0, proposals: int = 0, per_second: float = 0.0
    ) -> None:
        """Tell the watch the progress, if `found`, in nanoseconds, is less than all before.

        Otherwise the watch is told ten times a second. Between chains, progress is that of the last one.
        """
        if chain:
            self._at = chain, chains, proposals, per_second
        better = self._best is None or found < self._best
        if better:
            self._best = found
        if self._watch is None or self._best is None:
            return
        now = time.perf_counter()
        if better or now - self._shown >= _OFTEN:
            self._shown = now
            self._watch(SearchProgress(self._best / NANOSECONDS, *self._at))
