"""Tensors that stand for a parameter: it, and what is made from it alone in its shape.

Such as a copy in a smaller type, which layers read if they compute in 16 bits.
"""

from __future__ import annotations

from .graph import Graph, Phase, Role


def parameters_stood_for(graph: Graph) -> dict[int, int]:
    """Return the parameter that each tensor stands for, by tensor; no others have an entry."""
    found = {tensor.index: tensor.index for tensor in graph.tensors if tensor.role is Role.PARAMETER}
    for operation in graph.operations:
        read = set(operation.inputs)
        if operation.phase is Phase.UPDATE or len(read) != 1 or not read <= found.keys():
            continue
        (source,) = read
        for tensor in operation.outputs:
            if graph.tensors[tensor].shape == graph.tensors[source].shape:
                found.setdefault(tensor, found[source])
    return found
