"""A reweighted problem's least cost, between a bound that rises and a plan that is known.

The order of the variables is cut into windows. The least that the costs of a window can add up to is a
bound for that part of every assignment, and windows that do not overlap add up. Windows double in length:
what is proven of the later half says how much of a budget an earlier state may not spend, as in Russian
doll search (Verfaillie, Lemaitre and Schiex, 1996). A window's budget grows until it holds an assignment
or too many states. The last window holds everything; its least cost is the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .bounded_search import BoundedSearch, Search, StateLimitError
from .message_passing import Reweighted

LEAF = 40
"""Variables of the shortest windows, at most."""

STATE_LIMITS = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
"""States that a search may keep at once; searches begin with few, which finds most of the gap at once."""

FIRST_STEP = 1e-4
"""By how much a budget first exceeds what is proven, as a part of the whole cost."""

GROWTH = 1.5
"""How much larger every further step of a budget is."""


@dataclass(slots=True)
class Window:
    """Variables `first` to `end - 1`; `proven` is the least that their costs are known to add up to.

    `settled` says that this is their least cost, not only a bound.
    """

    first: int
    end: int
    halves: tuple[Window, ...]
    proven: float = 0.0
    settled: bool = False

    def bound(self) -> float:
        """The best that is known of all variables, from this window or its halves."""
        return max(self.proven, sum(half.bound() for half in self.halves))

    def after(self, variable: int) -> float:
        """What is known of this window's variables after this one."""
        if variable < self.first:
            return self.bound()
        if variable >= self.end - 1:
            return 0.0
        return sum(half.after(variable) for half in self.halves)

    def outside(self, first: int, end: int) -> float:
        """What is known of the variables outside of a window within this one."""
        if end <= self.first or self.end <= first:
            return self.bound()
        return sum(half.outside(first, end) for half in self.halves)

    def smallest_first(self) -> Iterator[Window]:
        for half in self.halves:
            yield from half.smallest_first()
        yield self


def windows(first: int, end: int) -> Window:
    """The window of these variables, halved until none is longer than `LEAF`."""
    if end - first <= LEAF:
        return Window(first, end, ())
    middle = (first + end) // 2
    return Window(first, end, (windows(first, middle), windows(middle, end)))


@dataclass(slots=True)
class WindowBounds:
    """Proves of a problem that no assignment costs less than `best`, or finds the best that does.

    After `run`, `bound` is what is proven, at most the cost of the best assignment; it is that cost where
    `closed`. `assignment` is one that costs less than `best` did, if there is one.
    """

    problem: Reweighted
    best: float
    assignment: tuple[int, ...] | None = None
    _root: Window = field(init=False)
    _bounded: BoundedSearch = field(init=False)

    def __post_init__(self) -> None:
        self._root = windows(0, len(self.problem.domains))
        self._bounded = BoundedSearch(self.problem)

    @property
    def bound(self) -> float:
        return min(self._root.bound(), self.best)

    @property
    def closed(self) -> bool:
        return self._root.bound() >= self.best

    @property
    def promise(self) -> float:
        """The gap left times the work done so far: the less the better."""
        return (self.best - self.bound) * self._bounded.entries

    def run(self, state_limits: Sequence[int], entry_limit: int, report: Callable[[float], None]) -> None:
        """Raise the bound until the gap is closed or `entry_limit` costs were computed.

        `report` is told the bound whenever it rises.
        """
        for state_limit in state_limits:
            for window in self._root.smallest_first():
                before = self.bound
                self._raise(window, state_limit, entry_limit)
                if self.bound > before:
                    report(self.bound)
                if self.closed or self._bounded.entries > entry_limit:
                    return

    def _raise(self, window: Window, state_limit: int, entry_limit: int) -> None:
        """Let a window's budget grow until the least cost within it is found, or too many states are."""
        window.proven = window.bound()
        step = FIRST_STEP * (self.problem.bound + self.best)
        while not window.settled and self._bounded.entries <= entry_limit:
            enough = self.best - 1 - self._root.outside(window.first, window.end)
            budget = min(float(int(window.proven + step)), enough)
            try:
                found = self._search(window, budget, state_limit)
            except StateLimitError:
                return
            if found is not None:
                window.proven, window.settled = found, True
            elif budget == enough:
                self._root.proven = self.best
                return
            else:
                window.proven = budget + 1
                step *= GROWTH

    def _search(self, window: Window, budget: float, state_limit: int) -> float | None:
        """The window's least cost within the budget. Of the whole, the assignment is kept."""
        search = Search(window.first, window.end, budget, window.after, state_limit)
        if window is not self._root:
            return self._bounded.least_cost(search)
        found = self._bounded.assignment(search)
        if found is None:
            return None
        self.assignment = found
        self.best = self.problem.cost(found)
        return self.best
