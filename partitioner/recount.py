"""Counting a whole plan's bytes, operation by operation, apart from the tables of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..analyzer.bound import Bound
from ..analyzer.region import Shape
from ..dataflow.graph import Graph
from .network import Source, touched
from .splits import SplitLayout
from .tables import (
    Dimensions,
    OperatorChoices,
    Strategies,
    TensorChoices,
    communication,
    operator_choices,
    tensor_choices,
)


@dataclass(frozen=True, slots=True)
class Contribution:
    """Bytes that an operation moves for a tensor: `fetch` of an input, `concat` or `reduce` of an output."""

    operation: str
    tensor: str
    kind: Literal["fetch", "concat", "reduce"]
    bytes: int


def count(
    graph: Graph,
    layouts: Mapping[str, SplitLayout],
    strategies: Mapping[str, Strategies],
    factors: tuple[int, ...],
) -> list[Contribution]:
    """What every operation moves for every tensor it touches, in graph order, zeros included."""
    movements = _Elements(factors)
    contributions: list[Contribution] = []
    for operation in graph.operations:
        operator = movements.operator(operation.bound, strategies[operation.name])
        reducing = operator.terms[0] > 1
        for index, source in touched(operation):
            tensor = graph.tensors[index]
            elements = movements.moved(operator, movements.tensor(layouts[tensor.name]), source)
            contributions.append(
                Contribution(
                    operation.name,
                    tensor.name,
                    "fetch" if not isinstance(source, int) else "reduce" if reducing else "concat",
                    elements * np.dtype(tensor.dtype).itemsize,
                )
            )
    return contributions


def count_bytes(
    graph: Graph,
    layouts: Mapping[str, SplitLayout],
    strategies: Mapping[str, Strategies],
    factors: tuple[int, ...],
) -> list[int]:
    """The sum of `count` after no step, one, and so on up to all; what repeats is evaluated once.

    After some steps each of the groups that they leave counts as one worker.
    """
    weights: Counter[tuple[Bound, Strategies, SplitLayout, Source]] = Counter()
    for operation in graph.operations:
        sequence = strategies[operation.name]
        for index, source in touched(operation):
            tensor = graph.tensors[index]
            key = (operation.bound, sequence, layouts[tensor.name], source)
            weights[key] += np.dtype(tensor.dtype).itemsize
    totals = [0]
    for steps in range(1, len(factors) + 1):
        movements = _Elements(factors[:steps])
        totals.append(
            sum(
                weight
                * movements.moved(movements.operator(bound, s[:steps]), movements.tensor(layout), source)
                for (bound, s, layout, source), weight in weights.items()
            )
        )
    return totals


class _Elements:
    """What moves between an operator and a tensor, each computed once."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._operators: dict[tuple[Bound, Strategies], OperatorChoices] = {}
        self._tensors: dict[tuple[Shape, Dimensions], TensorChoices] = {}
        self._moved: dict[tuple[OperatorChoices, TensorChoices, Source], int] = {}

    def operator(self, bound: Bound, sequence: Strategies) -> OperatorChoices:
        found = self._operators.get((bound, sequence))
        if found is None:
            found = operator_choices(bound, [sequence], self._factors)
            self._operators[bound, sequence] = found
        return found

    def tensor(self, layout: SplitLayout) -> TensorChoices:
        dimensions = layout.dimensions[: len(self._factors)]
        found = self._tensors.get((layout.shape, dimensions))
        if found is None:
            found = tensor_choices(layout.shape, [dimensions], self._factors)
            self._tensors[layout.shape, dimensions] = found
        return found

    def moved(self, operator: OperatorChoices, tensor: TensorChoices, source: Source) -> int:
        key = (operator, tensor, source)
        found = self._moved.get(key)
        if found is None:
            found = self._moved[key] = int(communication(operator, tensor, source).item())
        return found
