"""Prepared kernels that are nothing but calls of functions in C, with arguments that never change.

Such a kernel runs like any other. A function in C can also run several of them, one after the other, from a
list of their calls, without the interpreter in between (`native.call_list`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
"""Addresses, numbers and structs."""


class CallForm(IntEnum):
    """How a function is called."""

    STRUCT = 0
    """A function of a struct's address, which returns nothing: `words` are the function and the struct."""

    ONE_THREAD = 1
    """A function `(address, address, int, address)`, which returns 0 if it succeeds and runs while the thread
    has one thread of OpenMP: `words` are the function, its four arguments, and the functions that read and
    set the number of threads."""

    COUNT = 2
    """No function: a number is added to one in memory. `words` are its address and what is added."""

    COPY = 3
    """No function: runs of bytes are copied. `words` are the addresses to write and to read, the bytes of a
    run and the number of axes. For each axis, the innermost first, follow its length and the distances of
    neighbours that are written and that are read, in bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class CCall:
    """One call."""

    form: CallForm
    """How the function is called."""

    words: Words
    """Addresses and numbers, as the form says."""

    kept: object
    """The memory at the addresses, which lives as long as the call."""

    name: str
    """The name of the function, for errors."""


@dataclass(frozen=True, slots=True, eq=False)
class CRun:
    """A run that is calls of functions in C."""

    run: Callable[[], None]
    """Does the same by itself."""

    calls: tuple[CCall, ...]
    """The calls, in order."""

    def __call__(self) -> None:
        self.run()


def joined_calls(runs: Sequence[object]) -> tuple[CCall, ...] | None:
    """Return the calls of several runs, one after the other; None if one does something else."""
    calls: list[CCall] = []
    for run in runs:
        if not isinstance(run, CRun):
            return None
        calls += run.calls
    return tuple(calls)
