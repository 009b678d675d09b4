"""Search exactly along an order of the variables, keeping only states that may belong to a cheap assignment.

    given     a reweighted problem, variables first to end - 1, a budget
    wanted    the least cost of assignments of these variables, if it is within the budget

After some variables, a state holds the values of the open ones, which have a neighbour still to come, and the
least cost c(state) that leads to it. A state with

    c(state) + rest(variable) > budget

belongs to no assignment within the budget and is dropped. If the costs are well shifted, few states stay.
This is dynamic programming with a bound, as A* is shortest paths with a bound.

Assumes: all costs are at least zero (see `message_passing`), and `rest` is a lower bound on the costs of the
later variables. Guarantees: a result within the budget is the least, and None proves that everything costs
more. With a beam, which drops states within the budget, neither holds. Implemented in:
`BoundedSearch.least_cost`, `marginals` (for every choice of some variables), `assignment`, `_take` (one
variable).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import SolverLimitError
from .message_passing import Reweighted
from .min_plus import compiled_loops
from .pairwise import Costs

Values = npt.NDArray[np.int16]
Rows = npt.NDArray[np.int32]

Extensions = tuple[Rows, Values, Costs]
"""The states that are extended, the values of the variable that they take, and the costs."""

Joined = Sequence[tuple[int, Costs]]
"""The tables of a variable by the column of the states that they read."""

CHUNK = 1 << 11
"""The number of states that are extended at a time, so that their data stay in the cache."""

STATES_A_ROW = 4
"""A table is sorted for this number of states for each of its rows."""

SURPLUS = 8
"""A beam keeps `SURPLUS * beam` extensions before merging, because some lead to the same state."""

KEY_LIMIT = 1 << 62
"""States are compared by one number below this limit, or by several numbers if one does not suffice."""


class StateLimitError(SolverLimitError):
    """The budget admits more states than the limit."""


@dataclass(frozen=True, slots=True)
class States:
    """The states after some variables."""

    open: tuple[int, ...]
    """The open variables."""

    values: Values
    """`values[s, i]`: the value of the i-th open variable in state `s`."""

    costs: Costs
    """`costs[s]`: the least cost that leads to state `s`."""


@dataclass(frozen=True, slots=True)
class Transition:
    """How each state after a step came about."""

    rows: Rows
    """The state before the step."""

    value: Values
    """The value of the variable that the step took."""


def nothing_certain(variable: int) -> float:
    """Return the trivial lower bound: zero."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """A request to search for assignments of variables `first` to `end - 1` within a budget."""

    first: int
    """The first variable."""

    end: int
    """The variable after the last one."""

    budget: float
    """The highest cost of the assignments that are searched for."""

    rest: Callable[[int], float] = nothing_certain
    """`rest(v)` is a lower bound on the sum of all costs after variable `v`."""

    state_limit: int = 1 << 22
    """More states than this raise StateLimitError."""

    beam: int | None = None
    """If given, only this number of the cheapest states stays after each variable."""

    kept: frozenset[int] = frozenset()
    """Variables that stay open to the end."""


class BoundedSearch:
    """Searches in one problem; `entries` counts the costs computed so far, a measure of the work done.

    `most` is the largest number of states that were kept at once.
    """

    def __init__(self, problem: Reweighted) -> None:
        self._problem = problem
        self._last = list(range(len(problem.domains)))
        self._earlier: list[list[int]] = [[] for _ in problem.domains]
        for a, b in problem.tables:
            self._last[a] = max(self._last[a], b)
            self._earlier[b].append(a)
        self._loops = compiled_loops(sum(table.size for table in problem.tables.values()))
        self.entries = 0
        self.most = 0

    def least_cost(self, search: Search) -> float | None:
        """Return the least sum of all costs of the variables; None if it exceeds the budget.

        The costs are the unary costs and the tables between the variables. Of a table with an earlier
        variable, the least entry for each value is counted.
        """
        states = _nothing_open()
        for variable in range(search.first, search.end):
            states, _ = self._take(states, variable, search)
            if not len(states.costs):
                return None
        return float(states.costs[0])

    def marginals(self, search: Search) -> States:
        """Return the least cost of every choice for the kept variables that is within the budget."""
        states = _nothing_open()
        for variable in range(search.first, search.end):
            states, _ = self._take(states, variable, search)
            if not len(states.costs):
                none = np.zeros((0, len(search.kept)), np.int16)
                return States(tuple(sorted(search.kept)), none, np.zeros(0))
        return states

    def assignment(self, search: Search) -> tuple[int, ...] | None:
        """Return the best assignment of the variables; None if there is none within the budget."""
        states, steps = _nothing_open(), []
        for variable in range(search.first, search.end):
            states, step = self._take(states, variable, search)
            if not len(states.costs):
                return None
            steps.append(step)
        return _read_back(steps)

    def _take(self, states: States, variable: int, search: Search) -> tuple[States, Transition]:
        """Extend all states by every value of a variable, and merge those that agree from here on."""
        closes = self._closed(variable, variable, search)
        rows, value, costs = self._extensions(states, variable, closes, search)
        if search.beam is not None and len(costs) > SURPLUS * search.beam:
            kept = np.sort(np.argpartition(costs, SURPLUS * search.beam)[: SURPLUS * search.beam])
            rows, value, costs = rows[kept], value[kept], costs[kept]
        opened, values = states.open, states.values[rows]
        if not closes:
            opened, values = (*opened, variable), np.concatenate((values, value[:, None]), axis=1)
        columns = [i for i, other in enumerate(opened) if not self._closed(other, variable, search)]
        if len(columns) < len(opened):
            opened, values = tuple(opened[i] for i in columns), values[:, columns]
            best = _cheapest(values, [self._problem.domains[v] for v in opened], costs, self._loops)
            rows, value, values, costs = rows[best], value[best], values[best], costs[best]
        if search.beam is not None and len(costs) > search.beam:
            kept = np.sort(np.argsort(costs, kind="stable")[: search.beam])
            rows, value, values, costs = rows[kept], value[kept], values[kept], costs[kept]
        self.most = max(self.most, len(costs))
        return States(opened, values, costs), Transition(rows, value)

    def _closed(self, variable: int, after: int, search: Search) -> bool:
        """Tell whether a variable has no neighbours left after variable `after` of a search."""
        return variable not in search.kept and min(self._last[variable], search.end - 1) <= after

    def _extensions(self, states: States, variable: int, closes: bool, search: Search) -> Extensions:
        """States, values and costs within the budget; of a variable that closes at once the best value."""
        own, joined = self._terms(states, variable, search.first)
        budget = search.budget - search.rest(variable)
        limit = search.state_limit if search.beam is None else states.costs.size * own.size
        extend = self._extended if self._loops is None else self._compiled
        found, extended = extend(states, own, joined, budget, closes, limit)
        self.entries += min(-(-extended // CHUNK) * CHUNK, len(states.costs)) * own.size
        if len(found[0]) > limit:
            raise StateLimitError(f"the budget admits more than {limit} states")
        return found

    def _extended(
        self, states: States, own: Costs, joined: Joined, budget: float, closes: bool, limit: int
    ) -> tuple[Extensions, int]:
        """Extend chunks of states, until there are more than `limit`; also return the number of states."""
        found: list[Extensions] = []
        count = end = 0
        while end < len(states.costs) and count <= limit:
            start, end = end, min(end + CHUNK, len(states.costs))
            costs = states.costs[start:end, None] + own
            for column, table in joined:
                costs += table.take(states.values[start:end, column], axis=0)
            if closes:
                best = costs.argmin(axis=1)
                least = costs[np.arange(len(costs)), best]
                row = np.flatnonzero(least <= budget)
                value, least = best[row], least[row]
            else:
                place = np.flatnonzero(costs <= budget)
                row = place // costs.shape[1]
                value, least = place - row * costs.shape[1], costs.ravel()[place]
            found.append(((row + start).astype(np.int32), value.astype(np.int16), least))
            count += len(row)
        rows, values, kept = zip(*found, strict=True)
        return (np.concatenate(rows), np.concatenate(values), np.concatenate(kept)), end

    def _compiled(
        self, states: States, own: Costs, joined: Joined, budget: float, closes: bool, limit: int
    ) -> tuple[Extensions, int]:
        """Do what `_extended` does, state by state."""
        domain = own.size
        room = min(len(states.costs) * (1 if closes else domain), limit) + domain
        found = np.empty(room, np.int32), np.empty(room, np.int16), np.empty(room)
        sizes = [table.size for _, table in joined]
        leading = _leading(states, own, joined, budget)
        ascending, ranked = np.zeros((1, domain)), np.zeros((1, domain), np.int64)
        if leading >= 0:
            first = own + joined[leading][1]
            ranked = first.argsort(axis=1)
            ascending = np.take_along_axis(first, ranked, axis=1)
        count, extended = self._loops.extend(
            states.costs,
            own,
            states.values,
            np.array([column for column, _ in joined], np.int64),
            np.concatenate([np.zeros(0), *[table.ravel() for _, table in joined]]),
            np.cumsum([0, *sizes]),
            leading,
            ascending,
            ranked,
            budget,
            closes,
            limit,
            found,
        )
        rows, values, kept = found
        return (rows[:count].copy(), values[:count].copy(), kept[:count].copy()), extended

    def _terms(self, states: States, variable: int, first: int) -> tuple[Costs, Joined]:
        """Return the costs of a variable alone, and its tables by the column of the state that they read."""
        tables = self._problem.tables
        own, joined = self._problem.unary[variable], []
        for other in self._earlier[variable]:
            if other < first:
                own = own + tables[other, variable].min(axis=0)
            else:
                joined.append((states.open.index(other), tables[other, variable]))
        return own, joined


def _leading(states: States, own: Costs, joined: Joined, budget: float) -> int:
    """Return the place of the table that leaves the fewest values within the budget.

    It is -1 if there are too few states for sorting any table.
    """
    left = budget - states.costs.mean()
    places = [n for n, (_, table) in enumerate(joined) if STATES_A_ROW * len(table) <= len(states.costs)]
    return min(
        places, key=lambda n: np.count_nonzero(own + joined[n][1] <= left) / joined[n][1].size, default=-1
    )


def _nothing_open() -> States:
    return States((), np.zeros((1, 0), np.int16), np.zeros(1))


def _cheapest(
    values: Values, domains: Sequence[int], costs: Costs, loops: Any
) -> npt.NDArray[np.integer[Any]]:
    """Select one row of every set of equal rows, the first of the cheapest, in the order of their values."""
    keys: list[npt.NDArray[np.int64]] = []
    room = 0
    for column, domain in enumerate(domains):
        if room < domain:
            keys.append(np.zeros(len(values), np.int64))
            room = KEY_LIMIT
        keys[-1] = keys[-1] * domain + values[:, column]
        room //= domain
    if not keys:
        return np.array([costs.argmin()] if len(costs) else [], np.intp)
    if loops is not None and len(keys) == 1:
        bits = len(costs).bit_length() + 1
        slots = np.full(1 << bits, -1, np.int32)
        loops.cheapest(keys[0], costs, slots, bits)
        best = slots[slots >= 0]
        return best[keys[0][best].argsort()]
    order = np.lexsort((costs, *keys))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    found: npt.NDArray[np.intp] = order[first]
    return found


def _read_back(steps: Sequence[Transition]) -> tuple[int, ...]:
    row = 0
    assignment = []
    for step in reversed(steps):
        assignment.append(int(step.value[row]))
        row = int(step.rows[row])
    return tuple(reversed(assignment))
