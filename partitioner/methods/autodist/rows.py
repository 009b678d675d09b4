"""Sparse variables by rows: workers exchange indices and rows in place of whole tensors, if that moves less.

A sparse variable is read at indices that are read from a tensor. Its gradient follows from these indices and
from the gradients of the rows that they chose, of which there are as many as the batch has indices. So shapes
are known, and rows need no rewrite: they are what the operations read.

    gradient    the operation that makes it runs for all samples on the workers that hold the variable; they
                fetch indices and the gradients of rows
    lookup      the operation that reads rows runs for all samples where they are held; every worker fetches
                those of its samples

Both are layouts of the same graph, so the sums have the order of one worker. Every choice is counted as a
whole plan, and the one that moves the fewest bytes is taken; of equal ones, the one with fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....analyzer.indices.region import Boxes
from ....dataflow.graph import Graph, Operation, Phase, Role
from ....errors import PlanError
from ...layouts.copies import Copy
from ...layouts.forms import Form, Label
from ...layouts.step_split import prime_factors
from ...layouts.uses import Use, touched
from ...plans.compose import compose
from ...plans.plan import Plan
from ..flexflow.soap import Soap
from .strategy import Synchronisation
from .variables import TrainedVariable

Place = Callable[[Boxes, int, Label], Form]
"""Returns the form that has the parts of a variable, from a whole box, and an axis with its label."""


@dataclass(frozen=True, slots=True)
class PlanForms:
    """The forms of a plan."""

    operations: Mapping[str, Form]
    """Those of operations."""

    tensors: Mapping[str, Form]
    """Those of tensors."""

    copies: Mapping[str, Sequence[Copy]]
    """The copies of tensors."""

    def plan(self, graph: Graph, workers: int) -> Plan:
        """Return the plan of these forms."""
        return compose(graph, workers, self.operations, self.tensors, copies=self.copies)


@dataclass(frozen=True, slots=True)
class RowForms:
    """Forms of operations that exchange rows."""

    operations: dict[str, Form]
    """The forms of operations where the variable is held."""

    tensors: dict[str, Form]
    """The forms of tensors that they make."""

    copied: str | None = None
    """A variable that needs no copy on every worker, as they read its rows."""

    def onto(self, forms: PlanForms) -> PlanForms:
        """Return the forms of a plan with these instead of its own."""
        copies = {name: each for name, each in forms.copies.items() if name != self.copied}
        return PlanForms({**forms.operations, **self.operations}, {**forms.tensors, **self.tensors}, copies)


def check_rows(variable: TrainedVariable, how: Synchronisation) -> None:
    """Raise PlanError naming a sparse variable whose rows would be encoded or relayed."""
    if how.rows and variable.sparse and (how.relay is not None or how.rewrite.encoder is not None):
        raise PlanError(
            f"variable {variable.tensor.name!r} exchanges rows, which are neither encoded nor summed in two "
            "levels; leave out 'rows' or the others"
        )


def with_rows(graph: Graph, workers: int, forms: PlanForms, choices: Iterable[RowForms]) -> Plan:
    """Return the plan in which each choice is taken that moves fewer bytes, one after the other."""
    plan = forms.plan(graph, workers)
    for choice in choices:
        changed = choice.onto(forms)
        try:
            other = changed.plan(graph, workers)
        except PlanError:
            continue
        if other.cost_bytes < plan.cost_bytes:
            plan, forms = other, changed
    return plan


def row_choices(
    soap: Soap, variable: TrainedVariable, axis: int | None, place: Place, held: Form
) -> Iterator[RowForms]:
    """Yield the forms in which a sparse variable, held so, exchanges rows for gradients and for lookups.

    `axis` is the dimension along which the variable has parts, None if it is whole.
    """
    graph = soap.graph
    if not variable.sparse:
        return
    found = _gradient(soap, variable, axis, place)
    if found is not None:
        operations, tensors = found
        yield RowForms(operations, dict.fromkeys(tensors, held))
    by_name = {operation.name: operation for operation in graph.operations}
    readers = [by_name[name] for name in variable.readers]
    lookups = [each for each in readers if each.phase is Phase.FORWARD]
    forms = [_placed(soap, each, axis, place, variable.tensor.index) for each in lookups]
    if all(form is not None for form in forms):
        placed = {each.name: form for each, form in zip(lookups, forms, strict=True) if form is not None}
        chosen = {name: form for each in lookups for name, form in _by_samples(soap, each)}
        yield RowForms(placed, chosen, variable.tensor.name)


def _by_samples(soap: Soap, lookup: Operation) -> Iterator[tuple[str, Form]]:
    """Yield the results of a lookup, with the form in which each worker has those of its samples."""
    samples = soap.batch.get(lookup.index)
    for output, tensor in enumerate(lookup.outputs):
        made, found = soap.graph.tensors[tensor], soap.indexing[lookup.index]
        at = [] if samples is None else sorted(found.dimensions(samples, output))
        if len(at) == 1 and made.shape[at[0]] >= soap.workers:
            yield made.name, (at[0],) * len(prime_factors(soap.workers))


def _gradient(
    soap: Soap, variable: TrainedVariable, axis: int | None, place: Place
) -> tuple[dict[str, Form], list[str]] | None:
    """Return the forms of the operations that make a variable's gradient, and the tensors that they make."""
    graph = soap.graph
    maker = {tensor: each for each in graph.operations for tensor in each.outputs}
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    names = set(variable.together)
    waiting = [t.index for t in graph.tensors if t.name in names and t.role is Role.GRADIENT]
    operations: dict[str, Form] = {}
    tensors = []
    while waiting:
        tensor = waiting.pop()
        operation = maker[tensor]
        form = _placed(soap, operation, axis, place, tensor)
        if operation.phase is Phase.UPDATE or form is None:
            return None
        operations[operation.name] = form
        tensors.append(graph.tensors[tensor].name)
        waiting += [each for each in operation.inputs if each in terms]
    return operations, tensors


def _placed(soap: Soap, operation: Operation, axis: int | None, place: Place, tensor: int) -> Form | None:
    """Return the form in which an operation runs where the parts of a tensor that it touches are."""
    bound, found = operation.bound, soap.indexing[operation.index]
    if axis is None:
        return place(bound.full_box, 0, 0)
    uses: list[Use] = [use for touching, use in touched(operation) if touching == tensor]
    labels = [
        label
        for label in bound.splits
        if bound.kind(label) == "concat" and all(found.dimensions(label, use) == {axis} for use in uses)
    ]
    if len(labels) != 1:
        return None
    return place(bound.full_box, bound.variables.index(labels[0]), labels[0])
