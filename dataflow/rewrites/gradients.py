"""The gradient of each parameter that a training graph updates, and the operations that update by it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import GraphError
from ..graph import Graph, Phase, Role


@dataclass(frozen=True, slots=True)
class UpdatingGradient:
    """A gradient that updates a parameter."""

    variable: str
    """The name of the parameter."""

    tensor: int
    """The gradient."""

    updates: tuple[int, ...]
    """The numbers of the operations that read it to update the parameter."""


def updating_gradients(graph: Graph) -> dict[str, UpdatingGradient]:
    """Return the gradient that updates each parameter, by name.

    Parameters that are not updated by one gradient of their shape are left out; see `gradient_of`.
    """
    found: dict[str, dict[int, list[int]]] = {}
    for operation in graph.operations:
        if operation.phase is not Phase.UPDATE:
            continue
        for output in operation.outputs:
            alias = graph.tensors[output].alias
            if alias is None or graph.tensors[alias].role is not Role.PARAMETER:
                continue
            of = found.setdefault(graph.tensors[alias].name, {})
            for tensor in dict.fromkeys(operation.inputs):
                read = graph.tensors[tensor]
                if read.role is Role.GRADIENT and read.shape == graph.tensors[alias].shape:
                    of.setdefault(tensor, []).append(operation.index)
    return {
        name: UpdatingGradient(name, tensor, tuple(updates))
        for name, of in found.items()
        if len(of) == 1
        for tensor, updates in of.items()
    }


def gradient_of(graph: Graph, gradients: dict[str, UpdatingGradient], variable: str) -> UpdatingGradient:
    """Return the gradient that updates a parameter. Raises GraphError with the reason if there is none."""
    if variable in gradients:
        return gradients[variable]
    if any(tensor.role is Role.ACCUMULATOR for tensor in graph.tensors):
        raise GraphError(
            f"the gradients of {variable!r} are summed over several iterations before it is updated, so they "
            "cannot be rewritten; unroll the micro-batches into one iteration"
        )
    raise GraphError(
        f"{variable!r} is not updated by one gradient of its shape, so nothing can be rewritten; synchronise "
        "it without an encoder and without a delay"
    )
