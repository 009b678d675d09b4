"""The layer of every operation of a training graph, from those of the forward pass.

Gradients and updates of a parameter go with the layer that reads it first, and other operations of the
backward pass with the first layer of what they read.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dataflow.graph import Graph, Role
from ..layouts.uses import touched


def with_backward(graph: Graph, forward: Mapping[int, int]) -> list[int]:
    """Return the layer of every operation, from those of the forward pass."""
    layer_of: dict[int, int] = {}
    for operation in graph.operations:
        if operation.index in forward:
            for tensor in operation.outputs:
                layer_of[tensor] = forward[operation.index]
            for tensor in operation.inputs:
                if graph.tensors[tensor].role is Role.PARAMETER:
                    layer_of.setdefault(tensor, forward[operation.index])
    trains: dict[int, int] = {}
    """The layer of gradients and sums of gradients, by tensor."""
    for operation in reversed(graph.operations):
        roots = [graph.tensors[tensor].alias for tensor in operation.outputs]
        known = [layer_of[root] for root in roots if root is not None and root in layer_of]
        known += [trains[tensor] for tensor in operation.outputs if tensor in trains]
        if known:
            shapes = {graph.tensors[tensor].shape for tensor in operation.outputs}
            for tensor in operation.inputs:
                if graph.tensors[tensor].shape in shapes and tensor not in layer_of:
                    trains[tensor] = known[0]
    found = []
    for operation in graph.operations:
        if operation.index in forward:
            layer = forward[operation.index]
        else:
            own = [trains[tensor] for tensor in operation.outputs if tensor in trains]
            roots = [graph.tensors[tensor].alias for tensor in operation.outputs]
            own += [layer_of[root] for root in roots if root is not None and root in layer_of]
            read = [layer_of[tensor] for tensor, _ in touched(operation) if tensor in layer_of]
            layer = own[0] if own else min(read, default=0)
            layer_of.update((tensor, layer) for tensor in operation.outputs)
        found.append(layer)
    return found
