"""Copy a training graph's operations for each micro-batch, so that one iteration is a whole update.

    given    the training graph of one of several micro-batches, which sums gradients in accumulators
    result   a graph with the same kernels on the same numbers, so an update has the same bits

An operation that works on samples is there once for each micro-batch: `fc1@0`, `fc1@1`, ... So are its
results, the data that are fed, and the graph's outputs, micro-batch after micro-batch. Copies share a tie.
An operation that reads neither samples nor state that micro-batches pass on is there once.

    gradients   total@1 = grad@0 + grad@1, total@2 = total@1 + grad@2, ...; the updates read the last total
    state       copy k of an operation reads what copy k - 1 wrote; the last copy overwrites the tensor

Operations are in the order of micro-batches. Updates of parameters are among those of the last one.
"""

from __future__ import annotations

from dataclasses import replace

from ..operators.library import registry
from ..operators.stages.bound_operator import BoundOperator
from ..support.gc_pause import gc_paused
from .builder import numbered
from .graph import Graph, Operation, Phase, Role, Tensor


def copy_name(name: str, micro_batch: int) -> str:
    """Return the name of the copy of an operation or a tensor for one micro-batch."""
    return f"{name}@{micro_batch}"


@gc_paused()
def unrolled(graph: Graph, count: int) -> Graph:
    """Return the graph of all micro-batches from that of one of `count`; see `training_graph`."""
    return _Unrolling(graph, count).run() if count > 1 else graph


class _Unrolling:
    """Adds copies after the tensors of the given graph, whose numbers stay until all are there."""

    def __init__(self, graph: Graph, count: int) -> None:
        self._graph = graph
        self._count = count
        self._tensors = list(graph.tensors)
        self._operations: list[Operation] = []
        self._data = [tensor.index for tensor in graph.tensors if tensor.role is Role.DATA]
        self._repeated = _repeated(graph)
        # The tensor that the micro-batch in the making reads for a given one: that one, if it is not here.
        self._now: dict[int, int] = {}

    def run(self) -> Graph:
        outputs: list[int] = []
        for number in range(self._count):
            for index in self._data:
                self._now[index] = self._copy(index, number)
            for operation in self._graph.operations:
                self._add(operation, number)
            outputs += [self._now.get(index, index) for index in self._graph.outputs]
        return numbered(self._graph.name, self._tensors, self._operations, outputs)

    def _add(self, operation: Operation, number: int) -> None:
        if _accumulates(self._graph, operation):
            self._sum(operation, number)
        elif operation.index in self._repeated:
            self._repeat(operation, number)
        elif number == (self._count - 1 if operation.phase is Phase.UPDATE else 0):
            self._operations.append(replace(operation, inputs=self._read(operation)))

    def _sum(self, operation: Operation, number: int) -> None:
        """Add a micro-batch's gradient to the sum of those before it."""
        (output,) = operation.outputs
        grad = operation.inputs[operation.bound.description.tensor_names.index("grad")]
        before, term = self._now.get(output), self._now.get(grad, grad)
        if number == 0 or before is None:
            self._now[output] = term
            return
        alias = self._graph.tensors[output].alias
        assert alias is not None
        total = self._graph.tensors[alias]
        made = replace(total, name=copy_name(total.name, number), role=Role.GRADIENT)
        self._now[output] = self._new(made)
        self._operations.append(
            Operation(
                len(self._operations),
                copy_name(operation.name, number),
                _addition(total.shape),
                (before, term),
                (self._now[output],),
                Phase.BACKWARD,
                _tie(operation),
                number,
            )
        )

    def _repeat(self, operation: Operation, number: int) -> None:
        inputs = self._read(operation)
        for index in operation.outputs:
            self._write(index, number)
        self._operations.append(
            replace(
                operation,
                name=copy_name(operation.name, number),
                inputs=inputs,
                outputs=tuple([self._now[index] for index in operation.outputs]),
                tie=_tie(operation),
                micro_batch=number,
            )
        )

    def _write(self, index: int, number: int) -> None:
        """Make a copy of a result. Only the last copy of a state's new value overwrites the state."""
        alias = self._graph.tensors[index].alias
        if alias is None:
            self._now[index] = self._copy(index, number)
        elif number == self._count - 1:
            self._now[index] = index
        else:
            self._now[index] = self._now[alias] = self._copy(index, number)

    def _copy(self, index: int, number: int) -> int:
        tensor = self._graph.tensors[index]
        role = tensor.role if tensor.alias is None else Role.ACTIVATION
        return self._new(replace(tensor, name=copy_name(tensor.name, number), role=role))

    def _new(self, tensor: Tensor) -> int:
        self._tensors.append(replace(tensor, index=len(self._tensors), alias=None))
        return len(self._tensors) - 1

    def _read(self, operation: Operation) -> tuple[int, ...]:
        return tuple([self._now.get(index, index) for index in operation.inputs])


def _accumulates(graph: Graph, operation: Operation) -> bool:
    """Tell whether an operation adds a micro-batch's gradient to a sum. Readers of the sum are there once."""
    alias = graph.tensors[operation.outputs[0]].alias
    return alias is not None and graph.tensors[alias].role is Role.ACCUMULATOR


def _repeated(graph: Graph) -> set[int]:
    """Return the operations that depend on samples, or on state that a micro-batch passes to the next."""
    passed_on = {
        tensor.alias
        for tensor in graph.tensors
        if tensor.alias is not None and graph.tensors[tensor.alias].role is Role.AUXILIARY
    }
    varying = passed_on | {tensor.index for tensor in graph.tensors if tensor.role is Role.DATA}
    found = set()
    for operation in graph.operations:
        if graph.learns(operation) or varying.isdisjoint(operation.inputs):
            continue
        found.add(operation.index)
        if not _accumulates(graph, operation):
            varying.update(operation.outputs)
    return found


def _tie(operation: Operation) -> str:
    return operation.tie or f"copies({operation.name})"


def _addition(shape: tuple[int, ...]) -> BoundOperator:
    """Return the operator that adds two gradients."""
    shapes = {"lhs": shape, "rhs": shape}
    (stage,) = registry.get("elemwise_add").stages({}, shapes)
    return stage.bind(shapes)
