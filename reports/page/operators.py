"""Operators on the page: kinds, which are descriptions with shapes, and the ways they are split."""

from __future__ import annotations

from typing import Any

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Operation
from ...partitioner.layouts.choices import operator_choices
from ...partitioner.layouts.step_split import Strategies
from .pictures import Pictures
from .unique import Unique


class Kinds:
    """The kinds of operators and the ways they are split, each listed once."""

    def __init__(self, pictures: Pictures, factors: tuple[int, ...]) -> None:
        self.kinds = Unique()
        self.splits = Unique()
        self._pictures = pictures
        self._factors = factors

    def split(self, operation: Operation, strategies: Strategies) -> int:
        """Return the number of an operation's kind with these strategies."""
        return self.splits.number(
            (operation.bound, strategies), lambda: self._split(operation.bound, strategies)
        )

    def _split(self, bound: Bound, strategies: Strategies) -> dict[str, Any]:
        steps = len(self._factors)
        choices = operator_choices(bound, [strategies[:steps]], self._factors)
        reads = [
            ["reads", name, *self._pictures.of(bound.shapes[name], boxes[0]).as_list]
            for name, boxes in choices.inputs.items()
        ]
        terms = int(choices.terms[0])
        partial = f", one of {terms} partial values" if terms > 1 else ""
        several = len(choices.outputs) > 1
        makes = [
            [
                "makes",
                f"output {n}{partial}" if several else f"output{partial}",
                *self._pictures.of(*out).as_list,
            ]
            for n, out in enumerate(zip(bound.output_shapes, (b[0] for b in choices.outputs), strict=True))
        ]
        return {
            "kind": self.kinds.number(bound, lambda: _kind(bound)),
            "choice": list(strategies),
            "tensors": reads + makes,
        }


def _kind(bound: Bound) -> dict[str, Any]:
    from ...tdl import format

    refused = {refusal.variable: refusal.reason for refusal in bound.refusals}
    return {
        "name": bound.description.name,
        "text": format(bound.description).rstrip(),
        "inputs": [[name, list(shape)] for name, shape in bound.shapes.items()],
        "outputs": [list(shape) for shape in bound.output_shapes],
        "variables": [[name, extent, _how(bound, name, refused)] for name, extent in bound.extents.items()],
        "flops": bound.flops,
        "elementwise": bound.elementwise,
    }


def _how(bound: Bound, variable: str, refused: dict[str, str]) -> list[str]:
    """`["concat"]`, `["reduce", "Sum"]`, or why there is no strategy along a variable."""
    kind = bound.kind(variable)
    if kind is None:
        return ["no", refused.get(variable, "it is not split")]
    return [kind] if kind == "concat" else [kind, str(bound.reducer(variable))]
