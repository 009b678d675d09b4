"""Operate on the tables of an elimination: semirings, and a cache of repeated results.

An elimination is right for every pair of operations with these laws, for numbers a, b, c:

    multiply and add are associative and commutative
    multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))

Costs use (min, +), see `min_plus`. Frontiers are another one, whose entries are runs of points, see
`frontier`. Its tables are not arrays, but have the attributes and methods of arrays that are used here.
Implemented in: `TableArithmetic.multiply`, `TableArithmetic.eliminate`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]
Scope = tuple[int, ...]
Parts = tuple[tuple[Scope, ...], int]
"""The axes of tables in their product, ascending, and the axis that is projected out."""
Place = tuple[int | slice, ...]
Trace = Callable[[Sequence[tuple[Table, Place]], Table], tuple[int, list[Table]]]

KEPT_BYTES = 1 << 27
"""Results are forgotten if they take more."""

SAMPLE = 32
"""The number of entries by which tables are looked up before they are compared."""

PIECE_ENTRIES = 1 << 16
"""Larger tables are combined in pieces of about this many entries, which stay in a core's cache."""


@dataclass(frozen=True, slots=True)
class Semiring:
    """The operations that combine and project tables."""

    multiply: Callable[[Table, Table], Table]
    """Joins two broadcastable tables."""

    add: Callable[[Table, int], Table]
    """Projects one axis of a table out."""

    choose: Callable[[Table], int]
    """Returns the entry of a vector that `add` would keep, the first of equals."""

    part: Callable[[Table], tuple[Table, Table]] | None = None
    """Separates a table into one that makes the same choices and a constant that multiplies it, if possible.

    Tables that differ only by their constants are then equal.
    """

    project: Callable[[Sequence[Table], int], Table] | None = None
    """Joins broadcastable tables and projects one axis out; None to do so with `multiply` and `add`."""

    bound: Callable[[Table, Table | None], Table] | None = None
    """Drops parts of a message's entries that no wanted part of the optimum has.

    It is given the message and the product of all constants that were taken out so far.
    """

    trace: Trace | None = None
    """Tells how a part of an entry came about; None if an entry is one number, so that `choose` does.

    Given tables, the place of an entry or of a vector of entries in each, and a part of the product, it
    returns a position in the vectors and the part of each table whose product the wanted part is.
    """


