"""Loops that run compiled if numba is installed (the extra `search`), and as plain Python otherwise.

Import this module and those that use its decorator only where they are needed: importing numba takes time.
The same source runs in both cases, on arrays or on lists of integers, so the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

P = ParamSpec("P")
R = TypeVar("R")


def _compiler() -> Any:
    """Return numba's compiler; None if numba is not installed."""
    try:
        from numba import njit
    except ImportError:
        return None
    return njit


COMPILER = _compiler()
COMPILED: bool = COMPILER is not None
"""Whether loops are compiled."""

Numbers = Any
"""Integers by place: an array if loops are compiled, or a list."""


def compiled(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop when it is first called, and keep the result for later processes."""
    if COMPILER is None:
        return loop
    try:
        found: Callable[P, R] = COMPILER(cache=True, no_cfunc_wrapper=True)(loop)
    except RuntimeError:  # no folder to keep it in
        found = COMPILER(loop)
    return found


def numbers(values: Iterable[int]) -> Numbers:
    """Return integers as loops take them."""
    found = list(values)
    return np.array(found, np.int64) if COMPILED else found


def looped(values: npt.NDArray[Any]) -> Numbers:
    """Return an array's values as loops take them, row after row."""
    return np.ascontiguousarray(values).ravel() if COMPILED else values.ravel().tolist()


def _zero_array(count: int) -> Numbers:
    return np.zeros(count, np.int64)


def _zero_list(count: int) -> Numbers:
    return [0] * count


zeros = compiled(_zero_array if COMPILED else _zero_list)
"""Return zeros as loops take them. Loops call it as well."""


def _array_of(values: list[int]) -> Numbers:
    return np.array(values)


def _itself(values: list[int]) -> Numbers:
    return values


packed = compiled(_array_of if COMPILED else _itself)
"""Return a list that a loop made as loops take it. For loops alone."""


def filled(count: int, value: int) -> Numbers:
    """Return one integer `count` times as loops take them."""
    return np.full(count, value, np.int64) if COMPILED else [value] * count


def put(values: Numbers, at: slice, value: int) -> None:
    """Write one integer to all places of a range."""
    values[at] = value if COMPILED else [value] * (at.stop - at.start)


def strung(parts: Sequence[Numbers]) -> Numbers:
    """Return the integers of all parts, one after the other."""
    return np.concatenate(parts) if COMPILED else [number for part in parts for number in part]


def longer(values: Numbers, length: int) -> Numbers:
    """Return integers with room for at least `length`, and for more if there was too little."""
    if len(values) >= length:
        return values
    more = zeros(length + length // 2 - len(values))
    return np.concatenate([values, more]) if COMPILED else values + more


def plain(values: Numbers) -> list[int]:
    """Return what a loop wrote as a list."""
    return values.tolist() if COMPILED else values  # type: ignore[no-any-return]
