"""Find operations that could be one: those that share an input, and those whose results are only summed.

    siblings    the same bound operator for each, and the same tensor as one input: products of all time
                steps with a weight; queries, keys and values from the same activations
    terms       the same bound operator for each, and the results are only added up: the gradients of a
                weight from all time steps

Operators are compared by what they are bound to, never by name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...tdl import ast
from ..graph import Graph, Operation, Phase


@dataclass(frozen=True, slots=True)
class Candidate:
    """Operations that could be one."""

    members: tuple[int, ...]
    """The indices of the operations, in the order of the graph; two or more."""

    total: int | None = None
    """The tensor that is the sum of what the members make, and perhaps of others; None for siblings."""


def candidates(graph: Graph) -> list[Candidate]:
    """Return all candidates. An operation may belong to several."""
    fit = [operation for operation in graph.operations if _fits(graph, operation)]
    return [*_sums(graph, fit), *_siblings(fit)]


def _fits(graph: Graph, operation: Operation) -> bool:
    """Tell whether an operation has a derived kernel and one result, which overwrites nothing."""
    bound = operation.bound
    return (
        operation.phase is not Phase.UPDATE
        and len(operation.outputs) == 1
        and graph.tensors[operation.outputs[0]].alias is None
        and bound.kernel is None
        and not bound.description.opaques
        and bool(bound.read_places)
    )


def _siblings(operations: Sequence[Operation]) -> Iterator[Candidate]:
    """Yield the groups with the same operator and the same tensor in one place where the others differ."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for operation in operations:
        for place, _ in operation.bound.read_places:
            key = (operation.bound, operation.phase, operation.micro_batch, place, operation.inputs[place])
            groups[key].append(operation.index)
    for members in groups.values():
        if len(members) > 1:
            yield Candidate(tuple(members))


def _sums(graph: Graph, operations: Sequence[Operation]) -> Iterator[Candidate]:
    """Yield the groups with the same operator whose results are added up."""
    fit = {output: operation for operation in operations for output in operation.outputs}
    reads = Counter(index for operation in graph.operations for index in operation.inputs)
    reads.update(graph.outputs)
    additions = {
        output: operation for output, operation in fit.items() if is_addition(operation.bound.description)
    }
    inner = {
        index: additions[index]
        for addition in additions.values()
        for index in addition.inputs
        if index in additions and reads[index] == 1
    }
    for total in additions.keys() - inner.keys():
        groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for term in addition_tree(additions[total], inner.get)[1]:
            if term in fit and reads[term] == 1:
                made = fit[term]
                groups[made.bound, made.phase, made.micro_batch].append(made.index)
        for members in groups.values():
            if len(members) > 1:
                yield Candidate(tuple(sorted(members)), total)


def addition_tree(
    root: Operation, inner: Callable[[int], Operation | None]
) -> tuple[list[Operation], list[int]]:
    """Return the additions whose results reach that of `root`, which is the first, and the terms they add.

    `inner` returns the addition that makes a tensor, if nothing else reads the tensor, and None otherwise.
    """
    additions: list[Operation] = []
    terms: list[int] = []
    waiting = [root]
    while waiting:
        additions.append(waiting.pop())
        for index in additions[-1].inputs:
            made = inner(index)
            if made is None:
                terms.append(index)
            else:
                waiting.append(made)
    return additions, terms


def is_addition(description: ast.Description) -> bool:
    """Tell whether a description adds two tensors, element by element."""
    if len(description.outputs) != 1:
        return False
    (output,) = description.outputs
    indices = tuple(ast.Variable(binder.name) for binder in output.variables)
    match output.body:
        case ast.Binary("+", ast.Element(first, left), ast.Element(second, right)):
            return first != second and left == right == indices
        case _:
            return False
