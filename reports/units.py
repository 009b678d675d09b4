"""Byte counts as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def format_bytes(count: float) -> str:
    """`21_790_000_000 -> '21.79 GB'`: decimal units, as the literature counts traffic."""
    unit = "B"
    for unit in _UNITS:
        if abs(count) < 1000 or unit == _UNITS[-1]:
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"


def format_seconds(seconds: float) -> str:
    """`0.04512 -> '45.12 ms'`."""
    return f"{seconds * 1e3:.2f} ms"


def format_change(count: float) -> str:
    """`-8192 -> '-8.19 kB'`: more or less than before."""
    return ("-" if count < 0 else "+") + format_bytes(abs(count))


def format_interval(interval: tuple[int, int]) -> str:
    """`(0, 4) -> '0:4'`, as a slice is written."""
    return f"{interval[0]}:{interval[1]}"


def format_region(region: tuple[tuple[int, int], ...]) -> str:
    """`((0, 2), (0, 3)) -> '[0:2, 0:3]'`; a region without elements reads `nothing`."""
    if any(upper <= lower for lower, upper in region):
        return "nothing"
    return f"[{', '.join(map(format_interval, region))}]"
