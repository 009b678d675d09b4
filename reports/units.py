"""Quantities as people read them."""

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
    """`0.04512 -> '45.12 ms'`, `9.53e-6 -> '9.53 µs'`."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 or not seconds else f"{seconds * 1e6:.2f} µs"


def format_duration(seconds: float) -> str:
    """`3723 -> '1:02:03'`, `63 -> '1:03'`, `3.2 -> '3 s'`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_change(count: float) -> str:
    """`-8192 -> '-8.19 kB'`: more or less than before."""
    return ("-" if count < 0 else "+") + format_bytes(abs(count))


def format_region(region: tuple[tuple[int, int], ...]) -> str:
    """`((0, 2), (0, 3)) -> '[0:2, 0:3]'`; a region without elements reads `nothing`."""
    if any(upper <= lower for lower, upper in region):
        return "nothing"
    return f"[{', '.join(f'{lower}:{upper}' for lower, upper in region)}]"
