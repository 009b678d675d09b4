"""Show a plan weight by weight: how each is split, and the bytes for it and next to it (Tofu, figure 11)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes
from ...dataflow.graph import Graph, Operation, Phase, Role
from ..costs.plan_bytes import Contribution
from ..layouts.forms import Form
from ..layouts.step_split import split_operation
from ..layouts.tiling import intervals_along
from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class Layer:
    """A weight, and the operations that read it or make its gradient. Bytes move in one iteration."""

    weight: str
    """The weight's name."""

    shape: tuple[int, ...]
    """The weight's shape."""

    weight_parts: tuple[int, ...]
    """The number of parts of each dimension of the weight."""

    operator: str
    """The operator of the first operation that reads the weight."""

    uses: int
    """The number of operations that read the weight."""

    variables: tuple[tuple[str, int], ...]
    """The index variables of the first operation, with the number of parts of each."""

    data_parts: tuple[int, ...]
    """The number of parts of each dimension of that operation's largest other input."""

    weight_bytes: int
    """The bytes that move for the weight, its gradient and its state."""

    activation_bytes: int
    """The bytes that move for everything else that these operations touch."""

    operation: str
    """The name of the first operation that reads the weight."""

    data: str
    """The name of its largest other input; the weight's own name if it has no other."""

    holders: tuple[int, ...]
    """The workers that hold parts of the weight, in ascending order."""

    workers: tuple[int, ...]
    """The workers that compute the first operation, likewise."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A block of layers that repeats; the repetitions differ only in their names."""

    layers: tuple[Layer, ...]
    """The layers of the first repetition."""

    times: int
    """The number of repetitions."""


LONGEST_BLOCK = 8
"""The largest number of layers in a repeated block."""


def layers(graph: Graph, plan: Plan) -> tuple[Layer, ...]:
    """Return a layer for every weight with at least two dimensions, in the order of use.

    Raises PlanError if the plan is for another graph, or has a choice that is not legal.
    """
    plan.check_forms(graph)
    moved: dict[str, list[Contribution]] = defaultdict(list)
    for entry in plan.contributions(graph):
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
    """Return the layers, each block that repeats written once."""
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
    """Map each weight, its gradients, its state and its copies in other types to the weight."""
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
    """Describe a weight, given its `family` (gradients, state) and the forward operations that read it."""
    tensor, first = graph.tensors[weight], uses[0]
    others = [graph.tensors[index] for index in first.inputs if index not in family]
    data = max(others, key=lambda other: prod(other.shape), default=tensor)
    held, form = plan.layouts[tensor.name], plan.strategies[first.name]
    tasks = split_operation(first.bound, form, plan.factors)
    own = {graph.tensors[index].name for index in family}
    return Layer(
        weight=tensor.name,
        shape=tensor.shape,
        weight_parts=held.parts,
        operator=first.bound.description.name,
        uses=len(uses),
        variables=_cut_variables(first.bound, form, tasks.boxes),
        data_parts=plan.layouts[data.name].parts,
        weight_bytes=sum(entry.bytes for entry in moved if entry.tensor in own),
        activation_bytes=sum(entry.bytes for entry in moved if entry.tensor not in own),
        operation=first.name,
        data=data.name,
        holders=tuple(np.unique(held.workers).tolist()),
        workers=tuple(np.unique(tasks.workers).tolist()),
    )


def _cut_variables(bound: Bound, form: Form, boxes: Boxes) -> tuple[tuple[str, int], ...]:
    """Count the parts of every variable that is cut, in the order of the steps if there are any."""
    parts = dict(zip(bound.variables, intervals_along(boxes), strict=True))
    steps = [str(entry) for entry in form if entry in parts] if isinstance(form, tuple) else []
    return tuple((name, parts[name]) for name in dict.fromkeys((*steps, *parts)) if parts[name] > 1)


def _key(layer: Layer) -> tuple[object, ...]:
    """Return everything that two layers must share to count as repetitions."""
    return (
        layer.shape,
        layer.weight_parts,
        layer.operator,
        layer.uses,
        layer.variables,
        layer.data_parts,
        layer.weight_bytes,
        layer.activation_bytes,
        layer.holders,
        layer.workers,
    )
