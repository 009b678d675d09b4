"""The compact forms in which plans say who computes or holds what, and the parts that each stands for.

An operation's form names index variables, a tensor's form names dimensions. Every form expands to parts: a
box on a worker, several on one worker, or none. A plan means its parts alone; two forms with the same parts
are the same plan.

A part has a *term*, too. A value that is not reduced yet is the sum of its terms, and an operation that reads
one makes terms of its outputs. Without `Partial` there is one term, number 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import prod
from typing import assert_never

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Boxes, Region, split
from ...errors import PlanError
from ...support.wording import counted

Label = str | int
"""An index variable of an operation, or a dimension of a tensor."""

Workers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class At:
    """An entry of `Steps`: of the groups that the step makes, only one takes part."""

    group: int
    """The number of the group."""

    def __str__(self) -> str:
        return f"@{self.group}"


@dataclass(frozen=True, slots=True)
class Partial:
    """An entry that gives every part another term of a value that is not reduced yet."""

    def __str__(self) -> str:
        return "partial"


Entry = Label | At | Partial | None

Steps = tuple[Entry, ...]
"""One entry for each factor of the worker count: what the step splits, None to repeat, or a special one."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Even parts along several labels, each on a worker of its own choice."""

    degrees: tuple[tuple[Label | Partial | None, int], ...]
    """Pairs of a label and its number of parts, the most significant first; None repeats."""

    workers: tuple[int, ...]
    """The worker of every part, parts in row-major order."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Uneven parts along one label."""

    along: Label
    """The label."""

    bounds: tuple[int, ...]
    """The places between neighbouring parts, in ascending order."""

    workers: tuple[int, ...]
    """The worker of every part: one more than there are bounds."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Any boxes on any workers."""

    boxes: tuple[tuple[int, Region] | tuple[int, Region, int], ...]
    """A worker and its box, and the number of the term if there are several."""


@dataclass(frozen=True, slots=True)
class Follow:
    """A tensor's form: every worker holds what it computes of the tensor."""


Form = Steps | Spread | Cut | Parts | Follow


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """The parts that a form stands for."""

    workers: Workers
    """The worker of each part: `[parts]`."""

    boxes: Boxes
    """The box of each part: `[parts, d, 2]`."""

    term: Workers
    """The number of each part's term: `[parts]`."""

    terms: int = 1
    """The number of terms; 1 if the value is reduced."""


def check_form(form: object, place: str) -> Form:
    """Return a value that is a form. Raises PlanError naming the place of another value."""
    match form:
        case Follow():
            return form
        case tuple() if all(entry is None or isinstance(entry, Label | At | Partial) for entry in form):
            return form
        case Spread(degrees=tuple() as degrees, workers=tuple() as workers):
            pairs = [pair for pair in degrees if isinstance(pair, tuple) and len(pair) == 2]
            labels = [label is None or isinstance(label, Label | Partial) for label, _ in pairs]
            counts = [isinstance(count, int) and count > 0 for _, count in pairs]
            if len(pairs) == len(degrees) and all(labels) and all(counts) and _integers(workers):
                return form
        case Cut(along=str() | int(), bounds=tuple() as bounds, workers=tuple() as workers):
            if _integers(bounds) and _integers(workers):
                return form
        case Parts(boxes=tuple() as boxes):
            if all(map(_is_part, boxes)):
                return form
    raise PlanError(
        f"{place}: {str(form)[:80]} is not a form; write an entry for each step, Spread, Cut, Parts or "
        "Follow, with tuples of labels and whole numbers"
    )


def _integers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _is_part(value: object) -> bool:
    """Tell whether a value is a worker and a region, and maybe a term."""
    match value:
        case (worker, tuple() as region, *term) if len(term) < 2:
            pairs = all(isinstance(interval, tuple) and len(interval) == 2 for interval in region)
            return pairs and _integers([worker, *chain.from_iterable(region), *term])
        case _:
            return False


def expand(form: Form, whole: Boxes, axis_of: Callable[[Label], int], factors: Sequence[int]) -> Expanded:
    """Return the parts of `whole` that a form stands for.

    `axis_of` gives a label's axis. `factors` are those of the plan: steps split by them, and their product is
    the number of workers. Raises PlanError if the form does not fit.
    """
    found = _expanded(form, whole, axis_of, factors)
    count = prod(factors)
    missing = [worker for worker in found.workers.tolist() if not 0 <= worker < count]
    if missing:
        raise PlanError(f"there is no worker {missing[0]}; workers are numbered 0 to {count - 1}")
    return found


