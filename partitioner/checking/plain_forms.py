"""The checker's own reading of forms: the worker and the box of every part, in plain Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import assert_never

from ...analyzer.indices.region import Region
from ...errors import PlanError
from ...programs.plain_regions import split_region
from ..layouts.forms import At, Cut, Follow, Form, Label, Parts, Spread, Steps

PlainParts = tuple[tuple[int, Region], ...]
"""The worker and the box of every part."""


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
            if len(named) != prod(counts) or min(counts, default=1) < 1:
                raise PlanError(f"{place} has {prod(counts)} parts, but {len(named)} workers are named")
            axes = [None if label is None else axis(label) for label, _ in degrees]
            parts = tuple(zip(named, split_region(whole, axes, counts), strict=True))
        case Cut(along=along, bounds=bounds, workers=named):
            at = axis(along)
            edges = [whole[at][0], *bounds, whole[at][1]]
            if len(named) != len(bounds) + 1:
                raise PlanError(f"{place} has {len(bounds) + 1} parts, but {len(named)} workers are named")
            parts = tuple(
                (worker, (*whole[:at], (edges[number], edges[number + 1]), *whole[at + 1 :]))
                for number, worker in enumerate(named)
            )
        case Parts(boxes=boxes):
            parts = boxes
        case Follow():
            raise PlanError(f"{place} follows an operation; only a tensor that an operation makes can")
        case _:
            assert_never(form)
    for worker, box in parts:
        if not 0 <= worker < workers:
            raise PlanError(f"{place} names worker {worker}; workers are numbered 0 to {workers - 1}")
        if len(box) != len(whole):
            raise PlanError(f"{place} has a box with {len(box)} intervals, but {len(whole)} axes")
    if len(set(parts)) != len(parts):
        raise PlanError(f"{place} has the same part on one worker twice")
    return parts


def _steps(
    form: Steps, whole: Region, axis: Callable[[Label], int], factors: Sequence[int], place: str
) -> PlainParts:
    if len(form) != len(factors):
        raise PlanError(f"{place} has {len(form)} choices, but the plan has {len(factors)} steps")
    axes = [None if entry is None or isinstance(entry, At) else axis(entry) for entry in form]
    parts = list(enumerate(split_region(whole, axes, factors)))
    inner = len(parts)
    for entry, factor in zip(form, factors, strict=True):
        inner //= factor
        if isinstance(entry, At):
            if not 0 <= entry.group < factor:
                raise PlanError(f"{place} takes part in group {entry.group} of {factor}")
            parts = [(w, box) for w, box in parts if w // inner % factor == entry.group]
    return tuple(parts)
