"""What the search decides about a graph: its classes of operations and tensors, and the links between them.

Every operation and every tensor is a decision, except that some must agree: a tensor that overwrites
another one takes over its layout, and operations that are tied (one cell's copies at different time
steps, Tofu section 5.1) share one strategy, and what they produce one layout.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...analyzer.bound import Bound
from ...analyzer.region import Shape
from ...dataflow.graph import Graph, Operation
from ..layouts.uses import Use, touched
from .restrictions import UNRESTRICTED, Restrictions

if TYPE_CHECKING:
    from .transfer_time import TransferTime


class Link(NamedTuple):
    """An operation class touches a tensor class; `weight` is the bytes of one element times repetitions."""

    operator: int
    tensor: int
    use: Use
    weight: int


@dataclass(frozen=True)
class Problem:
    """The decisions: `operators[c]` and `shapes[c]` describe a class, the maps lead from index to class.

    `factors` are the steps over which the workers are split, the worker count's prime factors if None;
    `restrictions` what constraints leave of the choices; `objective` says what the search minimises where
    that is not bytes.
    """

    graph: Graph
    operators: tuple[Bound, ...]
    shapes: tuple[Shape, ...]
    operation_class: tuple[int, ...]
    tensor_class: tuple[int, ...]
    factors: tuple[int, ...] | None = None
    restrictions: Restrictions = UNRESTRICTED
    objective: TransferTime | None = None

    def __repr__(self) -> str:
        return (
            f"<problem of {self.graph.name!r}: {len(self.operators)} classes of operations, "
            f"{len(self.shapes)} of tensors>"
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All pairs of an operation and a tensor between which bytes may move, equal ones merged."""
        weights: Counter[tuple[int, int, Use]] = Counter()
        itemsizes = [tensor.itemsize for tensor in self.graph.tensors]
        for operation in self.graph.operations:
            number = self.operation_class[operation.index]
            for tensor, use in touched(operation):
                weights[number, self.tensor_class[tensor], use] += itemsizes[tensor]
        return tuple(Link(*key, weight) for key, weight in weights.items())


def build_problem(graph: Graph) -> Problem:
    """Group operations by tie, and tensors by alias and by the tied operations that produce them."""
    classes: dict[tuple[str, Bound] | int, int] = {}
    operation_class = tuple(
        classes.setdefault((op.tie, op.bound) if op.tie is not None else op.index, len(classes))
        for op in graph.operations
    )
    representatives: dict[int, Operation] = {}
    leader = list(range(len(graph.tensors)))
    for tensor in graph.tensors:
        if tensor.alias is not None:
            _join(leader, tensor.index, tensor.alias)
    for op in graph.operations:
        first = representatives.setdefault(operation_class[op.index], op)
        for mine, its in zip(op.outputs, first.outputs, strict=True):
            _join(leader, mine, its)
    numbers: dict[int, int] = {}
    tensor_class = tuple(
        numbers.setdefault(_leader(leader, tensor.index), len(numbers)) for tensor in graph.tensors
    )
    shapes: list[Shape] = []
    for tensor, number in zip(graph.tensors, tensor_class, strict=True):
        if number == len(shapes):
            shapes.append(tensor.shape)
        assert shapes[number] == tensor.shape, "aliases and tied outputs of a valid graph agree in shape"
    operators = tuple(op.bound for op in representatives.values())
    return Problem(graph, operators, tuple(shapes), operation_class, tensor_class)


def _leader(leader: list[int], index: int) -> int:
    while leader[index] != index:
        leader[index] = leader[leader[index]]
        index = leader[index]
    return index


def _join(leader: list[int], a: int, b: int) -> None:
    first, second = sorted((_leader(leader, a), _leader(leader, b)))
    leader[second] = first
