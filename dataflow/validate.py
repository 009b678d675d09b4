"""Check that a graph can be planned and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import GraphError
from .graph import Graph, Operation, Tensor


def validate(graph: Graph) -> None:
    """Raise GraphError for the first fault: names, numbering, order, cycles, shapes, aliases."""
    if not graph.operations:
        raise GraphError(f"graph {graph.name!r} has no operations; there is nothing to run")
    _check_names("tensor", (tensor.name for tensor in graph.tensors))
    _check_names("operation", (operation.name for operation in graph.operations))
    _check_numbers(graph)
    producers = _producers(graph)
    _check_order(graph, producers)
    _check_shapes(graph)
    _check_aliases(graph, producers)


def _check_names(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise GraphError(f"two {kind}s are named {name!r}; names must be unique")
        seen.add(name)


def _check_numbers(graph: Graph) -> None:
    numbered: tuple[tuple[str, Sequence[Tensor | Operation]], ...] = (
        ("tensor", graph.tensors),
        ("operation", graph.operations),
    )
    for kind, items in numbered:
        for position, item in enumerate(items):
            if item.index != position:
                raise GraphError(
                    f"{kind} {item.name!r} has number {item.index} but is at position {position}"
                )
    count = len(graph.tensors)
    for operation in graph.operations:
        for index in (*operation.inputs, *operation.outputs):
            if not 0 <= index < count:
                raise GraphError(
                    f"operation {operation.name!r} refers to tensor {index}, but there are {count} tensors"
                )
    for index in graph.outputs:
        if not 0 <= index < count:
            raise GraphError(f"output {index} of the graph does not exist; there are {count} tensors")


def _producers(graph: Graph) -> Mapping[int, Operation]:
    producers: dict[int, Operation] = {}
    for operation in graph.operations:
        for index in operation.outputs:
            tensor = graph.tensors[index]
            other = producers.setdefault(index, operation)
            if other is not operation:
                raise GraphError(
                    f"tensor {tensor.name!r} is produced by {other.name!r} and {operation.name!r}"
                )
            if tensor.role.persistent and tensor.alias is None:
                raise GraphError(
                    f"operation {operation.name!r} writes {tensor.role} tensor {tensor.name!r}; "
                    "write a new tensor whose alias it is"
                )
    return producers


def _check_order(graph: Graph, producers: Mapping[int, Operation]) -> None:
    for operation in graph.operations:
        for index in operation.inputs:
            producer = producers.get(index)
            if producer is None:
                _check_fed(graph, index, f"operation {operation.name!r}")
            elif producer.index >= operation.index:
                cycle = _cycle(graph, producers)
                if cycle:
                    raise GraphError(f"the graph has a cycle: {' -> '.join(cycle)}")
                raise GraphError(
                    f"operation {operation.name!r} reads {graph.tensors[index].name!r} "
                    f"before {producer.name!r} produces it"
                )
    for index in graph.outputs:
        if index not in producers:
            _check_fed(graph, index, "the graph's output list")


def _check_fed(graph: Graph, index: int, reader: str) -> None:
    tensor = graph.tensors[index]
    if not tensor.role.persistent or tensor.alias is not None:
        raise GraphError(f"{reader} reads {tensor.name!r}, which nothing produces")


def _cycle(graph: Graph, producers: Mapping[int, Operation]) -> list[str]:
    """List the names along a cycle, with the first repeated at the end; empty if there is none."""
    done: set[int] = set()
    for start in graph.operations:
        path: dict[int, None] = {}
        stack: list[tuple[int, bool]] = [(start.index, False)]
        while stack:
            index, leaving = stack.pop()
            if leaving:
                del path[index]
                done.add(index)
                continue
            if index in path:
                members = list(path)
                members = members[members.index(index) :]
                return [graph.operations[i].name for i in (*reversed(members), members[-1])]
            if index in done:
                continue
            path[index] = None
            stack.append((index, True))
            for tensor in graph.operations[index].inputs:
                producer = producers.get(tensor)
                if producer is not None:
                    stack.append((producer.index, False))
    return []


def _check_shapes(graph: Graph) -> None:
    for operation in graph.operations:
        bound = operation.bound
        names = bound.description.tensor_names
        if len(names) != len(operation.inputs) or len(bound.output_shapes) != len(operation.outputs):
            raise GraphError(
                f"operation {operation.name!r} lists {len(operation.inputs)} inputs and "
                f"{len(operation.outputs)} outputs; {bound.description.name} has {len(names)} and "
                f"{len(bound.output_shapes)}"
            )
        for name, index in zip(names, operation.inputs, strict=True):
            tensor = graph.tensors[index]
            if tuple(bound.shapes[name]) != tensor.shape:
                raise GraphError(
                    f"operation {operation.name!r} was bound to {name} of shape {tuple(bound.shapes[name])}, "
                    f"but its input {tensor.name!r} has shape {tensor.shape}"
                )
        for shape, index in zip(bound.output_shapes, operation.outputs, strict=True):
            tensor = graph.tensors[index]
            if tuple(shape) != tensor.shape:
                raise GraphError(
                    f"operation {operation.name!r} makes shape {tuple(shape)}, "
                    f"but its output {tensor.name!r} has shape {tensor.shape}"
                )


def _check_aliases(graph: Graph, producers: Mapping[int, Operation]) -> None:
    writer_of: dict[int, Operation] = {}
    for tensor in graph.tensors:
        if tensor.alias is None:
            continue
        if not 0 <= tensor.alias < len(graph.tensors):
            raise GraphError(
                f"tensor {tensor.name!r} is an alias of tensor {tensor.alias}, which does not exist"
            )
        target = graph.tensors[tensor.alias]
        if target.alias is not None:
            raise GraphError(f"tensor {tensor.name!r} is an alias of {target.name!r}, itself an alias")
        if (target.shape, target.dtype) != (tensor.shape, tensor.dtype):
            raise GraphError(
                f"tensor {tensor.name!r} of shape {tensor.shape} in {tensor.dtype} cannot overwrite "
                f"{target.name!r} of shape {target.shape} in {target.dtype}"
            )
        if not target.role.persistent:
            raise GraphError(
                f"tensor {tensor.name!r} overwrites {target.name!r}, which is not persistent; "
                "only parameters, state, auxiliary tensors and data are updated in place"
            )
        writer = producers.get(tensor.index)
        if writer is None:
            raise GraphError(f"tensor {tensor.name!r} overwrites {target.name!r} but nothing produces it")
        if target.index in writer_of:
            raise GraphError(
                f"{target.name!r} is overwritten by {writer_of[target.index].name!r} and {writer.name!r}; "
                "one update per iteration is allowed"
            )
        writer_of[target.index] = writer
    for operation in graph.operations:
        for index in operation.inputs:
            writer = writer_of.get(index)
            if writer is not None and writer.index < operation.index:
                raise GraphError(
                    f"operation {operation.name!r} reads {graph.tensors[index].name!r} "
                    f"after {writer.name!r} has overwritten it"
                )
