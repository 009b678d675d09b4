"""Exact optimisation over a factor graph by variable elimination.

    variables    x[v] in 0 .. domains[v] - 1
    objective    the least, over all x, of the sum of cost_table.table[x[v] for v in cost_table.scope]
    constraints  x[v] = evidence[v] if evidence is given

`sum` and `least` may be those of another semiring (`semiring`). Eliminating a variable combines every table
that it occurs in and projects the variable out, which leaves one table over its neighbours; the
optimum is what remains when no variable is left (`solve`), and the assignment is read back in reverse
(`_read_back`). Where an entry has several parts, as frontiers do, an assignment is read back for each of them
(`Unrolling`). This is the general form of the dynamic programs of Tofu, section 5.1, and of the node, edge
and branch eliminations and the linear dynamic program of TensorOpt, section 3.2.

Cost: one table per variable, of the product of its neighbours' domains at that moment. Graphs like a
chain of layers keep that product bounded, so the whole is near-linear in the number of variables. Where a
graph repeats itself, equal parts are combined once: tables are compared by identity, so cost tables that
share one array are recognised, and so is whatever follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

from .elimination_order import NO_PLACE, EliminationOrder, elimination_order
from .errors import SolverError
from .min_plus import MIN_PLUS
from .semiring import Parts, Scope, Table, TableArithmetic, Trace

TABLE_LIMIT = 1 << 24
"""The largest number of entries of a combined table; the table that stays is smaller by one domain."""


class CostTable(NamedTuple):
    """A table over distinct variables."""

    scope: Scope
    """The variables."""

    table: Table
    """`[domain of scope[0], domain of scope[1], ...]`."""


@dataclass(frozen=True, slots=True)
class Elimination:
    """The result of an elimination."""

    optimum: Any
    """The least sum."""

    assignment: tuple[int, ...]
    """One assignment that attains it."""

    largest_table: int
    """The number of entries of the largest table that was built."""


class Joined(NamedTuple):
    """A message that became a table, or was multiplied with one."""

    before: Table | None
    """The table before; None if there was none."""

    message: Table
    """The message."""

    variable: int
    """The variable whose message it is."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The tables that each variable was eliminated from."""

    optimum: Any
    """The least sum."""

    fixed: tuple[int | None, ...]
    """The value of each variable that had no choice; None for the others."""

    eliminated: tuple[tuple[int, Mapping[Scope, Table]], ...]
    """The other variables, in their order, and their tables, whose other variables come later.

    Given the values of those, entries for a variable's values differ by as much as the least sums of all do.
    """


@dataclass(frozen=True, slots=True)
class Unrolling:
    """An elimination in a semiring whose entries have parts, of which each has an assignment."""

    optimum: Table | None
    """The table without axes that is left; None if there were no tables."""

    largest_table: int
    """The number of entries of the largest table that was built."""

    assignment: Callable[[Table], tuple[int, ...]]
    """Returns an assignment that attains a part of the optimum."""


def eliminate(
    domains: Sequence[int],
    cost_tables: Iterable[CostTable],
    *,
    evidence: Mapping[int, int] | None = None,
    arithmetic: TableArithmetic | None = None,
    table_limit: int = TABLE_LIMIT,
) -> Elimination:
    """Solve `min over assignments of the sum of cost tables` (or its like in another semiring) exactly.

    Without `arithmetic` the semiring is (min, +).

    `domains[v]` is the number of values of variable `v`, `evidence[v]` fixes it to one of them. Variables
    without tables take value 0. The same input gives the same assignment, ties included.

    Raises SolverError if a domain is empty or a table does not fit its variables, and WidthError if a table
    would have more than `table_limit` entries.
    """
    graph = _FactorGraph(domains, evidence or {}, arithmetic or TableArithmetic(MIN_PLUS))
    graph.insert(cost_tables)
    return graph.solve(table_limit)


def unroll(
    domains: Sequence[int], cost_tables: Iterable[CostTable], arithmetic: TableArithmetic, table_limit: int
) -> Unrolling:
    """Eliminate all variables, in a semiring whose entries have parts. Raises what `eliminate` raises."""
    graph = _FactorGraph(domains, {}, arithmetic)
    graph.insert(cost_tables)
    return graph.unroll(table_limit)


def buckets(domains: Sequence[int], cost_tables: Iterable[CostTable], table_limit: int) -> Buckets:
    """Eliminate all variables by (min, +). Raises what `eliminate` raises."""
    graph = _FactorGraph(domains, {}, TableArithmetic(MIN_PLUS))
    graph.insert(cost_tables)
    return graph.buckets(table_limit)


