"""Pick rows, or add them up, by number: the run-time part of gathers and scatters.

Numbers are codes below `nowhere`. The code `nowhere` means that an element belongs to no row. Temporaries
that are not passed in have at most one number per code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....support.integers import Integers
from ....tdl.ast import Reducer
from ....tdl.reducers import UFUNCS
from ...kernels.kernel import Array
from ..nodes.functions import identity
from ..nodes.ir import Scalar

COUNTED = 1 << 16
"""Codes that are counted in one call, so that NumPy's temporaries stay in cache."""


@dataclass(frozen=True, slots=True)
class Digit:
    """How a value becomes a digit of a code, `sign * (value - offset) - first`, if that is in `[0,
    length)`."""

    first: int
    """The number that becomes the digit 0."""

    length: int
    """The number of digits."""

    sign: int
    """1 or -1."""

    counts: bool
    """Whether it is a digit of the code; if not, it is only checked."""


def locate(digits: tuple[Digit, ...], nowhere: int, *operands: Array | Scalar, out: Array) -> None:
    """Compute codes from a value and an offset for every digit; `nowhere` unless it is an integer inside."""
    code: Any = None
    held: Any = True
    for digit, value, offset in zip(digits, operands[::2], operands[1::2], strict=True):
        shape = np.broadcast_shapes(np.shape(value), np.shape(offset))
        number: Any = (
            out if code is None and digit.counts and shape == out.shape else np.empty(shape, np.int64)
        )
        with np.errstate(invalid="ignore"):
            # values that no integer holds become the least integer, which is in no interval
            np.copyto(number, value, casting="unsafe")
        if digit.sign < 0:
            np.negative(number, out=number)
        shift = digit.sign * offset + digit.first
        if isinstance(shift, np.ndarray) or shift:
            np.subtract(number, shift, out=number)
        # as an unsigned integer a negative number is large
        held = np.logical_and(held, number.view(np.uint64) < digit.length)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            held = np.logical_and(held, value == np.floor(value))
        if digit.counts:
            code = number if code is None else code * digit.length + number
    if code is not out:
        np.copyto(out, 0 if code is None else code)
    if not held.all():
        np.copyto(out, nowhere, where=np.logical_not(held))


def pick(codes: Integers, table: Array, out: Array) -> None:
    """Write the row of every code; the last row for `nowhere`."""
    np.take(table, codes, axis=0, out=out, mode="clip")


def clear(nowhere: int, nothing: Scalar, codes: Array, values: Array, out: Array) -> None:
    """Overwrite values that belong to no row. `values` are `out`."""
    missing = codes == nowhere
    if missing.any():
        np.copyto(out, nothing, where=missing, casting="unsafe")


def count(scale: Scalar, codes: Integers, out: Array) -> None:
    """Count the codes of each row, and multiply by `scale`."""
    rows = len(out)
    step = max(COUNTED, rows)
    total = np.zeros(rows + 1, np.int64)
    for first in range(0, len(codes), step):
        total += np.bincount(codes[first : first + step], minlength=rows + 1)
    np.multiply(total[:rows].reshape(out.shape), scale, out=out, casting="unsafe")


def hits(codes: Integers, out: Array) -> None:
    """Write the number of every row that has a code; the number of rows for the others."""
    rows = len(out)
    seen = np.zeros(rows + 1, np.bool_)
    seen[codes] = True
    np.copyto(out, np.where(seen[:rows], 0, rows))


def add_up(reducer: Reducer, codes: Integers, values: Array, *room: Array, out: Array) -> None:
    """Reduce the values of every code; rows without one get the identity. `room` is two arrays of rows."""
    if reducer is Reducer.SUM and values.shape[1] == 1:
        _weigh(codes, values, out)
        return
    out.fill(identity(reducer))
    lengths = np.bincount(codes, minlength=len(out) + 1)[: len(out)]
    begins = np.cumsum(lengths) - lengths
    (targets,) = np.nonzero(lengths)
    if len(targets) == 0:
        return
    targets = targets[np.argsort(-lengths[targets], kind="stable")]
    order = _order(codes, len(out))
    runs = _Runs(UFUNCS[reducer], values, order, begins[targets], lengths[targets], room)
    runs.write(targets, out)


def _weigh(codes: Integers, values: Array, out: Array) -> None:
    rows = len(out)
    step = max(COUNTED, rows)
    total = np.zeros(rows + 1)
    for first in range(0, len(codes), step):
        part = slice(first, first + step)
        total += np.bincount(codes[part], values[part, 0], rows + 1)
    np.copyto(out, total[:rows, None], casting="unsafe")


def _order(codes: Integers, rows: int) -> Any:
    """Return codes from least to largest, equal ones as they come: 16 bits at a time, in linear time."""
    order: Any = None
    for shift in range(0, max(rows.bit_length(), 1), 16):
        bits = (codes if order is None else codes[order] >> shift).astype(np.uint16)
        sorted_bits = np.argsort(bits, kind="stable")
        order = sorted_bits if order is None else order[sorted_bits]
    return order


class _Runs:
    """Runs of rows to reduce, longest first: rows `order[begin : begin + length]` of the values.

    The longest are reduced one by one, all others together, one row of each at a time: at most twice as
    many calls as the square root of the number of rows.
    """

    def __init__(
        self, combine: np.ufunc, values: Array, order: Any, begins: Any, lengths: Any, room: tuple[Array, ...]
    ) -> None:
        self.combine, self.values, self.order = combine, values, order
        self.begins, self.lengths = begins, lengths
        self.sums, self.next = room

    def write(self, targets: Any, out: Array) -> None:
        """Reduce every run into its row."""
        alone = int(np.argmin(np.arange(len(self.lengths) + 1) + np.append(self.lengths, 0)))
        for run in range(alone):
            out[targets[run]] = self._alone(self.begins[run], self.lengths[run])
        if alone == len(targets):
            return
        places, lengths = self.begins[alone:], self.lengths[alone:]
        numbers = np.empty(len(places), np.int64)
        sums = self._rows(places, numbers, self.sums)
        active = len(places) - np.searchsorted(lengths[::-1], np.arange(1, lengths[0]), side="right")
        for several in active.tolist():
            np.add(places[:several], 1, out=places[:several])
            rows = self._rows(places[:several], numbers, self.next)
            self.combine(sums[:several], rows, out=sums[:several])
        out[targets[alone:]] = sums

    def _rows(self, places: Any, numbers: Any, room: Any) -> Any:
        """Return the rows at places of the order; `numbers` are written over."""
        found = self.order.take(places, None, numbers[: len(places)], "clip")
        return self.values.take(found, 0, room[: len(places)], "clip")

    def _alone(self, begin: int, length: int) -> Array:
        """Reduce one run, as many rows at a time as the room holds."""
        total: Any = None
        for first in range(begin, begin + length, len(self.next)):
            rows = self.next[: min(len(self.next), begin + length - first)]
            self.values.take(self.order[first : first + len(rows)], 0, rows, "clip")
            part = self.combine.reduce(rows, axis=0)
            total = part if total is None else self.combine(total, part)
        result: Array = total
        return result
