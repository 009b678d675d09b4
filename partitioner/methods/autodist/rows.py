"""Sparse variables by rows: workers exchange indices and rows in place of whole tensors, if that moves less.

A sparse variable is read at indices that are read from a tensor. Its gradient follows from these indices and
from the gradients of the rows that they chose, of which there are as many as the batch has indices. So shapes
are known, and rows need no rewrite: they are what the operations read.

    gradient    the operation that makes it runs for all samples on the workers that hold the variable; they
                fetch indices and the gradients of rows
    lookup      the operation that reads rows runs for all samples where they are held; every worker fetches
                those of its samples
    masked      if the variable is cut in rows, each holder looks up the rows that it has and sums to 0 where
                others have them, after a rewrite of the graph (`masked_lookups`); each worker sums these
                partial results for its samples

The first two are layouts of the same graph, so the sums have the order of one worker. Every choice is counted
as a whole plan, and the one that moves the fewest bytes is taken; of equal ones, the one with fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ....dataflow.graph import Operation, Phase, Role
from ....dataflow.rewrites.encoders import NO_REWRITE
from ....errors import PlanError
from ...layouts.forms import Form
from ...layouts.step_split import prime_factors
from ..flexflow.soap import Soap
from .strategy import Synchronisation, has_two_levels
from .variables import TrainedVariable

Computed = Callable[[Operation, int], Form]
"""Returns the form in which an operation runs where the parts of a variable are that one of its tensors has.

Raises PlanError if it cannot be split so.
"""


@dataclass(frozen=True, slots=True)
class RowForms:
    """Forms of operations that exchange rows."""

    operations: dict[str, Form]
    """The forms of operations where the variable is held."""

    tensors: dict[str, Form]
    """The forms of tensors that they make."""

    copied: str | None = None
    """A variable that needs no copy on every worker, as they read its rows."""


def check_rows(variable: TrainedVariable, how: Synchronisation) -> None:
    """Raise PlanError naming a sparse variable whose rows would be encoded or relayed.

    Also raise it for a variable that is not sparse, if its lookups are to be masked.
    """
    name = variable.tensor.name
    if how.masked and not variable.sparse:
        raise PlanError(
            f"variable {name!r} is not read at rows that data choose, so no sums are masked; leave out "
            "'masked'"
        )
    if how.masked and (how.rewrite != NO_REWRITE or how.part_rewrites or how.by_arrival):
        raise PlanError(
            f"variable {name!r} exchanges sums of masked rows, so its gradient is neither encoded nor "
            "delayed nor applied by arrival; leave out 'masked' or the others"
        )
    if (
        (how.rows or how.masked)
        and variable.sparse
        and (how.rewrite.encoder is not None or how.factors or any(map(has_two_levels, how.parts)))
    ):
        raise PlanError(
            f"variable {name!r} exchanges rows, which are not encoded, not made from factors "
            "and not summed in two levels; leave out 'rows' or the others"
        )


def masked_forms(
    soap: Soap, variable: TrainedVariable, computed: Computed, summed: Computed, held: Form
) -> RowForms:
    """Return the forms in which the parts of a table are looked up, each by who holds it, for all samples.

    `summed` returns those of operations that sum over a dimension of the variable. The gradient of each part
    is made by who holds it as well. Raises PlanError if an operation cannot be split so.
    """
    operations, tensors = _gradient(soap, variable, computed)
    by_name = {operation.name: operation for operation in soap.graph.operations}
    for name in variable.readers:
        if by_name[name].phase is Phase.FORWARD:
            operations[name] = summed(by_name[name], variable.tensor.index)
    return RowForms(operations, dict.fromkeys(tensors, held))


def row_choices(soap: Soap, variable: TrainedVariable, computed: Computed, held: Form) -> Iterator[RowForms]:
    """Yield the forms in which a sparse variable, held so, exchanges rows for gradients and for lookups."""
    graph = soap.graph
    if not variable.sparse:
        return
    with suppress(PlanError):
        operations, tensors = _gradient(soap, variable, computed)
        yield RowForms(operations, dict.fromkeys(tensors, held))
    by_name = {operation.name: operation for operation in graph.operations}
    readers = [by_name[name] for name in variable.readers]
    lookups = [each for each in readers if each.phase is Phase.FORWARD]
    with suppress(PlanError):
        placed = {each.name: computed(each, variable.tensor.index) for each in lookups}
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


def _gradient(soap: Soap, variable: TrainedVariable, computed: Computed) -> tuple[dict[str, Form], list[str]]:
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
        if operation.phase is Phase.UPDATE:
            raise PlanError(f"{operation.name!r} keeps the gradient of {variable.tensor.name!r}")
        operations[operation.name] = computed(operation, tensor)
        tensors.append(graph.tensors[tensor].name)
        waiting += [each for each in operation.inputs if each in terms]
    return operations, tensors