class _FactorGraph:
    """Tables by scope: scopes ascend, hold no fixed variable, and occur once each.

    `_at` are the tables by place, once variables are eliminated. The optimum is the product of `_constant`
    and of the table at `NO_PLACE`, which has the messages over no variable if they are traced.
    """

    def __init__(
        self, domains: Sequence[int], evidence: Mapping[int, int], arithmetic: TableArithmetic
    ) -> None:
        for variable, domain in enumerate(domains):
            if domain < 1:
                raise SolverError(f"variable {variable} has no value to choose from")
        for variable, value in evidence.items():
            if not 0 <= variable < len(domains):
                raise SolverError(
                    f"evidence for variable {variable}, but variables are numbered 0 to {len(domains) - 1}"
                )
            if not 0 <= value < domains[variable]:
                raise SolverError(
                    f"evidence {value} for variable {variable}, whose values are 0 to {domains[variable] - 1}"
                )
        self._domains = tuple(domains)
        self._arithmetic = arithmetic
        self._fixed: list[int | None] = [0 if domain == 1 else None for domain in domains]
        for variable, value in evidence.items():
            self._fixed[variable] = value
        self._tables: dict[Scope, Table] = {}
        self._at: dict[int, Table] = {}
        self._constant: Table | None = None
        self._taken_out: dict[int, Table] = {}
        self._joined: dict[int, list[Joined]] = {}

    def insert(self, cost_tables: Iterable[CostTable]) -> None:
        """Add the caller's tables: apply evidence and sort scopes. Most are over pairs in order."""
        domains, fixed, select = self._domains, self._fixed, self._arithmetic.select
        for cost_table in cost_tables:
            scope, table = cost_table
            if len(scope) != 2 or not 0 <= scope[0] < scope[1] < len(domains):
                self._insert(scope, table)
                continue
            first, second = scope
            if table.shape != (domains[first], domains[second]):
                raise self._misfit(scope, table)
            values = fixed[first], fixed[second]
            match values:
                case None, None:
                    self._insert_sorted(scope, table)
                case None, _:
                    self._insert_sorted((first,), select(table, values, (0,)))
                case _, None:
                    self._insert_sorted((second,), select(table, values, (0,)))
                case _:
                    self._insert_sorted((), select(table, values, ()))

    def _insert(self, scope: Scope, table: Table) -> None:
        """Add a table over any variables."""
        known = range(len(self._domains))
        fits = all(v in known and self._domains[v] == n for v, n in zip(scope, table.shape, strict=False))
        if len(scope) != table.ndim or not fits or len(set(scope)) != len(scope):
            raise self._misfit(scope, table)
        values = tuple([self._fixed[v] for v in scope])
        free = [v for v, value in zip(scope, values, strict=True) if value is None]
        order = tuple(sorted(free))
        if order != scope:
            table = self._arithmetic.select(table, values, tuple([free.index(v) for v in order]))
        self._insert_sorted(order, table)

    def _misfit(self, scope: Scope, table: Table) -> SolverError:
        known = self._domains
        expected = tuple([known[v] if 0 <= v < len(known) else -1 for v in scope])
        return SolverError(
            f"a cost table over variables {scope} has the shape {table.shape}; their domains are {expected}"
        )

    def _insert_sorted(self, scope: Scope, table: Table) -> None:
        if scope:
            present = self._tables.get(scope)
            self._tables[scope] = table if present is None else self._arithmetic.multiply(present, table)
        else:
            self._constant = self._product(self._constant, table)

    def _product(self, before: Table | None, table: Table) -> Table:
        """Multiply tables that are seldom met again, so that the result is not remembered."""
        return table if before is None else self._arithmetic.semiring.multiply(before, table)

    def solve(self, table_limit: int) -> Elimination:
        """Find the order, then eliminate; if the order needs too large a table, no table is combined."""
        order = self._eliminated(table_limit)
        return Elimination(self._optimum, self._read_back(order), order.largest)

    def unroll(self, table_limit: int) -> Unrolling:
        """Eliminate likewise; keep what it takes to read back an assignment for any part of the optimum."""
        order = self._eliminated(table_limit)
        return Unrolling(self._total, order.largest, partial(self._trace_back, order))

    def buckets(self, table_limit: int) -> Buckets:
        """Eliminate likewise; return the tables of every variable."""
        order = self._eliminated(table_limit)
        tables = [
            (step.variable, {order.scopes[place]: self._at[place] for place in step.places})
            for step in order.steps
        ]
        return Buckets(self._optimum, tuple(self._fixed), tuple(tables))

    @property
    def _total(self) -> Table | None:
        ended = self._at.get(NO_PLACE)
        return self._constant if ended is None else self._product(self._constant, ended)

    @property
    def _optimum(self) -> Any:
        total = self._total
        return 0 if total is None else total.item()

    def _eliminated(self, table_limit: int) -> EliminationOrder:
        """Eliminate all variables, and return their order. Tables stay as they were eliminated from."""
        domains = [0 if fixed is not None else n for n, fixed in zip(self._domains, self._fixed, strict=True)]
        order = elimination_order(tuple(domains), tuple(self._tables), table_limit)
        arithmetic = self._arithmetic
        traced = arithmetic.semiring.trace is not None
        at = self._at = dict(enumerate(self._tables.values()))
        constants: list[Table] = []
        for variable, places, parts, _, message in order.steps:
            if not places:
                continue
            left, constant = arithmetic.eliminate([at[place] for place in places], parts)
            before = at.get(message)
            if traced:
                if constant is not None:
                    self._constant = self._product(self._constant, constant)
                    self._taken_out[variable] = constant
                left = arithmetic.bound(left, self._constant)
                self._joined.setdefault(message, []).append(Joined(before, left, variable))
            elif constant is not None:
                constants.append(constant)
            if message != NO_PLACE:
                at[message] = left if before is None else arithmetic.multiply(before, left)
            elif traced:
                at[message] = self._product(before, left)
            else:
                constants.append(left)
        taken = arithmetic.product(constants)
        if taken is not None:
            self._constant = self._product(self._constant, taken)
        return order

    def _read_back(self, order: EliminationOrder) -> tuple[int, ...]:
        """Return every variable's value, given those of the variables that were eliminated after it."""
        assignment = [value or 0 for value in self._fixed]
        known: dict[tuple[Parts, tuple[int, ...], tuple[int, ...]], int] = {}
        at = self._at
        for variable, places, parts, around, _ in reversed(order.steps):
            if not places:
                continue
            values = tuple([assignment[v] for v in around])
            key = parts, tuple([id(at[place]) for place in places]), values
            value = known.get(key)
            if value is None:
                value = known[key] = self._chosen([at[place] for place in places], parts, values)
            assignment[variable] = value
        return tuple(assignment)

    def _chosen(self, tables: Sequence[Table], parts: Parts, values: tuple[int, ...]) -> int:
        """Return the best value of a variable, given its tables and the values of its neighbours."""
        every_axes, axis = parts
        place: tuple[int | slice, ...] = (*values[:axis], slice(None), *values[axis:])
        multiply = self._arithmetic.semiring.multiply
        vectors = [
            table[tuple([place[each] for each in axes])]
            for table, axes in zip(tables, every_axes, strict=True)
        ]
        return self._arithmetic.semiring.choose(reduce(multiply, vectors))

    def _trace_back(self, order: EliminationOrder, part: Table) -> tuple[int, ...]:
        """Return an assignment whose product of entries is this part of the optimum.

        In reverse order every variable's message is known to contribute some part, which its value and parts
        of its tables make up; these are parts of the messages that the tables were made of.
        """
        assignment = [value or 0 for value in self._fixed]
        wanted: dict[int, Table] = {}
        trace = self._arithmetic.semiring.trace
        assert trace is not None, "a semiring whose entries have no parts is read back by its choices"
        ended = self._at.get(NO_PLACE)
        if ended is not None:
            if self._constant is not None:
                _, (_, part) = trace([(self._constant, ()), (ended, ())], part)
            self._divide(trace, NO_PLACE, (), part, wanted)
        for step in reversed(order.steps):
            variable = step.variable
            if not step.places:
                continue
            part = wanted.pop(variable)
            constant = self._taken_out.get(variable)
            if constant is not None:
                part = self._product(part, constant)
            ordered = sorted(step.places, key=lambda place: self._at[place].size)
            assignment[variable], parts = trace(
                [
                    (
                        self._at[place],
                        tuple([slice(None) if v == variable else assignment[v] for v in order.scopes[place]]),
                    )
                    for place in ordered
                ],
                part,
            )
            for place, part in zip(ordered, parts, strict=True):
                values = tuple([assignment[v] for v in order.scopes[place]])
                self._divide(trace, place, values, part, wanted)
        return tuple(assignment)

    def _divide(
        self, trace: Trace, place: int, values: tuple[int, ...], part: Table, wanted: dict[int, Table]
    ) -> None:
        """Divide a part of a table's entry among the messages that the table was made of."""
        for before, message, variable in reversed(self._joined.get(place, ())):
            if before is None:
                wanted[variable] = part
            else:
                _, (part, wanted[variable]) = trace([(before, values), (message, values)], part)
