"""Results of a part that ran several times: what each run adds to the ones before."""

from __future__ import annotations

from typing import Any

from .guard import SHOWN

KEPT = ("date", "machine", "versions", "seed", "processor_seconds_limit")
"""Entries that are those of the last run. Other numbers are added up."""


def added(before: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of all runs, from that of the runs before and that of the last one."""
    total: dict[str, Any] = {}
    for name in dict.fromkeys((*before, *result)):
        match before.get(name), result.get(name):
            case first, second if name in KEPT:
                total[name] = second if second is not None else first
            case (None, only) | (only, None):
                total[name] = only
            case list(first), list(second):
                total[name] = (first + second)[:SHOWN]
            case dict(), dict():
                pass
            case first, second:
                total[name] = round(first + second, 1)
    _add_slowest(total, before, result)
    return total


def _add_slowest(total: dict[str, Any], before: dict[str, Any], result: dict[str, Any]) -> None:
    """Keep the slower of two trials of each phase, with its time."""
    for each in (before, result):
        for phase, seconds in each["slowest_seconds"].items():
            kept = total.setdefault("slowest_seconds", {})
            if seconds >= kept.get(phase, 0.0):
                kept[phase] = seconds
                total.setdefault("slowest", {})[phase] = each["slowest"][phase]
