"""The progress of an anytime search: the cost of the best plan and the bound, closing in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from rich.console import Console
from rich.status import Status

from ..partitioner.methods.simulated import SearchProgress
from ..support.wording import counted
from .console import on_terminal, wide_console
from .units import format_bytes, format_seconds

PICOSECOND = 1e-12
LEAST_CHANGE = 0.001
"""If there is no terminal, a line is written when the gap has closed by this part of the cost."""


class _Line:
    """A line of a terminal that changes, on standard error; `_status` is None elsewhere."""

    def __init__(self, console: Console | None = None, what: str = "searching") -> None:
        self._console = console or wide_console(stderr=True)
        self._what = what
        self._status: Status | None = None

    def __enter__(self) -> Self:
        context: AbstractContextManager[Status | None] = nullcontext()
        if on_terminal(self._console):
            context = self._console.status(self._what)
        self._context = context
        self._status = context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def trying(self, workers: int) -> None:
        """Say for how many workers a plan is searched now, if their fewest number is asked for."""
        text = f"{self._what} over {counted(workers, 'worker')}"
        if self._status is not None:
            self._status.update(text)
        else:
            self._console.print(text, soft_wrap=True)


class BoundsLine(_Line):
    """Two bounds on one line of a terminal; lines elsewhere. Writes to standard error.

    Enter it before the search, and hand it to the search as its report. `show` puts a cost in words, `what`
    is said on a terminal as long as there are no bounds.
    """

    def __init__(
        self,
        console: Console | None = None,
        show: Callable[[int], str] = format_bytes,
        what: str = "searching",
    ) -> None:
        super().__init__(console, what)
        self._show = show
        self._shown = 2.0

    def trying(self, workers: int) -> None:
        """Say for how many workers a plan is searched now, and show its bounds from the first ones on."""
        super().trying(workers)
        self._shown = 2.0

    def __call__(self, cost: int, lower_bound: int) -> None:
        gap = (cost - lower_bound) / cost if cost else 0.0
        text = f"found {self._show(cost)}, proven of this space {self._show(lower_bound)}, gap {gap:.2%}"
        if self._status is not None:
            self._status.update(text)
        elif self._shown - gap >= LEAST_CHANGE or (gap == 0 and self._shown > 0):
            self._shown = gap
            self._console.print(text, soft_wrap=True)


class SearchLine(_Line):
    """The best time of a random search and its speed, on one line of a terminal; not elsewhere.

    Enter it before the search, and hand it to the search as its watch.
    """

    def __call__(self, progress: SearchProgress) -> None:
        if self._status is not None:
            best = f"best plan {format_seconds(progress.seconds)}"
            chain = (
                f"chain {progress.chain} of {progress.chains}, {counted(progress.proposals, 'proposal')}, "
                f"{progress.per_second:,.0f} per second"
            )
            self._status.update(f"{best}, {chain if progress.chain else 'planning starts'}")


def format_picoseconds(count: int) -> str:
    """Return the unit in which a search minimises the time of transfers."""
    return format_seconds(count * PICOSECOND)
