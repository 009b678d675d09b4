"""The variables of a training graph: parameters that it updates, with all that belongs to them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from ....dataflow.graph import Graph, Operation, Phase, Role, Tensor
from ....errors import PlanError
from ....tdl.ast import Element
from ....tdl.traverse import reads_elements, walk
from ...layouts.uses import touched

LASTING = (Role.PARAMETER, Role.STATE, Role.ACCUMULATOR)


@dataclass(frozen=True, slots=True)
class TrainedVariable:
    """A parameter that the graph updates."""

    tensor: Tensor
    """The parameter."""

    sparse: bool
    """Whether an operation reads rows of it that data choose, so that few rows have a gradient."""

    together: tuple[str, ...]
    """The tensors of its shape that its updates touch and that overwrite none: itself, states, gradients.

    Scalars are left out, and so are states that follow from nothing but themselves: variables share them.
    """

    updates: tuple[Operation, ...]
    """The operations that update it, its states or its accumulator."""

    readers: tuple[str, ...]
    """The other operations that read it."""


def find_variables(graph: Graph) -> tuple[TrainedVariable, ...]:
    """Return the variables of a graph, in its order. A gradient of two variables belongs to the first.

    Raises PlanError if an operation updates two variables.
    """
    roots = graph.roots
    of_update = _updates(graph)
    updates: dict[int, list[Operation]] = {}
    for number, root in of_update.items():
        updates.setdefault(root, []).append(graph.operations[number])
    sparse = set(_chosen_by_data(graph))
    readers: dict[int, list[str]] = {root: [] for root in updates}
    for operation in graph.operations:
        if operation.index not in of_update:
            for read in dict.fromkeys(operation.inputs):
                if read in readers:
                    readers[read].append(operation.name)
    taken = {tensor.index for tensor in graph.tensors if tensor.role is Role.SCALAR}
    for operation in graph.operations:
        if operation.phase is Phase.UPDATE and operation.index not in of_update:
            taken.update(roots[t] for t in operation.outputs if graph.tensors[roots[t]].role in LASTING)
    found = []
    for root in sorted(updates):
        tensor = graph.tensors[root]
        touched_roots = dict.fromkeys(roots[t] for each in updates[root] for t in _touched(each))
        mine = [t for t in touched_roots if graph.tensors[t].shape == tensor.shape and t not in taken]
        together = [t for t in mine if t == root or graph.tensors[t].role is not Role.PARAMETER]
        taken.update(together)
        names = tuple(graph.tensors[t].name for t in sorted(together))
        found.append(
            TrainedVariable(tensor, root in sparse, names, tuple(updates[root]), tuple(readers[root]))
        )
    return tuple(found)


def _updates(graph: Graph) -> dict[int, int]:
    """Return the parameter of every operation that updates one, or what its updates read and write.

    Later operations come first, so that an accumulator is known by the update that reads it. A state that
    follows from nothing but itself, such as a count of updates, belongs to none: the operation that updates
    it is left out.
    """
    roots = _roots(graph)
    owner: dict[int, int] = {root: root for root in set(roots) if graph.tensors[root].role is Role.PARAMETER}
    found: dict[int, int] = {}
    pending = [each for each in reversed(graph.operations) if each.phase is Phase.UPDATE]
    size = -1
    while size != len(found):
        size = len(found)
        for operation in pending:
            owners = sorted({owner[roots[t]] for t in operation.outputs if roots[t] in owner})
            if len(owners) > 1:
                first, second = (graph.tensors[root].name for root in owners[:2])
                raise PlanError(
                    f"operation {operation.name!r} updates variable {first!r} and {second!r} together, but "
                    "each is synchronised in its own way; update them in operations of their own"
                )
            if owners:
                found[operation.index] = owners[0]
                for tensor in _touched(operation):
                    if graph.tensors[roots[tensor]].role in LASTING:
                        owner.setdefault(roots[tensor], owners[0])
        pending = [each for each in pending if each.index not in found]
    return {
        number: root
        for number, root in sorted(found.items())
        if _is_of(root, {roots[t] for t in _touched(graph.operations[number])})
    }


def _is_of(root: int, touched: Set[int]) -> bool:
    """Tell whether an operation that touches these tensors updates a parameter, or more than one state."""
    return root in touched or len(touched) > 1


def _touched(operation: Operation) -> tuple[int, ...]:
    return (*operation.inputs, *operation.outputs)


def _roots(graph: Graph) -> list[int]:
    """Return for each tensor the one that it is, overwrites, or is another value of.

    A tensor that an update makes from one that lasts, and of its shape, is another value of it.
    """
    roots = list(graph.roots)
    for operation in graph.operations:
        if operation.phase is not Phase.UPDATE:
            continue
        for output in operation.outputs:
            if graph.tensors[output].alias is None:
                shape = graph.tensors[output].shape
                same = (roots[t] for t in operation.inputs if graph.tensors[t].shape == shape)
                roots[output] = next((t for t in same if graph.tensors[t].role in LASTING), output)
    return roots


def _chosen_by_data(graph: Graph) -> Iterator[int]:
    """Yield tensors of which the forward pass reads elements at an index that is read from a tensor."""
    known: dict[int, frozenset[str]] = {}
    for operation in graph.operations:
        if operation.phase is not Phase.FORWARD:
            continue
        description = operation.bound.description
        if id(description) not in known:
            known[id(description)] = frozenset(
                part.tensor
                for part in walk(description)
                if isinstance(part, Element) and any(map(reads_elements, part.indices))
            )
        for tensor, use in touched(operation):
            if not isinstance(use, int) and not known[id(description)].isdisjoint(use):
                yield tensor
