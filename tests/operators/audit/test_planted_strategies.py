"""Strategies with planted bugs: regions, boxes, reducers, reductions that do not commute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.audit.finding import Check
from tofu.analyzer.indices.region import Boxes
from tofu.analyzer.strategies.strategy import Strategy
from tofu.operators.kernels.kernel import KernelCall, Run
from tofu.tdl.ast import Reducer

CONV = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""
BACK = "def back(data):\n    return lambda i=data.shape[0]: data[data.shape[0] - 1 - i]"
EVEN = "def even(data):\n    return lambda x=data.shape[0] // 2: data[2 * x]"
TAKE = "def take(ids, table):\n    return lambda n, j: table[ids[n], j]"
PLACE = "def place(data):\n    return lambda i: data[i] * i"
ROWS = "def rows(data):\n    return lambda i: {}"
SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    CONV: {"data": (2, 2, 7), "filters": (2, 3, 3)},
    BACK: {"data": (6,)},
    EVEN: {"data": (8,)},
    TAKE: {"ids": (4,), "table": (5, 4)},
    PLACE: {"data": (6,)},
}


@dataclass(frozen=True)
class Wrong:
    """A bound description whose boxes or regions are changed."""

    bound: Any
    change_split: Callable[[Boxes], Boxes] | None = None
    change_inputs: Callable[[dict[str, Boxes]], dict[str, Boxes]] | None = None
    change_outputs: Callable[[Boxes], Boxes] | None = None

    @property
    def description(self) -> Any:
        return self.bound.description

    @property
    def extents(self) -> dict[str, int]:
        return dict(self.bound.extents)

    def split(self, variables: Any, factors: Any) -> Boxes:
        boxes = self.bound.split(variables, factors)
        return boxes if self.change_split is None else self.change_split(boxes)

    def input_regions(self, boxes: Boxes) -> dict[str, Boxes]:
        regions = self.bound.input_regions(boxes)
        return regions if self.change_inputs is None else self.change_inputs(regions)

    def output_regions(self, boxes: Boxes) -> tuple[Boxes, ...]:
        regions = self.bound.output_regions(boxes)
        return regions if self.change_outputs is None else tuple(map(self.change_outputs, regions))


def wrong_regions(variable: str, kind: Any, **changes: Any) -> Callable[[Any], list[Strategy]]:
    def select(subject: Any) -> list[Strategy]:
        return [Strategy(variable, kind, subject.reducer(variable), False, Wrong(subject, **changes))]

    return select


def wrong_kind(variable: str, kind: Any, reducer: Reducer | None) -> Callable[[Any], list[Strategy]]:
    return lambda subject: [Strategy(variable, kind, reducer, False, subject)]


def moved(tensor: str, axis: int, lower: int, upper: int) -> Callable[[dict[str, Boxes]], dict[str, Boxes]]:
    def change(regions: dict[str, Boxes]) -> dict[str, Boxes]:
        boxes = regions[tensor].copy()
        boxes[:, axis] += (lower, upper)
        return regions | {tensor: np.maximum(boxes, 0)}

    return change


def rebased(regions: dict[str, Boxes]) -> dict[str, Boxes]:
    """Regions that all start at zero, as if every worker held a separate tensor."""
    return {name: boxes - boxes[..., :1] for name, boxes in regions.items()}


def mirrored(regions: dict[str, Boxes]) -> dict[str, Boxes]:
    """Bounds of `n - 1 - i` that are not swapped, as in the paper's figure 4."""
    return {name: 6 - boxes[..., ::-1] for name, boxes in regions.items()}


