"""Counting a whole plan's bytes, operation by operation, apart from the tables of the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..analyzer.bound import Bound
from ..dataflow.graph import Graph
from .network import Source, touched
from .splits import SplitLayout
from .tables import (
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
    steps: int | None = None,
) -> list[Contribution]:
    """What every operation moves for every tensor it touches, in graph order, zeros included.

    With `steps`, as if only that many steps existed and each of the groups they leave were one worker.
    """
    used = factors[:steps]
    operators: dict[tuple[Bound, Strategies], OperatorChoices] = {}
    tensors: dict[SplitLayout, TensorChoices] = {}
    elements: dict[tuple[OperatorChoices, TensorChoices, Source], int] = {}
    contributions: list[Contribution] = []
    for operation in graph.operations:
        bound, sequence = operation.bound, strategies[operation.name][:steps]
        operator = operators.get((bound, sequence))
        if operator is None:
            operator = operators[bound, sequence] = operator_choices(bound, [sequence], used)
        reducing = operator.terms[0] > 1
        for index, source in touched(operation):
            tensor = graph.tensors[index]
            layout = layouts[tensor.name]
            choices = tensors.get(layout)
            if choices is None:
                choices = tensor_choices(layout.shape, [layout.dimensions[:steps]], used)
                tensors[layout] = choices
            key = (operator, choices, source)
            if key not in elements:
                elements[key] = int(communication(operator, choices, source).item())
            contributions.append(
                Contribution(
                    operation.name,
                    tensor.name,
                    "fetch" if not isinstance(source, int) else "reduce" if reducing else "concat",
                    elements[key] * np.dtype(tensor.dtype).itemsize,
                )
            )
    return contributions


def count_bytes(
    graph: Graph,
    layouts: Mapping[str, SplitLayout],
    strategies: Mapping[str, Strategies],
    factors: tuple[int, ...],
    steps: int | None = None,
) -> int:
    """The sum of `count`."""
    return sum(entry.bytes for entry in count(graph, layouts, strategies, factors, steps))
