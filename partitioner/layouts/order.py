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
    maker: dict[int, str] = {}
    readers: dict[int, list[str]] = {}
    for operation in graph.operations:
        for tensor in operation.outputs:
            maker[tensor] = operation.name
        for tensor in operation.inputs:
            readers.setdefault(tensor, []).append(operation.name)
    for operation in graph.operations:
        for tensor in operation.inputs:
            _require(place, maker.get(tensor), operation.name, graph.tensors[tensor].name, "makes")
        for tensor in operation.outputs:
            overwritten = graph.tensors[tensor].alias
            if overwritten is not None:
                for reader in readers.get(overwritten, ()):
                    _require(place, reader, operation.name, graph.tensors[overwritten].name, "reads")
    return tuple(by_name[name] for name in order)


def _require(place: dict[str, int], first: str | None, then: str, tensor: str, does: str) -> None:
    if first is not None and first != then and place[first] > place[then]:
        uses = "reads" if does == "makes" else "overwrites"
        raise PlanError(
            f"the order runs {then!r}, which {uses} {tensor!r}, before {first!r}, which {does} it; swap them"
        )
