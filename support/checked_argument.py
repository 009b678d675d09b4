"""Refuse arguments of wrong types, as errors of the package that say what to give instead."""

from __future__ import annotations

import math
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from ..errors import TofuError

LONGEST = 60
"""The most characters of a value that a message shows."""


def shown(value: object) -> str:
    """Write a value in a message, cut if it is long.

    Integers of more digits than Python writes, 4,300, are written in base 16.
    """
    try:
        return repr(value)[:LONGEST]
    except ValueError:
        return (
            hex(value)[:LONGEST] if isinstance(value, int) else f"a {type(value).__name__} of long integers"
        )


def require(fits: bool, value: object, name: str, expected: str, error: type[TofuError]) -> None:
    """Raise `error` unless an argument fits; `expected` says in words what does."""
    if not fits:
        raise error(f"{name} is {shown(value)} ({type(value).__name__}); give {expected}")


def require_count(value: object, name: str, error: type[TofuError], least: int = 0) -> None:
    """Raise `error` unless an argument is an integer of at least `least`."""
    require(is_count(value, least), value, name, f"an integer from {least} on", error)


def require_kind(value: object, kind: type, remedy: str, error: type[TofuError], name: str = "") -> None:
    """Raise `error` unless a value is of a kind, called `name` if given; `remedy` says how to get one."""
    if not isinstance(value, kind):
        wanted = name or kind.__name__
        raise error(f"a {wanted} is needed, not a {type(value).__name__}; {remedy}")


def path_of(value: object, name: str, error: type[TofuError]) -> Path:
    """Return the path that an argument names; raise `error` if it is neither a text nor a path."""
    fits = isinstance(value, str) or (isinstance(value, PathLike) and isinstance(fspath(value), str))
    require(fits, value, name, "the name of a file", error)
    return Path(value)  # type: ignore[arg-type]


def array_of(value: npt.ArrayLike, name: str, error: type[TofuError]) -> npt.NDArray[Any]:
    """Return the array that an argument is; raise `error` if it is not one, as of rows of two lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as problem:
        raise error(f"'{name}' must be an array of numbers: {problem}") from None


def is_number(value: object) -> bool:
    """Return whether a value is one finite number."""
    try:
        return isinstance(value, SupportsFloat) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def is_count(value: object, least: int = 0) -> bool:
    """Return whether a value is an integer, not a boolean, of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
