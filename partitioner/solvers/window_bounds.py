"""Close in on a reweighted problem's least cost, between a rising bound and the best known assignment.

The order of the variables is cut into windows. For a window W, let

    least(W) = min over assignments of W of (unary costs in W + tables within W)

All costs are at least zero, so the least costs of disjoint windows add up to a lower bound. Windows double in
length: the bound of the later half limits the part of the budget that an earlier state may spend, as in
Russian doll search (Verfaillie, Lemaitre and Schiex, 1996). A window's budget grows until it holds an
assignment or too many states. The last window holds all variables; its least cost is the optimum.

Implemented in: `windows` (the cut), `Window.bound` (sums of disjoint windows), `WindowBounds._raise`
(budgets), `bounded_search` (least(W) within a budget).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .bounded_search import BoundedSearch, Search, StateLimitError
from .message_passing import Reweighted

LEAF = 40
"""The largest number of variables of the shortest windows."""

STATE_LIMITS = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
"""The number of states that a search may keep; the first searches keep few and close most of the gap."""

FIRST_STEP = 1e-4
"""The amount by which the first budget exceeds the bound, as a fraction of the whole cost."""

GROWTH = 1.5
"""The factor between successive increases of a budget."""


@dataclass(slots=True)
class Window:
    """A run of variables with a bound on their costs."""

    first: int
    """The first variable."""

    end: int
    """The variable after the last one."""

    halves: tuple[Window, ...]
    """The two halves of the window; none if it is short."""

    proven: float = 0.0
    """A lower bound on the sum of the variables' costs."""

    settled: bool = False
    """Whether this bound is their least cost."""

    def bound(self) -> float:
        """Return the best bound for all variables, from this window or its halves."""
        return max(self.proven, sum(half.bound() for half in self.halves))

    def after(self, variable: int) -> float:
        """Return the bound for this window's variables after this one."""
        if variable < self.first:
            return self.bound()
        if variable >= self.end - 1:
            return 0.0
        return sum(half.after(variable) for half in self.halves)

    def outside(self, first: int, end: int) -> float:
        """Return the bound for this window's variables outside of a window within it."""
        if end <= self.first or self.end <= first:
            return self.bound()
        return sum(half.outside(first, end) for half in self.halves)

    def smallest_first(self) -> Iterator[Window]:
        for half in self.halves:
            yield from half.smallest_first()
        yield self


def windows(first: int, end: int) -> Window:
    """Return the window of these variables, halved until none is longer than `LEAF`."""
    if end - first <= LEAF:
        return Window(first, end, ())
    middle = (first + end) // 2
    return Window(first, end, (windows(first, middle), windows(middle, end)))


@dataclass(slots=True)
class WindowBounds:
    """Proves that no assignment of a problem costs less than `best`, or finds the best that does.

    After `run`, `bound` is the proven lower bound. If `closed`, it equals the cost of the best assignment.
    """

    problem: Reweighted
    """The problem."""

    best: float
    """The cost of the best assignment known, beyond the problem's bound."""

    assignment: tuple[int, ...] | None = None
    """An assignment that costs less than the initial `best`; None if none was found."""

    _root: Window = field(init=False)
    """The window of all variables."""

    _bounded: BoundedSearch = field(init=False)
    """The search within budgets, which counts the costs computed."""

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
        """Return the gap left times the work done so far: the less the better."""
        return (self.best - self.bound) * self._bounded.entries

    def run(self, state_limits: Sequence[int], entry_limit: int, report: Callable[[float], None]) -> None:
        """Raise the bound until the gap is closed or `entry_limit` costs were computed.

        `report` is called with the bound whenever it rises.
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
        """Return the window's least cost within the budget. For the whole problem, keep the assignment."""
        search = Search(window.first, window.end, budget, window.after, state_limit)
        if window is not self._root:
            return self._bounded.least_cost(search)
        found = self._bounded.assignment(search)
        if found is None:
            return None
        self.assignment = found
        self.best = self.problem.cost(found)
        return self.best
