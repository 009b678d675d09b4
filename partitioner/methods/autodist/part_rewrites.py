"""Parts of a variable whose gradients are rewritten each in its own way: each is held where its part is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....dataflow.graph import Graph, Operation, Role
from ....errors import PlanError
from ...layouts.forms import Form, Spread
from .strategy import AllReduce, Synchronisation
from .variables import TrainedVariable


@dataclass(slots=True)
class PartForms:
    """Forms of what the parts of one gradient are made of."""

    operations: dict[str, Form] = field(default_factory=dict)
    """The forms of operations that keep gradients for later iterations."""

    tensors: dict[str, Form] = field(default_factory=dict)
    """The forms of gradients of parts, and of the states that keep them."""


def check_part_rewrites(variable: TrainedVariable, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose parts cannot have rewrites of their own."""
    if not how.part_rewrites:
        return
    name = variable.tensor.name
    if len(how.part_rewrites) != len(how.parts) or how.partition is None:
        raise PlanError(
            f"variable {name!r} has {len(how.parts)} parts, but {len(how.part_rewrites)} rewrites of parts; "
            "give one for each part of a cut"
        )
    if how.rewrite.encoder is not None or how.rewrite.delay or how.relay is not None or how.rows:
        raise PlanError(
            f"variable {name!r} has parts with encoders or delays of their own, so the whole has no encoder, "
            "no delay, no two levels and no rows; leave out one of both"
        )


class HeldParts:
    """Finds the forms of parts in a graph that rewrites them."""

    def __init__(self, graph: Graph) -> None:
        self._tensors = graph.tensors
        self._number = {tensor.name: tensor.index for tensor in graph.tensors}
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._writer = {
            alias: each
            for each in graph.operations
            for tensor in each.outputs
            if (alias := graph.tensors[tensor].alias) is not None
        }

    def of(
        self, variable: TrainedVariable, how: Synchronisation, everywhere: Form
    ) -> tuple[Operation, PartForms]:
        """Return the operation that puts the parts of a gradient together, and the forms of the parts."""
        numbers = [self._number[name] for name in variable.together]
        makers = [self._maker[each] for each in numbers if self._tensors[each].role is Role.GRADIENT]
        joined, found = makers[0], PartForms()
        for tensor, part in zip(joined.inputs, how.parts, strict=True):
            form = everywhere if isinstance(part, AllReduce) else Spread((), (part.worker,))
            while self._tensors[tensor].role is Role.STATE:
                found.tensors[self._tensors[tensor].name] = form
                found.operations[self._writer[tensor].name] = form
                (tensor,) = self._writer[tensor].inputs
            found.tensors[self._tensors[tensor].name] = form
        return joined, found