class TableArithmetic:
    """Table operations of a semiring that remember their results by the identity of their arguments.

    Arguments are kept, so that no other table can get the same identity. Equal results are one table, so
    along a chain of equal layers most operations are soon found in the cache. One instance can serve several
    eliminations, which then compute only their differences. If results take too much memory, all are
    forgotten.
    """

    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self._kept: list[Table] = []
        self._selected: dict[tuple[int, tuple[int | None, ...], Scope], Table] = {}
        self._products: dict[tuple[int, int], Table] = {}
        self._eliminated: dict[tuple[Parts, tuple[int, ...]], tuple[Table, Table | None]] = {}
        self._distinct: dict[tuple[object, ...], list[Table]] = {}
        self._distinct_bytes = 0

    def select(self, table: Table, values: tuple[int | None, ...], order: Scope) -> Table:
        """Index `table` at the `values` that are not None, with the other axes in this order."""
        key = (id(table), values, order)
        found = self._selected.get(key)
        if found is None:
            self._kept.append(table)
            part = table[(*[slice(None) if v is None else v for v in values], ...)]
            found = self._selected[key] = part.transpose(order)
        return found

    def multiply(self, a: Table, b: Table) -> Table:
        """Return the product of two tables of the same shape."""
        key = (id(a), id(b))
        found = self._products.get(key)
        if found is None:
            self._kept += a, b
            found = self._products[key] = self._one(self.semiring.multiply(a, b))
        return found

    def eliminate(self, tables: Sequence[Table], parts: Parts) -> tuple[Table, Table | None]:
        """Multiply tables and project out an axis; also return the constant that was taken out, if any."""
        key = parts, tuple(map(id, tables))
        found = self._eliminated.get(key)
        if found is None:
            if self._distinct_bytes > KEPT_BYTES:
                self._forget()
            self._kept += tables
            every_axes, axis = parts
            rank = 1 + max(axes[-1] for axes in every_axes)
            ascending = sorted(zip(tables, every_axes, strict=True), key=lambda part: part[0].size)
            spread = [_spread(table, axes, rank) for table, axes in ascending]
            project = self.semiring.project
            left = (
                project_in_pieces(self.semiring, spread, axis) if project is None else project(spread, axis)
            )
            constant = None
            if self.semiring.part is not None:
                left, constant = self.semiring.part(left)
            found = self._eliminated[key] = self._one(left), constant
        return found

    def product(self, tables: Sequence[Table]) -> Table | None:
        """Return the product of tables of one shape, or None if there are none.

        A table that occurs often is multiplied with itself by repeated squaring.
        """
        counts, distinct = Counter(map(id, tables)), {id(table): table for table in tables}
        powers = [self._power(table, counts[key]) for key, table in distinct.items()]
        return reduce(self.semiring.multiply, powers) if powers else None

    def _power(self, table: Table, exponent: int) -> Table:
        """Return the product of a table `exponent` times."""
        if exponent == 1:
            return table
        root = self._power(table, exponent // 2)
        square = self.semiring.multiply(root, root)
        return self.semiring.multiply(square, table) if exponent % 2 else square

    def bound(self, message: Table, constant: Table | None) -> Table:
        """Drop parts of a message that are not wanted; without a bound, return it."""
        bound = self.semiring.bound
        return message if bound is None else self._one(bound(message, constant))

    def _one(self, table: Table) -> Table:
        """Return the table that stands for all that are equal to this one."""
        arrays = _arrays(table)
        samples = [array.ravel()[:: array.size // SAMPLE + 1].tobytes() for array in arrays]
        alike = self._distinct.setdefault((table.shape, table.dtype.str, *samples), [])
        for known in alike:
            if all(map(np.array_equal, _arrays(known), arrays)):
                return known
        alike.append(table)
        self._distinct_bytes += sum([array.nbytes for array in arrays])
        return table

    def _forget(self) -> None:
        for known in (self._kept, self._selected, self._products, self._eliminated, self._distinct):
            known.clear()
        self._distinct_bytes = 0


def _arrays(table: Table) -> tuple[Table, ...]:
    """Return the arrays that a table consists of; an array is one."""
    found: tuple[Table, ...] = getattr(table, "arrays", (table,))
    return found


def project_in_pieces(semiring: Semiring, tables: Sequence[Table], axis: int, split: int = 0) -> Table:
    """Multiply broadcastable tables and project one axis out.

    Goes piece by piece along `split` and later axes, so that a piece of the product stays in the cache.
    """
    shape = np.broadcast_shapes(*[table.shape for table in tables])
    if split == axis:
        split += 1
    if math.prod(shape) > PIECE_ENTRIES and split < len(shape):
        pieces = [
            project_in_pieces(semiring, [_slice(table, split, i) for table in tables], axis, split + 1)
            for i in range(shape[split])
        ]
        return np.concatenate(pieces, axis=split - (split > axis))
    return semiring.add(reduce(semiring.multiply, tables), axis)


def _spread(table: Table, axes: Scope, rank: int) -> Table:
    """Return a table reshaped to `rank` axes, to broadcast against others."""
    shape = [1] * rank
    for axis, extent in zip(axes, table.shape, strict=True):
        shape[axis] = extent
    return table.reshape(shape)


def _slice(table: Table, axis: int, position: int) -> Table:
    """Return one position of an axis, which stays; all of it if the table is the same along it."""
    if table.shape[axis] == 1:
        return table
    return np.asarray(table[(slice(None),) * axis + (slice(position, position + 1),)])
