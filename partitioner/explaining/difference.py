"""Compare two plans for one graph: their different choices, and the bytes that move for each.

Choices are compared by their parts: two forms that stand for the same parts are the same choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region
from ...dataflow.graph import Graph
from ...errors import PlanError
from ..layouts.copies import Copy
from ..layouts.forms import Form
from ..layouts.order import in_order
from ..layouts.parts import holdings, tasks
from ..layouts.step_split import Layout
from ..plans.plan import Plan

PartSet = frozenset[tuple[int, Region, int | None]]
"""Workers, boxes and terms of the parts of a choice."""


@dataclass(frozen=True, slots=True)
class Change:
    """An operation or tensor that differs between two plans."""

    name: str
    """The name of the operation or tensor."""

    choices: tuple[Form, Form]
    """Its choice in each plan."""

    via: tuple[Form | None, Form | None]
    """Where each plan reduces partial results of the tensor on their way home; None if at home."""

    bytes: tuple[int, int]
    """The bytes that move for it in each plan."""


@dataclass(frozen=True, slots=True)
class ChangedCopies:
    """A tensor of which two plans keep different copies."""

    tensor: str
    """The tensor's name."""

    copies: tuple[tuple[Copy, ...], tuple[Copy, ...]]
    """Its copies in each plan."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """An operation that comes at different places in the orders of two plans."""

    operation: str
    """The operation's name."""

    places: tuple[int, int]
    """Its place in each plan, from 1 on."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs; pairs are (first plan, second plan)."""

    methods: tuple[str, str]
    """The methods that found the plans."""

    factors: tuple[tuple[int, ...], tuple[int, ...]]
    """The factors of the plans."""

    cost_bytes: tuple[int, int]
    """The costs of the plans."""

    step_cost_bytes: tuple[tuple[int, ...], tuple[int, ...]]
    """The costs of their steps."""

    operators: tuple[Change, ...]
    """Operations that are split differently, or whose tensors are laid out so that other bytes move.

    The largest change in bytes comes first.
    """

    tensors: tuple[Change, ...]
    """Tensors that are laid out differently, the largest change in bytes first."""

    copies: tuple[ChangedCopies, ...]
    """Tensors with different copies, in the order of the graph."""

    order: tuple[Reordered, ...]
    """Operations at different places, in the order of the first plan."""


def difference(graph: Graph, first: Plan, second: Plan) -> Difference:
    """Compare two plans for `graph`, which may be for different numbers of workers.

    Raises PlanError if either is not a plan for `graph`.
    """
    if first.fingerprint != second.fingerprint:
        raise PlanError(
            f"the plans are for different graphs, with fingerprints {first.fingerprint[:16]} and "
            f"{second.fingerprint[:16]}; compare plans of one model, batch size and optimizer"
        )
    first.check_forms(graph)
    second.check_forms(graph)
    by_operation, by_tensor = zip(*(_moved(graph, plan) for plan in (first, second)), strict=True)
    expanded = _Expanded()
    operators = []
    for operation in graph.operations:
        forms = first.strategies[operation.name], second.strategies[operation.name]
        moved = _pair(by_operation, operation.name)
        same = forms[0] == forms[1] or (
            expanded.tasks(operation.bound, forms[0], first.factors)
            == expanded.tasks(operation.bound, forms[1], second.factors)
        )
        if not same or moved[0] != moved[1]:
            operators.append(Change(operation.name, forms, (None, None), moved))
    tensors = []
    for tensor in graph.tensors:
        layouts = first.layouts[tensor.name], second.layouts[tensor.name]
        if not expanded.same(*layouts):
            forms, via = (layouts[0].form, layouts[1].form), (layouts[0].via, layouts[1].via)
            tensors.append(Change(tensor.name, forms, via, _pair(by_tensor, tensor.name)))
    return Difference(
        (first.method, second.method),
        (first.factors, second.factors),
        (first.cost_bytes, second.cost_bytes),
        (first.step_cost_bytes, second.step_cost_bytes),
        _largest_first(operators),
        _largest_first(tensors),
        tuple(_changed_copies(graph, first, second, expanded)),
        tuple(_reordered(graph, first, second)),
    )


class _Expanded:
    """The parts of choices as sets; each choice is expanded once."""

    def __init__(self) -> None:
        self._found: dict[Layout | tuple[Bound, Form, tuple[int, ...]], PartSet] = {}

    def tasks(self, bound: Bound, form: Form, factors: tuple[int, ...]) -> PartSet:
        """Return the tasks of an operation; the terms that they make follow from the rest."""
        key = bound, form, factors
        if key not in self._found:
            self._found[key] = frozenset((part.worker, part.box, part.read) for part in tasks(*key))
        return self._found[key]

    def same(self, first: Layout, second: Layout) -> bool:
        """Tell whether two layouts have the same parts, at home and on the way."""
        if first.form != second.form and self._holdings(first) != self._holdings(second):
            return False
        if first.stop is None or second.stop is None:
            return first.stop is second.stop
        return self.same(first.stop, second.stop)

    def _holdings(self, layout: Layout) -> PartSet:
        if layout not in self._found:
            self._found[layout] = frozenset(
                (part.worker, part.region, part.term) for part in holdings(layout)
            )
        return self._found[layout]


def _changed_copies(graph: Graph, first: Plan, second: Plan, expanded: _Expanded) -> Iterator[ChangedCopies]:
    for tensor in graph.tensors:
        pair = tuple(first.copies.get(tensor.name, ())), tuple(second.copies.get(tensor.name, ()))
        kept = [
            [
                (Layout(tensor.shape, copy.form, plan.factors), frozenset(copy.readers), copy.source)
                for copy in copies
            ]
            for plan, copies in zip((first, second), pair, strict=True)
        ]
        same = len(kept[0]) == len(kept[1]) and all(
            one[1:] == other[1:] and expanded.same(one[0], other[0]) for one, other in zip(*kept, strict=True)
        )
        if not same:
            yield ChangedCopies(tensor.name, pair)


def _reordered(graph: Graph, first: Plan, second: Plan) -> Iterator[Reordered]:
    before, after = in_order(graph, first.written_order), in_order(graph, second.written_order)
    places = {operation.index: place for place, operation in enumerate(after, 1)}
    for place, operation in enumerate(before, 1):
        if places[operation.index] != place:
            yield Reordered(operation.name, (place, places[operation.index]))


def _pair(moved: Sequence[Counter[str]], name: str) -> tuple[int, int]:
    return moved[0][name], moved[1][name]


def _largest_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: -abs(change.bytes[1] - change.bytes[0])))


def _moved(graph: Graph, plan: Plan) -> tuple[Counter[str], Counter[str]]:
    """Count the bytes by operation and by tensor."""
    by_operation: Counter[str] = Counter()
    by_tensor: Counter[str] = Counter()
    for entry in plan.contributions(graph):
        by_operation[entry.operation] += entry.bytes
        by_tensor[entry.tensor] += entry.bytes
    return by_operation, by_tensor
