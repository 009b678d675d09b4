"""Operators on the page: kinds, which are descriptions with shapes, and the ways they are split."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Operation
from ...partitioner.layouts.form_text import form_text
from ...partitioner.layouts.forms import Form
from ...partitioner.layouts.step_split import OperationParts
from ...partitioner.layouts.tiling import intervals_along
from ...partitioner.plans.form_document import encode_form
from ..drawing.layout import drawn_tasks
from ..drawing.tiles import halo
from .pictures import Pictures
from .unique import Unique


class Kinds:
    """The kinds of operators and the ways they are split, each listed once."""

    def __init__(self, pictures: Pictures, factors: tuple[int, ...]) -> None:
        self.kinds = Unique()
        self.splits = Unique()
        self._pictures = pictures
        self._factors = factors

    def split(self, operation: Operation, form: Form) -> int:
        """Return the number of an operation's kind in this form."""
        return self.splits.number((operation.bound, form), lambda: self._split(operation.bound, form))

    def _split(self, bound: Bound, form: Form) -> dict[str, Any]:
        tasks = drawn_tasks(bound, form, self._factors)
        in_rows = all(map(_in_a_row, np.moveaxis(tasks.boxes, 1, 0)))
        reads = [
            [
                "reads",
                name,
                *self._pictures.of(
                    bound.shapes[name], tasks.workers, regions, halo(regions) if in_rows else None
                ).as_list,
            ]
            for name, regions in bound.input_regions(tasks.boxes).items()
            if name in bound.reads
        ]
        partial = f", one of {tasks.terms} partial values" if tasks.terms > 1 else ""
        several = len(bound.output_shapes) > 1
        made = zip(bound.output_shapes, bound.output_regions(tasks.boxes), strict=True)
        makes = [
            [
                "makes",
                f"output {n}{partial}" if several else f"output{partial}",
                *self._pictures.of(shape, tasks.workers, regions).as_list,
            ]
            for n, (shape, regions) in enumerate(made)
        ]
        return {
            "kind": self.kinds.number(bound, lambda: _kind(bound)),
            "choice": encode_form(form),
            "words": form_text(form, ", "),
            "chosen": _chosen(bound, form, tasks),
            "tensors": reads + makes,
        }


def _in_a_row(intervals: npt.NDArray[np.int64]) -> bool:
    """Tell whether intervals `[parts, 2]` are equal or disjoint, so that neighbours may have a halo."""
    distinct = np.unique(intervals, axis=0)
    return bool((distinct[1:, 0] >= distinct[:-1, 1]).all())


def _chosen(bound: Bound, form: Form, tasks: OperationParts) -> dict[str, str]:
    """Return how each variable is split: at which steps, or into how many parts."""
    if isinstance(form, tuple):
        steps: dict[str, list[str]] = {}
        for step, entry in enumerate(form, 1):
            if isinstance(entry, str):
                steps.setdefault(entry, []).append(str(step))
        return {variable: f"step {', '.join(numbers)}" for variable, numbers in steps.items()}
    counts = zip(bound.variables, intervals_along(tasks.boxes), strict=True)
    return {variable: f"in {count}" for variable, count in counts if count > 1}


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
