"""Parts of a variable whose gradients are rewritten each in its own way: each is held where its part is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....dataflow.graph import Graph, Operation, Role
from ....dataflow.rewrites.encoders import NO_REWRITE
from ....errors import PlanError
from ...layouts.forms import Form, Spread
from .strategy import AllReduce, Synchronisation, has_two_levels
from .variables import TrainedVariable


@dataclass(slots=True)
class PartForms:
    """Forms of what the parts of one gradient are made of."""

    joined: Operation
    """The operation that puts the parts together."""

    operations: dict[str, Form] = field(default_factory=dict)
    """The forms of operations that keep gradients for later iterations."""

    tensors: dict[str, Form] = field(default_factory=dict)
    """The forms of gradients of parts, and of the states that keep them."""


def check_part_rewrites(variable: TrainedVariable, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose parts cannot have rewrites of their own."""
    if not how.part_rewrites:
        return
    name = variable.tensor.name
    if len(how.cuts) != 1 or len(how.part_rewrites) != len(how.parts):
        raise PlanError(
            f"variable {name!r} has {len(how.parts)} parts of {len(how.cuts)} cuts, but "
            f"{len(how.part_rewrites)} rewrites of parts; give one for each part of one cut"
        )
    if how.rewrite != NO_REWRITE or how.factors or how.rows or any(map(has_two_levels, how.parts)):
        raise PlanError(
            f"variable {name!r} has parts with encoders or delays of their own, so the whole has no encoder, "
            "no delay, no factors, no two levels and no rows; leave out one of both"
        )


def held_parts(graph: Graph, variable: TrainedVariable, how: Synchronisation, everywhere: Form) -> PartForms:
    """Return the forms of what the parts of a gradient are made of, in a graph that rewrites them."""
    tensors = graph.tensors
    number = {tensor.name: tensor.index for tensor in tensors}
    maker = {tensor: each for each in graph.operations for tensor in each.outputs}
    writer = {tensors[tensor].alias: each for tensor, each in maker.items()}
    gradients = [number[name] for name in variable.together if tensors[number[name]].role is Role.GRADIENT]
    found = PartForms(maker[gradients[0]])
    parts = zip(found.joined.inputs, how.parts, how.part_rewrites, strict=True)
    for tensor, part, rewrite in parts:
        form = everywhere if isinstance(part, AllReduce) else Spread((), (part.worker,))
        while tensors[tensor].role is Role.STATE:
            found.tensors[tensors[tensor].name] = form
            found.operations[writer[tensor].name] = form
            (tensor,) = writer[tensor].inputs
        found.tensors[tensors[tensor].name] = form
        if rewrite.sums_where_held:
            found.operations[maker[tensor].name] = form
    return found
