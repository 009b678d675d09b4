"""Forms in words, as reports show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ...analyzer.indices.region import Region
from ...programs.program import region_text
from ...support.wording import counted
from .forms import Cut, Follow, Form, Label, Partial, Parts, Spread

LISTED = 8
"""The most runs of workers, and places of cuts, that are named one by one."""

BOXES = 2
"""The most boxes that are written out."""


def form_text(form: Form, between: str = ",") -> str:
    """Write a form in a few words: `n,-,@0`, `n/2,-/2 on workers 0 to 3`, `n cut at 3 on workers 0, 1`.

    Steps are written as `--pin` takes them, with `between` between two entries.
    """
    match form:
        case tuple():
            return between.join("-" if entry is None else str(entry) for entry in form) or "-"
        case Spread(degrees=degrees, workers=workers):
            return f"{_degrees(degrees, between)} on {worker_text(workers)}"
        case Cut(along=along, bounds=bounds, workers=workers):
            at = f"at {', '.join(map(str, bounds))}" if len(bounds) <= LISTED else f"at {len(bounds)} places"
            return f"{along} cut {at} on {worker_text(workers)}"
        case Parts(boxes=boxes) if len(boxes) <= BOXES:
            return "; ".join(_box(*part) for part in boxes)
        case Parts(boxes=boxes):
            holders = sorted({part[0] for part in boxes})
            return f"{counted(len(boxes), 'part')} on {worker_text(holders)}"
        case Follow():
            return "as its operation makes it"
        case _:
            assert_never(form)


def layout_text(form: Form, via: Form | None) -> str:
    """Write a tensor's form, and where its partial results are reduced if that is somewhere else."""
    return form_text(form) + ("" if via is None else f", reduced as {form_text(via)}")


def _box(worker: int, box: Region, term: int | None = None) -> str:
    partial = "" if term is None else f" (term {term})"
    return f"{region_text(box)} on {worker_text([worker])}{partial}"


def _degrees(degrees: Sequence[tuple[Label | Partial | None, int]], between: str) -> str:
    if all(label is None for label, _ in degrees):
        return "whole"
    return between.join(f"{'-' if label is None else label}/{count}" for label, count in degrees)


def worker_text(workers: Sequence[int]) -> str:
    """Name workers in the order given: `worker 3`, `workers 0 to 3, 7`, or how many more there are."""
    runs: list[list[int]] = []
    for worker in workers:
        if runs and worker == runs[-1][-1] + 1:
            runs[-1].append(worker)
        else:
            runs.append([worker])
    shown = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs[:LISTED]]
    more = sum(map(len, runs[LISTED:]))
    listed = ", ".join(shown) + (f" and {more} more" if more else "")
    return f"{'worker' if len(workers) == 1 else 'workers'} {listed or 'none'}"
