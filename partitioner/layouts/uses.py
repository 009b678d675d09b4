"""List how operations use tensors."""

from __future__ import annotations

from ...dataflow.graph import Operation

Use = tuple[str, ...] | int
"""An operation's use of a tensor: the parameters that read it, or the number of the output that it is."""


def touched(operation: Operation) -> list[tuple[int, Use]]:
    """List the tensors that an operation reads, each once with all its parameters, and those it produces."""
    inputs = operation.inputs
    reads: dict[int, tuple[str, ...]] = {}
    for place, name in operation.bound.read_places:
        tensor = inputs[place]
        reads[tensor] = (*reads.get(tensor, ()), name)
    return [*reads.items(), *[(tensor, output) for output, tensor in enumerate(operation.outputs)]]


def read(operation: Operation) -> set[int]:
    """Return the tensors of which an operation reads elements."""
    return {operation.inputs[place] for place, _ in operation.bound.read_places}


def unread(operation: Operation) -> list[int]:
    """List the tensors that an operation takes without reading an element, such as for their shape."""
    found = read(operation)
    return [tensor for tensor in dict.fromkeys(operation.inputs) if tensor not in found]