def _expanded(form: Form, whole: Boxes, axis_of: Callable[[Label], int], factors: Sequence[int]) -> Expanded:
    match form:
        case tuple():
            return _expand_steps(form, whole, axis_of, factors)
        case Spread(degrees=degrees, workers=workers):
            entries, counts = [label for label, _ in degrees], [degree for _, degree in degrees]
            if len(workers) != prod(counts):
                number, verb = counted(prod(counts), "part"), "is" if prod(counts) == 1 else "are"
                raise PlanError(
                    f"{number} {verb} spread over {counted(len(workers), 'worker')}; name one for each"
                )
            boxes = split(whole, [_axis(entry, axis_of) for entry in entries], counts)
            partial = [isinstance(entry, Partial) for entry in entries]
            return Expanded(np.array(workers, np.int64), boxes, *numbered(partial, counts))
        case Cut(along=along, bounds=bounds, workers=workers):
            return _reduced(workers, _cut(whole, axis_of(along), bounds, len(workers)))
        case Parts(boxes=listed):
            shape = (len(listed), *whole.shape)
            if any(len(box) != len(whole) for _, box, *_ in listed):
                raise PlanError(f"every box needs {counted(len(whole), 'interval')}")
            boxes = np.array([box for _, box, *_ in listed], np.int64)
            parts = _reduced([worker for worker, *_ in listed], boxes.reshape(shape))
            term = [part[2] if len(part) > 2 else 0 for part in listed]
            return replace(parts, term=np.array(term, np.int64), terms=_counted(term))
        case Follow():
            raise PlanError("only a tensor that an operation makes can follow it")
        case _:
            assert_never(form)


def _reduced(workers: Sequence[int], boxes: Boxes) -> Expanded:
    return Expanded(np.array(workers, np.int64), boxes, np.zeros(len(boxes), np.int64))


def _axis(entry: Entry, axis_of: Callable[[Label], int]) -> int | None:
    return None if entry is None or isinstance(entry, At | Partial) else axis_of(entry)


def numbered(partial: Sequence[bool], counts: Sequence[int]) -> tuple[Workers, int]:
    """Return the term of every part in row-major order, and the number of terms.

    `counts` are the numbers of parts of each level. At the levels where `partial` holds, parts have terms of
    their own.
    """
    inner = prod(counts)
    term, terms = np.zeros(inner, np.int64), 1
    if not any(partial):
        return term, terms
    parts = np.arange(inner, dtype=np.int64)
    for has_terms, count in zip(partial, counts, strict=True):
        inner //= count
        if has_terms:
            term = term * count + parts // inner % count
            terms *= count
    return term, terms


def _counted(term: Sequence[int]) -> int:
    """Count terms. Raises PlanError unless they are numbered from 0 without gaps."""
    found = sorted(set(term))
    if found != list(range(len(found))):
        raise PlanError(f"terms are numbered {found}; number them from 0 without gaps")
    return max(len(found), 1)


def _expand_steps(
    form: Steps, whole: Boxes, axis_of: Callable[[Label], int], factors: Sequence[int]
) -> Expanded:
    if len(form) != len(factors):
        raise PlanError(f"{counted(len(form), 'choice')} for {counted(len(factors), 'step')}")
    boxes = split(whole, [_axis(entry, axis_of) for entry in form], factors)
    term, terms = numbered([isinstance(entry, Partial) for entry in form], factors)
    workers = np.arange(len(boxes), dtype=np.int64)
    inner = len(boxes)
    for entry, factor in zip(form, factors, strict=True):
        inner //= factor
        if isinstance(entry, At):
            if not 0 <= entry.group < factor:
                raise PlanError(f"there is no group {entry.group} of {factor}")
            here = workers // inner % factor == entry.group
            workers, boxes, term = workers[here], boxes[here], term[here]
    return Expanded(workers, boxes, term, terms)


def _cut(whole: Boxes, axis: int, bounds: Sequence[int], parts: int) -> Boxes:
    lower, upper = whole[axis].tolist()
    edges = [lower, *bounds, upper]
    if len(edges) != parts + 1 or any(a > b for a, b in pairwise(edges)):
        raise PlanError(
            f"bounds {list(bounds)} do not cut {lower} to {upper} into {parts} parts; they must ascend, one "
            "fewer than there are workers"
        )
    boxes = np.repeat(whole[None], parts, axis=0)
    boxes[:, axis, 0], boxes[:, axis, 1] = edges[:-1], edges[1:]
    return boxes