def halved(regions: dict[str, Boxes]) -> dict[str, Boxes]:
    """A stride that is forgotten."""
    return {name: (boxes + 1) // 2 for name, boxes in regions.items()}


def short(boxes: Boxes) -> Boxes:
    """The last worker stops one too early."""
    changed = boxes.copy()
    split = [axis for axis in range(boxes.shape[1]) if (boxes[0, axis] != boxes[-1, axis]).any()]
    changed[-1, split, 1] -= 1
    return changed


def overlapping(boxes: Boxes) -> Boxes:
    """Every worker but the first starts one too early."""
    changed = boxes.copy()
    changed[1:, :, 0] = np.maximum(boxes[1:, :, 0] - 1, 0)
    return changed


def shifted(boxes: Boxes) -> Boxes:
    """Parts of the output one place too far to the left."""
    return np.maximum(boxes - 1, 0)


def grown(boxes: Boxes) -> Boxes:
    """Parts of the output that start one place too early."""
    return np.maximum(boxes - (1, 0), 0)


def cut(boxes: Boxes) -> Boxes:
    """Parts of the output that end one place too early."""
    return boxes - (0, 1)


REGIONS, CONCAT, REDUCE = Check.REGIONS, Check.CONCAT, Check.REDUCE
BUGS: dict[str, tuple[str, Callable[[Any], Any], set[Check]]] = {
    "no halo above": (
        CONV,
        wrong_regions("x", "concat", change_inputs=moved("data", 2, 0, -1)),
        {REGIONS, CONCAT},
    ),
    "no halo below": (
        CONV,
        wrong_regions("x", "concat", change_inputs=moved("data", 2, 1, 0)),
        {REGIONS, CONCAT},
    ),
    "filters cut by output": (
        CONV,
        wrong_regions("b", "concat", change_inputs=moved("filters", 1, 1, 0)),
        {REGIONS, CONCAT},
    ),
    "channels of one tensor": (
        CONV,
        wrong_regions("ci", "reduce", change_inputs=moved("filters", 0, 1, 1)),
        {REGIONS, REDUCE},
    ),
    "every region at zero": (CONV, wrong_regions("x", "concat", change_inputs=rebased), {REGIONS, CONCAT}),
    "bounds not swapped": (BACK, wrong_regions("i", "concat", change_inputs=mirrored), {REGIONS, CONCAT}),
    "stride forgotten": (EVEN, wrong_regions("x", "concat", change_inputs=halved), {REGIONS, CONCAT}),
    "part of a table": (
        TAKE,
        wrong_regions("n", "concat", change_inputs=moved("table", 0, 1, 0)),
        {REGIONS, CONCAT},
    ),
    "a gap between boxes": (CONV, wrong_regions("b", "concat", change_split=short), {CONCAT}),
    "a gap in a reduction": (CONV, wrong_regions("ci", "reduce", change_split=short), {REDUCE}),
    "boxes that overlap": (CONV, wrong_regions("x", "concat", change_split=overlapping), {CONCAT}),
    "a sum that counts twice": (CONV, wrong_regions("dx", "reduce", change_split=overlapping), {REDUCE}),
    "parts moved": (EVEN, wrong_regions("x", "concat", change_outputs=shifted), {CONCAT}),
    "parts that overlap": (EVEN, wrong_regions("x", "concat", change_outputs=grown), {CONCAT}),
    "parts that leave a gap": (EVEN, wrong_regions("x", "concat", change_outputs=cut), {CONCAT}),
    "partial outputs cut": (CONV, wrong_regions("ci", "reduce", change_outputs=shifted), {REDUCE}),
    "concatenated sums": (CONV, wrong_kind("ci", "concat", None), {CONCAT}),
    "summed parts of an output": (CONV, wrong_kind("b", "reduce", Reducer.SUM), {REDUCE}),
    "a sum reduced by Max": (CONV, wrong_kind("ci", "reduce", Reducer.MAX), {REDUCE}),
    "a sum reduced by nothing": (CONV, wrong_kind("dx", "reduce", None), {REDUCE}),
    "offset not handed on": (PLACE, wrong_kind("i", "concat", None), {Check.OFFSET}),
}
NO_LAW = {
    "1 + Sum": ("1 + Sum(lambda j: data[i, j])", Reducer.SUM),
    "exp of Sum": ("exp(Sum(lambda j: data[i, j]))", Reducer.SUM),
    "square of Sum": ("Sum(lambda j: data[i, j]) ** 2", Reducer.SUM),
    "negated Max": ("-Max(lambda j: data[i, j])", Reducer.MAX),
    "Max times Sum": ("Max(lambda j: data[i, j]) * Sum(lambda j: data[i, j])", Reducer.SUM),
    "Prod by Sum": ("Prod(lambda j: data[i, j])", Reducer.SUM),
    "Min by Max": ("Min(lambda j: data[i, j])", Reducer.MAX),
    "a quotient of sums": ("Sum(lambda j: data[i, j]) / Sum(lambda j: data[i, j] ** 2)", Reducer.SUM),
    "a sum of a constant and a Sum": ("Sum(lambda j: data[i, j]) - data[i, 0]", Reducer.SUM),
}


@pytest.mark.parametrize("name", BUGS)
def test_wrong_strategies_are_refuted(name: str) -> None:
    text, select, checks = BUGS[name]
    report = tofu.audit(tofu.parse(text), np.copy, SHAPES[text], select=select)
    found = {finding.check for finding in report.refuted} & {REGIONS, CONCAT, REDUCE, Check.OFFSET}
    assert found == checks
    examples = [finding.counterexample for finding in report.refuted if finding.check in found]
    assert None not in examples
    for example in (finding.counterexample for finding in report.refuted if finding.check is REGIONS):
        assert example is not None
        assert example.message.startswith(f"reads {example.tensor}[")
        assert example.place is not None
        assert example.region is not None
        outside = [not low <= p < high for p, (low, high) in zip(example.place, example.region, strict=True)]
        assert any(outside)
        assert f"worker {example.worker} of {example.workers}; region of {example.tensor} [" in str(example)


def unused(call: KernelCall) -> Run:
    """Stand for a kernel of the whole description, which these checks do not run."""
    raise AssertionError


@pytest.mark.parametrize("name", NO_LAW)
def test_reductions_that_do_not_commute_are_refuted(name: str) -> None:
    body, reducer = NO_LAW[name]
    operator = tofu.parse(ROWS.format(body), kernel=unused)  # with a kernel, reducers do not become stages
    select = wrong_kind("j", "reduce", reducer)
    report = tofu.audit(operator, np.copy, {"data": (3, 5)}, select=select)
    (finding,) = [finding for finding in report.refuted if finding.check is REDUCE]
    assert finding.counterexample is not None
    assert finding.counterexample.shapes == {"data": (1, 2)}
    assert finding.counterexample.workers == 2
