"""Tree-reweighted message passing (TRW-S; Kolmogorov, 2006): lower bounds of pairwise problems.

    given     constant + sum of unary[v][x[v]] + sum of tables[a, b][x[a], x[b]]       (`pairwise`)
    wanted    bound, unary', tables', the latter nowhere negative, such that for every assignment x
              bound + sum of unary'[v][x[v]] + sum of tables'[a, b][x[a], x[b]]  =  the given cost of x
              with a bound as large as possible

Costs are shifted between a variable and its tables so that the sum of minima rises. The sum of all costs
stays the same for every assignment, and no remaining cost is negative, so the constant that comes out is a
lower bound. A sweep takes the variables in order and back again. Implemented in: `MessagePassing.sweep` (the
messages), `MessagePassing.reweighted` (the equivalent problem).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .min_plus import compiled_loops
from .packed_messages import PackedMessages
from .pairwise import Costs, Pair, Pairwise, total, transposed

USUAL_SWEEPS = 64
"""About this many sweeps are made over a problem; it says whether compiled loops are worth it."""


@dataclass(frozen=True, slots=True)
class Reweighted:
    """A problem as `bound + sum of unary + sum of tables`, all of which are at least zero."""

    bound: int
    """A lower bound on the cost of every assignment."""

    domains: tuple[int, ...]
    """The number of values of each variable."""

    unary: tuple[Costs, ...]
    """For each variable, the cost of each value, `[values]`."""

    tables: Mapping[Pair, Costs]
    """For each pair of variables `a < b`, the cost of each pair of values, `[values of a, values of b]`. For
    every value of `a` one entry is zero."""

    def cost(self, assignment: Sequence[int]) -> float:
        """Compute the cost of an assignment beyond the bound."""
        return total(self.unary, self.tables, assignment)

    def restricted(self, fixed: Mapping[int, int]) -> Reweighted:
        """Return the problem that is left if these variables have these values."""
        values = [slice(None)] * len(self.domains)
        for variable, value in fixed.items():
            values[variable] = slice(value, value + 1)
        return Reweighted(
            self.bound,
            tuple(1 if v in fixed else d for v, d in enumerate(self.domains)),
            tuple(costs[kept] for costs, kept in zip(self.unary, values, strict=True)),
            {(a, b): table[values[a], values[b]] for (a, b), table in self.tables.items()},
        )


class MessagePassing:
    """Messages between the variables of a problem, in the order of their numbers.

    `sent` are the first messages, such as the last ones of a problem with tables of the same pairs.
    """

    def __init__(self, problem: Pairwise, sent: Mapping[Pair, Costs] | None = None) -> None:
        self._problem = problem
        neighbours = problem.neighbours()
        self._later = [[o for o in others if o > v] for v, others in enumerate(neighbours)]
        self._earlier = [[o for o in others if o < v] for v, others in enumerate(neighbours)]
        self._tables = {**problem.tables, **transposed(problem.tables)}
        self.sent = {pair: np.zeros(problem.domains[pair[1]]) for pair in self._tables}
        self.sent.update({pair: message.copy() for pair, message in (sent or {}).items()})
        self._packed: PackedMessages | None = None
        loops = compiled_loops(USUAL_SWEEPS * sum(table.size for table in self._tables.values()))
        if loops is not None:
            self._packed = PackedMessages(loops, problem.unary, self._tables, self.sent)
        self._room = {table.shape: np.empty(table.shape) for table in self._tables.values()}

    def sweep(self) -> int:
        """Update all variables in order, then all in reverse order. Returns the bound."""
        bound, last = self._problem.constant, len(self._problem.domains) - 1
        if self._packed is not None:
            return int(bound + self._packed.sweep())
        for variable in range(last + 1):
            self._send(variable, self._later[variable])
        for variable in range(last, -1, -1):
            bound += self._send(variable, self._earlier[variable])
        return int(bound)

    def marginals(self) -> list[Costs]:
        """Return, for every variable, what each value costs beyond the best one, next to the messages.

        This tells which values are likely, and proves nothing.
        """
        found = []
        for variable, costs in enumerate(self._problem.unary):
            for other in (*self._earlier[variable], *self._later[variable]):
                costs = costs + self.sent[other, variable]
            found.append(costs - costs.min())
        return found

    def reweighted(self, backwards: bool = False) -> Reweighted:
        """Return the problem after one more sweep; `backwards`, with its variables in the opposite order."""
        last = len(self._problem.domains) - 1
        ahead, back = (self._earlier, self._later) if backwards else (self._later, self._earlier)
        order = range(last, -1, -1) if backwards else range(last + 1)
        for variable in order:
            self._send(variable, ahead[variable])
        bound = self._problem.constant
        unary = [np.zeros(0)] * (last + 1)
        tables: dict[Pair, Costs] = {}
        for place, variable in reversed(list(enumerate(order))):
            left: dict[int, Costs] = {}
            bound += self._send(variable, back[variable], left)
            unary[place] = left.pop(variable)
            for other, table in left.items():
                tables[last - other if backwards else other, place] = table
        domains = self._problem.domains
        return Reweighted(
            int(bound),
            domains[::-1] if backwards else domains,
            tuple(unary),
            dict(sorted(tables.items())),
        )

    def _send(self, variable: int, targets: list[int], left: dict[int, Costs] | None = None) -> float:
        """Send messages from a variable to its targets; return the constant that comes out.

        `left` receives the rest of the tables with its targets, `[target's value, own value]`, and the rest
        of its own costs.
        """
        messages = self.sent
        costs = self._problem.unary[variable]
        for other in (*self._earlier[variable], *self._later[variable]):
            costs = costs + messages[other, variable]
        constant = np.minimum.reduce(costs)
        costs = costs - constant
        chains = max(len(self._earlier[variable]), len(self._later[variable]), 1)
        share = np.floor(costs / chains)
        for target in targets:
            given = self._tables[variable, target]
            table = self._room[given.shape] if left is None else np.empty_like(given)
            np.add((share - messages[target, variable])[:, None], given, out=table)
            least = np.minimum.reduce(table, axis=0)
            common = np.minimum.reduce(least)
            np.subtract(least, common, out=messages[variable, target])
            constant += common
            if left is not None:
                left[target] = np.ascontiguousarray((table - least).T)
        if left is not None:
            left[variable] = costs - len(targets) * share
        return float(constant)
