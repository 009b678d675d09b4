"""A plan weight by weight: how each is split, and what moves for it and beside it (Tofu, figure 11)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...dataflow.graph import Graph, Operation, Phase, Role
from ..costs.plan_bytes import Contribution, count
from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class Layer:
    """A weight, and the operations that read it or make its gradient.

    `weight_parts` are the parts by dimension of the weight, `data_parts` those of the largest other input of
    the first operation that reads it, and `variables` the parts by index variable of that operation. Bytes
    are moved in one iteration: for the weight, its gradient and its state, and for all else that the
    operations touch. `operation` is the name of that first operation, `data` that of its other input, which
    is the weight's where it has none.
    """

    weight: str
    shape: tuple[int, ...]
    weight_parts: tuple[int, ...]
    operator: str
    uses: int
    variables: tuple[tuple[str, int], ...]
    data_parts: tuple[int, ...]
    weight_bytes: int
    activation_bytes: int
    operation: str
    data: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """Layers in a row that come `times` times, alike but for their names."""

    layers: tuple[Layer, ...]
    times: int


LONGEST_BLOCK = 8
"""Layers in a repeated block, at most."""


def layers(graph: Graph, plan: Plan) -> tuple[Layer, ...]:
    """A layer for every weight of two dimensions or more, in the order of their use.

    Raises PlanError for a plan of another graph.
    """
    plan.check_graph(graph)
    moved: dict[str, list[Contribution]] = defaultdict(list)
    for entry in count(graph, plan.layouts, plan.strategies, plan.factors):
        moved[entry.operation].append(entry)
    owners = _owners(graph)
    families: dict[int, set[int]] = defaultdict(set)
    for tensor, weight in owners.items():
        families[weight].add(tensor)
    touching: dict[int, list[Operation]] = defaultdict(list)
    for operation in graph.operations:
        touched = (*operation.inputs, *operation.outputs)
        for weight in dict.fromkeys(owners[tensor] for tensor in touched if tensor in owners):
            touching[weight].append(operation)
    found = []
    for weight, operations in touching.items():
        family = families[weight]
        uses = [o for o in operations if o.phase is Phase.FORWARD and not family.issuperset(o.outputs)]
        if uses:
            entries = [entry for operation in operations for entry in moved[operation.name]]
            found.append(_layer(graph, plan, weight, family, uses, entries))
    return tuple(found)


def folded(rows: Sequence[Layer]) -> tuple[Repeated, ...]:
    """The layers with blocks that repeat told once."""
    keys = [_key(layer) for layer in rows]
    found: list[Repeated] = []
    at = 0
    while at < len(rows):
        best = (1, 1)
        for length in range(1, min(LONGEST_BLOCK, (len(rows) - at) // 2) + 1):
            block, times = keys[at : at + length], 1
            while keys[at + times * length : at + (times + 1) * length] == block:
                times += 1
            if times > 1 and length * (times - 1) > best[0] * (best[1] - 1):
                best = (length, times)
        length, times = best
        found.append(Repeated(tuple(rows[at : at + length]), times))
        at += length * times
    return tuple(found)


def _owners(graph: Graph) -> Mapping[int, int]:
    """For weights, their gradients and their state the weight: what an update reads and writes.

    For a weight's copy in another type too.
    """
    owners = {
        tensor.index: tensor.index
        for tensor in graph.tensors
        if tensor.role is Role.PARAMETER and len(tensor.shape) > 1 and tensor.alias is None
    }
    for operation in graph.operations:
        weights = [tensor for tensor in operation.inputs if owners.get(tensor) == tensor]
        if operation.phase is Phase.UPDATE and len(weights) == 1:
            shape = graph.tensors[weights[0]].shape
            for tensor in (*operation.inputs, *operation.outputs):
                if graph.tensors[tensor].shape == shape:
                    owners[tensor] = weights[0]
        elif len(operation.inputs) == len(weights) == 1:
            before, after = (graph.tensors[index] for index in (*weights, operation.outputs[0]))
            if before.shape == after.shape and before.dtype != after.dtype:
                owners[after.index] = weights[0]
    return owners


def _layer(
    graph: Graph,
    plan: Plan,
    weight: int,
    family: Collection[int],
    uses: Sequence[Operation],
    moved: Sequence[Contribution],
) -> Layer:
    """`family` is the weight, its gradients and its state; `uses` are the forward operations that read it."""
    tensor, first = graph.tensors[weight], uses[0]
    others = [graph.tensors[index] for index in first.inputs if index not in family]
    data = max(others, key=lambda other: prod(other.shape), default=tensor)
    parts: dict[str, int] = {}
    for variable, factor in zip(plan.strategies[first.name], plan.factors, strict=True):
        if variable is not None:
            parts[variable] = parts.get(variable, 1) * factor
    own = {graph.tensors[index].name for index in family}
    return Layer(
        weight=tensor.name,
        shape=tensor.shape,
        weight_parts=plan.layouts[tensor.name].parts,
        operator=first.bound.description.name,
        uses=len(uses),
        variables=tuple(parts.items()),
        data_parts=plan.layouts[data.name].parts,
        weight_bytes=sum(entry.bytes for entry in moved if entry.tensor in own),
        activation_bytes=sum(entry.bytes for entry in moved if entry.tensor not in own),
        operation=first.name,
        data=data.name,
    )


def _key(layer: Layer) -> tuple[object, ...]:
    """All that two layers must share to be told once."""
    return (
        layer.shape,
        layer.weight_parts,
        layer.operator,
        layer.uses,
        layer.variables,
        layer.data_parts,
        layer.weight_bytes,
        layer.activation_bytes,
    )
