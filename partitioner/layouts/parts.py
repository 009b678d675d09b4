"""The parts of a plan one by one, whatever the forms that it is written in.

Two forms with the same parts are the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import to_regions
from ...programs.parts import Holding, Task
from .forms import Form
from .step_split import Layout, OperationParts, split_operation


def holdings(layout: Layout) -> tuple[Holding, ...]:
    """Return what workers hold of a tensor."""
    found = layout.expanded
    terms = numbers(found.term.tolist(), found.terms)
    return tuple(map(Holding, found.workers.tolist(), to_regions(found.boxes), terms))


class Held:
    """The holdings of layouts. Equal layouts are expanded once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Holding, ...]] = {}

    def of(self, layout: Layout) -> tuple[Holding, ...]:
        """Return what workers hold of a tensor."""
        key = layout.shape, layout.form, layout.factors
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = holdings(layout)
        return found


class Computed:
    """The tasks of operators. Equal ones are expanded once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Task, ...]] = {}

    def of(self, bound: Bound, form: Form, factors: tuple[int, ...]) -> tuple[Task, ...]:
        """Return what workers compute of an operation. Raises PlanError as `tasks`."""
        key = bound, form, factors
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tasks(*key)
        return found


def tasks(bound: Bound, form: Form, factors: tuple[int, ...]) -> tuple[Task, ...]:
    """Return what workers compute of an operation. Raises PlanError if a variable does not exist."""
    return tasks_of(split_operation(bound, form, factors))


def tasks_of(parts: OperationParts) -> tuple[Task, ...]:
    """Return the tasks of an operation that is split."""
    terms, reads = numbers(parts.term.tolist(), parts.terms), numbers(parts.read.tolist(), parts.reads)
    return tuple(map(Task, parts.workers.tolist(), to_regions(parts.boxes), terms, reads))


def numbers(term: Iterable[int], terms: int) -> Iterable[int | None]:
    """Return the numbers of terms; None for each part if there is one term alone."""
    return term if terms > 1 else repeat(None)


def without_part(parts: Iterable[Task] | Iterable[Holding], workers: int) -> tuple[int, ...]:
    """Return the workers that have no part."""
    return tuple(sorted(set(range(workers)) - {part.worker for part in parts}))
