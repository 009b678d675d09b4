"""How operations use tensors."""

from __future__ import annotations

from ...dataflow.graph import Operation

Use = tuple[str, ...] | int
"""How an operation touches a tensor: the parameters through which it reads it, or the output it is."""


def touched(operation: Operation) -> list[tuple[int, Use]]:
    """The tensors an operation reads, each once with all its parameters, and the tensors it produces."""
    inputs = operation.inputs
    reads: dict[int, tuple[str, ...]] = {}
    for place, name in operation.bound.read_places:
        tensor = inputs[place]
        reads[tensor] = (*reads.get(tensor, ()), name)
    return [*reads.items(), *[(tensor, output) for output, tensor in enumerate(operation.outputs)]]
