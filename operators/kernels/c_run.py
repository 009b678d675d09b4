"""Prepared kernels that are nothing but calls of functions in C, with arguments that never change.

Such a kernel runs like any other. A function in C can also run several of them, one after the other, from a
list of their calls, without the interpreter in between (`native.call_list`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class CallForm(IntEnum):
    """How a function is called."""

    STRUCT = 0
    """A function of one address, which returns nothing: `words` are the function and the address."""

    ONE_THREAD = 1
    """A function `(address, address, int, address)`, which returns 0 if it succeeds and runs while the thread
    has one thread of OpenMP: `words` are the function, its four arguments, and the functions that read and
    set the number of threads."""

    COUNT = 2
    """No function: a number is added to one in memory. `words` are its address and what is added."""


@dataclass(frozen=True, slots=True, eq=False)
class CCall:
    """One call."""

    form: CallForm
    """How the function is called."""

    words: tuple[int, ...]
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
