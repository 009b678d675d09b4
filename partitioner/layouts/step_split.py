"""Layouts and strategies as one choice per step (Tofu, section 5.2), and the rules for legal choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, volume, whole
from ...errors import PlanError
from ...support.wording import counted
from ...tdl.ast import AnyReducer, Reducer
from .forms import At, Expanded, Follow, Form, Label, Partial, Workers, expand
from .tiling import check_held, check_tiling, intervals_along

Strategies = tuple[str | Partial | None, ...]
Dimensions = tuple[int | Partial | None, ...]
Choice = tuple[str | int | None, ...]
"""Strategies or dimensions without terms, for code that treats both in the same way."""


def prime_factors(workers: int) -> tuple[int, ...]:
    """Factor `workers` into primes, largest first: 12 gives (3, 2, 2), and 1 gives ()."""
    factors: list[int] = []
    divisor = 2
    while divisor * divisor <= workers:
        while workers % divisor == 0:
            factors.append(divisor)
            workers //= divisor
        divisor += 1
    if workers > 1:
        factors.append(workers)
    return tuple(reversed(factors))


@dataclass(frozen=True, slots=True)
class Layout:
    """Who holds which parts of a tensor between operations."""

    shape: Shape
    """The tensor's shape."""

    form: Form
    """How the tensor is split; for `Steps`, the dimension that each step splits."""

    factors: tuple[int, ...]
    """The number of parts that each step makes."""

    via: Form | None = None
    """Where partial results are reduced on their way home; None if every holder reduces its own part.

    An all-reduce is such a move: parts are reduced on one worker each, then every worker fetches all of them.
    """

    @property
    def dimensions(self) -> Dimensions:
        """Return the dimension that each step splits. Raises PlanError for other forms."""
        return plain_steps(self.form)  # type: ignore[return-value]

    @property
    def regions(self) -> Boxes:
        """Return the region of every part, worker by worker for steps: `[parts, dimensions, 2]`."""
        return self.expanded.boxes

    @property
    def workers(self) -> Workers:
        """Return the worker that holds each part: `[parts]`."""
        return self.expanded.workers

    @property
    def stop(self) -> Layout | None:
        """Return the holdings in which partial results are reduced on their way home, if there are any."""
        return None if self.via is None else Layout(self.shape, self.via, self.factors)

    @property
    def expanded(self) -> Expanded:
        """Return the parts that the form stands for."""
        return expand(self.form, whole(self.shape), self._axis, self.factors)

    def _axis(self, label: Label) -> int:
        if not isinstance(label, int) or not 0 <= label < len(self.shape):
            raise PlanError(
                f"a tensor of shape {self.shape} has no dimension {label!r}; choose one of 0 to "
                f"{len(self.shape) - 1}, or null to replicate"
            )
        return label

    @property
    def parts(self) -> tuple[int, ...]:
        """Count the intervals into which the regions cut each dimension."""
        return intervals_along(self.regions)

    def check_held(self, place: str) -> None:
        """Raise PlanError if a part does not exist, or if a worker would hold an element twice."""
        try:
            check_held(self.expanded, whole(self.shape))
        except PlanError as error:
            raise PlanError(f"{place}: {error}") from error

    def check(self, place: str) -> None:
        """Raise PlanError if a dimension does not exist or has fewer elements than parts."""
        if self.stop is not None:
            self.stop.check(f"{place}, on the way")
        if isinstance(self.form, Follow):
            raise PlanError(f"{place}: only `compose` can tell where a tensor is made; give its parts")
        if not isinstance(self.form, tuple):
            try:
                check_tiling(self.expanded, whole(self.shape))
            except PlanError as error:
                raise PlanError(f"{place}: {error}") from error
            return
        extents = list(self.shape)
        _check_steps(self.form, self.factors, place)
        for step, (dimension, factor) in enumerate(zip(self.form, self.factors, strict=True)):
            if isinstance(dimension, At):
                _check_group(dimension, factor, f"{place}, step {step + 1}")
            if dimension is None or isinstance(dimension, At | Partial):
                continue
            try:
                axis = self._axis(dimension)
            except PlanError as error:
                raise PlanError(f"{place}, step {step + 1}: {error}") from error
            if extents[axis] < factor:
                raise PlanError(
                    f"{place}, step {step + 1}: dimension {dimension} has "
                    f"{counted(extents[axis], 'element')} left in a group, too few for {factor} parts"
                )
            extents[axis] //= factor


@dataclass(frozen=True, slots=True, eq=False)
class OperationParts:
    """The tasks of an operation."""

    workers: Workers
    """The worker of each task: `[tasks]`."""

    boxes: Boxes
    """The box of each task in the iteration space: `[tasks, variables, 2]`."""

    read: Workers
    """The number of the term of its inputs that each task reads: `[tasks]`."""

    reads: int
    """The number of terms that are read; 1 if all inputs are reduced."""

    term: Workers
    """The number of the partial result that each task computes: `[tasks]`."""

    terms: int
    """The number of partial results; 1 if the outputs are only concatenated."""

    reduced: tuple[str, ...]
    """The variables whose reduction is split."""


