"""Loops that are compiled if numba is installed (the extra `search`) and that pays, else run in plain Python.

Compiling a loop takes seconds, and importing numba a large part of one. So a loop runs in plain Python as
long as its arguments are short, and until it has run for a while.
The same source runs in all cases, on arrays or on lists of integers, so the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, update_wrapper
from importlib.util import find_spec
from threading import local
from time import perf_counter
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from .kept_loops import kept

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: bool = find_spec("numba") is not None
"""Whether loops may be compiled. If so, they take arrays. `compiler` says whether they can be."""

REMEDY = "pip install '.[search]' in Tofu's folder"
"""The remedy if loops cannot be compiled."""

PATIENCE_SECONDS = 0.3
"""A loop that has run for so long in plain Python is compiled."""

SHORT = 1 << 13
"""Loops over more numbers than this are compiled at once."""

Numbers = Any
"""Integers by place: an array if loops may be compiled, or a list."""


_inside = local()
"""Whether a thread is inside a loop in plain Python, and so are the loops that it calls."""


class Patience:
    """The time that a loop may take in plain Python, in all its calls, before it is compiled."""

    def __init__(self, most_seconds: float | None = None) -> None:
        self._seconds = 0.0
        self._most_seconds = most_seconds

    @property
    def over(self) -> bool:
        """Tell whether the loop has run for longer than `most_seconds`, or than `PATIENCE_SECONDS`."""
        most = PATIENCE_SECONDS if self._most_seconds is None else self._most_seconds
        return self._seconds > most

    def run(self, loop: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """Run a loop, and count its time."""
        begin = perf_counter()
        try:
            return loop(*arguments, **named)
        finally:
            self._seconds += perf_counter() - begin


class Loop(Generic[P, R]):
    """A loop that is compiled once that pays."""

    def __init__(self, source: Callable[P, R]) -> None:
        update_wrapper(self, source)
        self.source = source
        self._patience = Patience()
        self._machine_code: Callable[P, R] | None = None

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        if getattr(_inside, "plain", False):
            return self.source(*arguments, **named)
        if self._machine_code is not None:
            return self._machine_code(*arguments, **named)
        if self._patience.over or _count(arguments) > SHORT:
            return self.machine_code()(*arguments, **named)
        _inside.plain = True
        try:
            return self._patience.run(self.source, *arguments, **named)
        finally:
            _inside.plain = False

    def machine_code(self) -> Callable[P, R]:
        """Return the loop as numba compiles it."""
        if self._machine_code is None:
            self._machine_code = machine_code(self.source)
        return self._machine_code


class Part(Loop[P, R]):
    """A part of loops that takes no longer in plain Python. It is compiled for the loops that call it."""

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        return self.source(*arguments, **named)


def machine_code(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop at its first call, and keep the result for later processes.

    Without a compiler it stays as it is.
    """
    compile_ = compiler()
    if compile_ is None:
        return loop
    with kept(loop) as has_folder:
        found: Callable[P, R] = compile_(cache=has_folder, no_cfunc_wrapper=True)(loop)
    return found


@cache
def compiler() -> Any:
    """Return numba's compiler, which from then on takes loops that call each other.

    It is None if numba is not installed, or refuses this version of Python or NumPy.
    """
    try:
        from numba import njit, types
        from numba.extending import typeof_impl
    except ImportError:
        return None

    @typeof_impl.register(Loop)
    def _type_of(loop: Loop[..., Any], _context: Any) -> Any:
        return types.Dispatcher(loop.machine_code())

    return njit


def _count(arguments: Iterable[Any]) -> int:
    """Return how many numbers there are in arrays and in tuples of them."""
    count = 0
    for each in arguments:
        if isinstance(each, np.ndarray):
            count += each.size
        elif isinstance(each, tuple):
            count += _count(each)
    return count


def compiled(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop once that pays, see `Loop`."""
    return Loop(loop) if COMPILED else loop


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


zeros = Part(_zero_array) if COMPILED else _zero_list
"""Return zeros as loops take them. Loops call it as well."""


def _array_of(values: list[int]) -> Numbers:
    return np.array(values)


def _itself(values: list[int]) -> Numbers:
    return values


packed = Part(_array_of) if COMPILED else _itself
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
