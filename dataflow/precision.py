"""Mixed precision: large intermediate tensors in 16 bits, all tensors that persist in float32.

This file decides where numbers are rounded. Arithmetic is in float32 whatever the types are: kernels
read each tensor in its own type and round once, when they store. Products and convolutions want one type for
all three tensors, so inputs in float32 are copied in 16 bits, once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..operators.library import registry
from ..operators.stages.bound_operator import BoundOperator
from .builder import Names, numbered
from .exactness import exact_tensors
from .graph import Graph, Operation, Phase, Role, Tensor
from .order import hoist_updates


def mixed_precision(graph: Graph, dtype: str) -> Graph:
    """Rewrite the graph to store its large intermediate tensors in `dtype`.

    float32 stay parameters, states and data; tensors of at most one dimension, such as statistics and the
    gradients of biases; what positions, labels and counts are read from; and the graph's outputs, unless a
    contraction makes them. So a loss is subtracted from its label before anything is rounded.
    """
    return _Rewrite(graph, dtype).run()


class _Rewrite:
    def __init__(self, graph: Graph, dtype: str) -> None:
        self.graph = graph
        self.dtype = dtype
        self.tensors = _typed(graph, dtype)
        self.operations: list[Operation] = []
        self.casts: dict[int, int] = {}
        self.names = Names(tensor.name for tensor in graph.tensors)

    def run(self) -> Graph:
        for operation in self.graph.operations:
            self.operations.append(replace(operation, inputs=self.inputs(operation)))
        ordered = hoist_updates(self.tensors, self.operations)
        return numbered(self.graph.name, self.tensors, ordered, self.graph.outputs)

    def inputs(self, operation: Operation) -> tuple[int, ...]:
        """Return the inputs of an operation; a contraction with a 16-bit result reads only 16-bit inputs."""
        factors = operation.bound.factors
        if factors is None or self.tensors[operation.outputs[0]].dtype != self.dtype:
            return operation.inputs
        names = operation.bound.description.tensor_names
        return tuple(
            self.cast(index, operation, name)
            if name in factors and self.tensors[index].dtype != self.dtype
            else index
            for name, index in zip(names, operation.inputs, strict=True)
        )

    def cast(self, index: int, reader: Operation, argument: str) -> int:
        """Return the 16-bit copy of a tensor, made before its first reader."""
        if index not in self.casts:
            tensor = self.tensors[index]
            name = self.names.unused(f"{self.dtype}({tensor.name})")
            self.names.taken.add(name)
            role = Role.ACTIVATION if reader.phase is Phase.FORWARD else Role.GRADIENT
            self.casts[index] = len(self.tensors)
            self.tensors.append(Tensor(len(self.tensors), name, tensor.shape, role, self.dtype))
            self.operations.append(
                Operation(
                    len(self.operations),
                    name,
                    _copy(tensor.shape),
                    (index,),
                    (self.casts[index],),
                    reader.phase,
                    reader.tie and f"{reader.tie}.{argument}.{self.dtype}",
                )
            )
        return self.casts[index]


def _typed(graph: Graph, dtype: str) -> list[Tensor]:
    """Return the tensors with the types in which they are stored."""
    contracted = {o.outputs[0] for o in graph.operations if o.bound.factors is not None}
    kept = exact_tensors(graph.operations) | (set(graph.outputs) - contracted)
    return [
        tensor
        if tensor.role.persistent or len(tensor.shape) <= 1 or tensor.index in kept
        else replace(tensor, dtype=dtype)
        for tensor in graph.tensors
    ]


def _copy(shape: Sequence[int]) -> BoundOperator:
    (stage,) = registry.get("_copy").stages({}, {"data": tuple(shape)})
    return stage.bind({"data": tuple(shape)})
