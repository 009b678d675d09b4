"""Compare the search methods: the bytes each plan moves and the memory of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds


def show(model: str, workers: int, entries: Sequence[dict[str, Any]], left_out: Mapping[str, str]) -> None:
    """Print the comparison. `entries` are what `tofu plan --compare --json` prints, one per method.

    The best comes first, by what the searches minimised. `left_out` has the reason for every method that
    could not do what was asked.
    """
    console = wide_console()
    timed, limited = "transfer_seconds" in entries[0], "fits" in entries[0]
    minimised, of_least = "cost_bytes", "of the least"
    if "objective_seconds" in entries[0]:
        minimised, of_least = "transfer_seconds", "of the least time"
    columns = ["method", "bytes moved", "by step", of_least, "peak of a worker"]
    columns += ["fits in " + _memory(entries[0])] if limited else []
    columns += ["time over links"] if timed else []
    columns += ["operations merged"] if "merged" in entries[0] else []
    methods = table(*columns, "searched in", title=f"{model} over {counted(workers, 'worker')}")
    least = min(entry[minimised] for entry in entries)
    for entry in sorted(entries, key=lambda entry: float(entry[minimised])):
        methods.add_row(
            entry["method"],
            format_bytes(entry["cost_bytes"]),
            ", ".join(map(format_bytes, entry["step_cost_bytes"])),
            f"{entry[minimised] / least:.2f} x" if least else "-",
            format_bytes(entry["peak_bytes_per_worker"]),
            *(["yes" if entry["fits"] else "out of memory"] if limited else []),
            *([format_seconds(entry["transfer_seconds"])] if timed else []),
            *(["yes" if entry["merged"] else "no"] if "merged" in entry else []),
            f"{entry['search_seconds']:.2f} s",
        )
    console.print(methods)
    for space in dict.fromkeys(entry["space"] for entry in entries):
        of_space = [entry for entry in entries if entry["space"] == space]
        proven = max(of_space, key=lambda entry: int(entry["lower_bound_bytes"]))
        if proven["lower_bound_bytes"]:
            console.print(_proven(proven), soft_wrap=True)
    for method, reason in left_out.items():
        console.print(f"{method} is left out: {reason}", soft_wrap=True)


def _memory(entry: Mapping[str, Any]) -> str:
    """Return the memory of devices, which may differ."""
    each = entry.get("memory_limit_bytes_per_worker", [entry["device_memory_bytes"]])
    return " to ".join(format_bytes(nbytes) for nbytes in sorted({min(each), max(each)}))


def _proven(entry: Mapping[str, Any]) -> str:
    """Return the largest bound that a method proves of a space."""
    least = format_bytes(entry["lower_bound_bytes"])
    or_more = ", or repeats more computation" if entry["keep"] else ""
    return (
        f"every plan in steps that {entry['space']} moves at least {least}{or_more} "
        f"(proven by {entry['method']})"
    )