def split_operation(bound: Bound, form: Form, factors: Sequence[int]) -> OperationParts:
    """Return the tasks of an operation.

    Partial results are numbered by the term that they read, and within it in the order of their first tasks.
    Raises PlanError if a form names a variable that the operation does not have.
    """

    def axis(label: Label) -> int:
        if label not in bound.variables:
            known = ", ".join(bound.variables)
            raise PlanError(f"{bound.description.name} has no variable {label!r}; choose one of {known}")
        return bound.variables.index(str(label))

    full = bound.full_box
    parts = expand(form, full, axis, factors)
    summed = [a for a, v in enumerate(bound.variables) if bound.kind(v) == "reduce"]
    reducing = [a for a in summed if (parts.boxes[:, a] != full[a]).any()]
    term, terms = parts.term, parts.terms
    if reducing:
        numbers: dict[bytes, int] = {}
        intervals = np.ascontiguousarray(parts.boxes[:, reducing])
        within = [numbers.setdefault(each.tobytes(), len(numbers)) for each in intervals]
        term, terms = term * len(numbers) + np.array(within, np.int64), terms * len(numbers)
    return OperationParts(
        parts.workers,
        parts.boxes,
        parts.term,
        parts.terms,
        term,
        terms,
        tuple(bound.variables[a] for a in reducing),
    )


def reducer_of(bound: Bound, parts: OperationParts) -> AnyReducer | None:
    """Return what combines the partial results; None if there is one.

    Raises PlanError if they would have to be combined in two ways.
    """
    reducers = {reducer for v in parts.reduced if (reducer := bound.reducer(v)) is not None}
    if parts.reads > 1:
        reducers.add(Reducer.SUM)
    if len(reducers) > 1:
        both = " and ".join(sorted(map(str, reducers)))
        raise PlanError(
            f"{bound.description.name} cannot be reduced by {both} at once; split it along other variables"
        )
    return reducers.pop() if reducers else None


def is_stepped(forms: Iterable[Layout | Form]) -> bool:
    """Tell whether all forms are one label, or None, for each step."""
    for each in forms:
        form = each.form if isinstance(each, Layout) else each
        if not isinstance(form, tuple):
            return False
        for entry in form:
            if isinstance(entry, At | Partial):
                return False
        if isinstance(each, Layout) and each.via is not None:
            return False
    return True


def plain_steps(form: Form) -> Choice:
    """Return the entries of a form that is one choice per step. Raises PlanError for any other form."""
    if not is_stepped([form]):
        raise PlanError(
            f"{form} is not one label, or None, for each step; `tofu.explain` lists the parts of any form"
        )
    return form  # type: ignore[return-value]


def check_strategies(bound: Bound, form: Form, factors: Sequence[int], place: str) -> None:
    """Raise PlanError if a variable has no strategy or has fewer values than parts."""
    if not isinstance(form, tuple):
        try:
            parts = split_operation(bound, form, factors)
            if not len(parts.workers):
                raise PlanError("no worker has a part; give at least one")
            read = Expanded(parts.workers, parts.boxes, parts.read, parts.reads)
            check_tiling(read, bound.full_box)
            _check_terms(bound, parts)
        except PlanError as error:
            raise PlanError(f"{place}: {error}") from error
        cut = (parts.boxes != bound.full_box).any(axis=(0, 2))
        for variable, apart in zip(bound.variables, cut.tolist(), strict=True):
            if apart and bound.kind(variable) is None:
                raise _no_strategy(bound, variable, place)
        return
    left: dict[Label, int] = {}
    left.update(bound.extents)
    _check_steps(form, factors, place)
    for step, (entry, factor) in enumerate(zip(form, factors, strict=True)):
        here = f"{place}, step {step + 1}"
        if isinstance(entry, At):
            _check_group(entry, factor, here)
        if entry is None or isinstance(entry, At | Partial):
            continue
        if entry not in left or bound.kind(str(entry)) is None:
            raise _no_strategy(bound, entry, here)
        if left[entry] < factor:
            raise PlanError(
                f"{here}: {entry!r} has {counted(left[entry], 'value')} left in a group, too few for "
                f"{factor} parts"
            )
        left[entry] //= factor


def _check_terms(bound: Bound, parts: OperationParts) -> None:
    """Raise PlanError unless the tasks of every term make all of the output."""
    axes = [bound.variables.index(variable) for variable in parts.reduced]
    whole = bound.full_box
    for term in range(parts.terms):
        boxes = np.unique(parts.boxes[parts.term == term], axis=0)
        needed = whole.copy()
        if len(boxes):
            needed[axes] = boxes[0, axes]
        made, all_of_it = int(volume(boxes).sum()), int(volume(needed))
        if made != all_of_it:
            raise PlanError(
                f"partial result {term} of {parts.terms} is made for {made} of {all_of_it} elements; every "
                f"part of {', '.join(parts.reduced)} needs tasks for the whole output"
            )


def _no_strategy(bound: Bound, variable: Label, place: str) -> PlanError:
    offered = [v for v in bound.variables if bound.kind(v) is not None]
    return PlanError(
        f"{place}: {bound.description.name} cannot be split along {variable!r}; "
        f"its strategies are along {', '.join(offered) or 'no variable'}"
    )


def _check_group(entry: At, factor: int, place: str) -> None:
    if not 0 <= entry.group < factor:
        raise PlanError(f"{place}: there is no group {entry.group}; groups are numbered 0 to {factor - 1}")


def _check_steps(choices: Sequence[object], factors: Sequence[int], place: str) -> None:
    if len(choices) != len(factors):
        raise PlanError(
            f"{place}: {counted(len(choices), 'choice')} for {counted(len(factors), 'step')}; "
            "give one for each"
        )
