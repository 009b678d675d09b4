"""The checker's own reading of forms: worker, box and term of every part, in plain Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import assert_never

from ...analyzer.indices.region import Region
from ...errors import PlanError
from ...programs.plain_regions import split_region
from ..layouts.forms import At, Cut, Entry, Follow, Form, Label, Partial, Parts, Spread, Steps

PlainParts = tuple[tuple[int, Region, int], ...]
"""The worker, the box and the term of every part."""


def terms_of(parts: PlainParts) -> int:
    """Count the terms of parts."""
    return max((term for _, _, term in parts), default=0) + 1


def plain_parts(
    form: Form, whole: Region, labels: Sequence[Label], factors: Sequence[int], workers: int, place: str
) -> PlainParts:
    """Return the parts of `whole`, whose axes have these labels. Raises PlanError for what does not exist."""

    def axis(label: Label) -> int:
        if label not in labels:
            known = ", ".join(map(str, labels))
            raise PlanError(f"{place} is split along {label!r}; it can be split along {known or 'nothing'}")
        return labels.index(label)

    match form:
        case tuple():
            parts = _steps(form, whole, axis, factors, place)
        case Spread(degrees=degrees, workers=named):
            counts = [count for _, count in degrees]
            entries = [entry for entry, _ in degrees]
            if len(named) != prod(counts) or min(counts, default=1) < 1:
                raise PlanError(f"{place} has {prod(counts)} parts, but {len(named)} workers are named")
            axes = [axis(entry) if isinstance(entry, str | int) else None for entry in entries]
            boxes = split_region(whole, axes, counts)
            parts = tuple(zip(named, boxes, _terms(entries, counts), strict=True))
        case Cut(along=along, bounds=bounds, workers=named):
            at = axis(along)
            edges = [whole[at][0], *bounds, whole[at][1]]
            if len(named) != len(bounds) + 1:
                raise PlanError(f"{place} has {len(bounds) + 1} parts, but {len(named)} workers are named")
            parts = tuple(
                (worker, (*whole[:at], (edges[number], edges[number + 1]), *whole[at + 1 :]), 0)
                for number, worker in enumerate(named)
            )
        case Parts(boxes=listed):
            parts = tuple((worker, box, term[0] if term else 0) for worker, box, *term in listed)
        case Follow():
            raise PlanError(f"{place} follows an operation; only a tensor that an operation makes can")
        case _:
            assert_never(form)
    for worker, box, _ in parts:
        if not 0 <= worker < workers:
            raise PlanError(f"{place} names worker {worker}; workers are numbered 0 to {workers - 1}")
        if len(box) != len(whole):
            raise PlanError(f"{place} has a box with {len(box)} intervals, but {len(whole)} axes")
    if len(set(parts)) != len(parts):
        raise PlanError(f"{place} has the same part on one worker twice")
    if len({term for _, _, term in parts}) not in (0, terms_of(parts)):
        raise PlanError(f"{place} has no parts of some of its {terms_of(parts)} terms")
    return parts


def _terms(entries: Sequence[Entry], counts: Sequence[int]) -> list[int]:
    """Number the terms of parts in row-major order: the digits of the partial entries."""
    found = [0]
    for entry, count in zip(entries, counts, strict=True):
        digits = range(count) if isinstance(entry, Partial) else [0] * count
        base = count if isinstance(entry, Partial) else 1
        found = [term * base + digit for term in found for digit in digits]
    return found


def _steps(
    form: Steps, whole: Region, axis: Callable[[Label], int], factors: Sequence[int], place: str
) -> PlainParts:
    if len(form) != len(factors):
        raise PlanError(f"{place} has {len(form)} choices, but the plan has {len(factors)} steps")
    axes = [axis(entry) if isinstance(entry, str | int) else None for entry in form]
    boxes = split_region(whole, axes, factors)
    parts = list(zip(range(len(boxes)), boxes, _terms(form, factors), strict=True))
    inner = len(parts)
    for entry, factor in zip(form, factors, strict=True):
        inner //= factor
        if isinstance(entry, At):
            if not 0 <= entry.group < factor:
                raise PlanError(f"{place} takes part in group {entry.group} of {factor}")
            parts = [part for part in parts if part[0] // inner % factor == entry.group]
    return tuple(parts)
