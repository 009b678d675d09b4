"""The order in which a plan's operations run."""

from __future__ import annotations

from collections.abc import Sequence

from ...dataflow.graph import Graph, Operation
from ...errors import PlanError


def in_order(graph: Graph, order: Sequence[str] | None) -> tuple[Operation, ...]:
    """Return a graph's operations in an order of their names; in the graph's own if it is None.

    An operation comes after those that make its inputs. One that overwrites a tensor comes after all others
    that read the tensor. Raises PlanError naming two operations in the wrong order, or a name that is
    missing.
    """
    if order is None:
        return graph.operations
    by_name = {operation.name: operation for operation in graph.operations}
    place = {name: number for number, name in enumerate(order)}
    if len(place) != len(order) or place.keys() != by_name.keys():
        wrong = sorted(place.keys() ^ by_name.keys()) or [n for n in place if order.count(n) > 1]
        raise PlanError(
            f"the order has {len(order)} names for {len(by_name)} operations and does not name each once, "
            f"such as {wrong[0]!r}"
        )
    operations = graph.operations
    places = [place[operation.name] for operation in operations]
    maker = [-1] * len(graph.tensors)
    for operation in operations:
        for tensor in operation.outputs:
            maker[tensor] = operation.index
    overwritten = {tensor.alias for tensor in graph.tensors} - {None}
    readers: dict[int | None, list[int]] = {tensor: [] for tensor in overwritten}
    for operation in operations:
        here = places[operation.index]
        for tensor in operation.inputs:
            made = maker[tensor]
            if made >= 0 and places[made] > here:
                raise _wrong(operations[made], operation, graph.tensors[tensor].name, "makes")
            if tensor in overwritten:
                readers[tensor].append(operation.index)
    for each in graph.tensors:
        made = maker[each.index]
        if each.alias is None or made < 0:
            continue
        for reader in readers[each.alias]:
            if places[reader] > places[made]:
                raise _wrong(operations[reader], operations[made], graph.tensors[each.alias].name, "reads")
    return tuple([by_name[name] for name in order])


def _wrong(first: Operation, then: Operation, tensor: str, does: str) -> PlanError:
    uses = "reads" if does == "makes" else "overwrites"
    return PlanError(
        f"the order runs {then.name!r}, which {uses} {tensor!r}, before {first.name!r}, which {does} it; "
        "swap them"
    )
