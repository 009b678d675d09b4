"""Numbers with units in machine files and options: bytes, bandwidths, rates and times."""

from __future__ import annotations

import math
import re

from ..errors import MachineError
from ..support.checked_argument import shown

BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
FLOPS = {"FLOP/s": 1.0, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

LARGEST = 1e18
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?)\s*([A-Za-z/]+)")


def quantity(value: object, place: str, per_second: bool = False) -> float:
    """Read a positive number of bytes, written as a number or as text such as `12 GB` (or `21 GB/s`).

    Raises MachineError.
    """
    if per_second:
        return _positive(
            value, place, {f"{unit}/s": size for unit, size in BYTES.items()}, "bytes", "21 GB/s"
        )
    return _positive(value, place, BYTES, "bytes", "12 GB")


def rate(value: object, place: str) -> float:
    """Read the floating-point operations in a second: a number, or text such as `15.7 TFLOP/s`.

    Raises MachineError.
    """
    return _positive(value, place, FLOPS, "operations", "15.7 TFLOP/s")


def seconds(value: object, place: str) -> float:
    """Read a time that may be zero: a number of seconds, or text such as `2 us`. Raises MachineError."""
    return (
        0.0
        if value == 0 and not isinstance(value, bool)
        else _positive(value, place, SECONDS, "seconds", "2 us")
    )


def _positive(value: object, place: str, units: dict[str, float], what: str, example: str) -> float:
    if isinstance(value, str):
        matched = _QUANTITY.fullmatch(value.strip())
        if matched is None or matched[2] not in units:
            raise MachineError(
                f"{place} is {value[:60]!r}; write it with its unit, such as {example}; units are "
                f"{', '.join(units)}"
            )
        number = float(matched[1]) * units[matched[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if -LARGEST <= value <= LARGEST else math.inf
    else:
        raise MachineError(f"{place} is {shown(value)}; write a number of {what}, or text such as {example}")
    if not 0 < number <= LARGEST:
        raise MachineError(f"{place} is {shown(value)}; it must be positive and at most 10**18")
    return number
