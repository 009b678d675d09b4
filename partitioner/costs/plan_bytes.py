"""Count a whole plan's bytes, operation by operation, without using the tables of the search.

    bytes  =  sum over operations o, over tensors t that o uses, of   itemsize(t) * elements that move

The elements that move are those of `box_counts`, evaluated on the regions of this plan alone. Plans are
verified against this count, so it takes nothing from the search but the choices. Implemented in: `count` (by
operation and tensor), `count_bytes` (sums after each step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter, mul
from types import MappingProxyType
from typing import Literal

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, volume, whole
from ...dataflow.alike import numbered
from ...dataflow.graph import Graph, Operation
from ..layouts.choices import Axes, Counts, axes, split_further
from ..layouts.copies import ReadCopy
from ..layouts.forms import Expanded, Form
from ..layouts.step_split import (
    Choice,
    Dimensions,
    Layout,
    is_stepped,
    plain_steps,
    split_operation,
)
from ..layouts.uses import Use, touched, unread
from .box_counts import fetched_by_worker, overlap

Versions = Mapping[tuple[int, int], ReadCopy]
"""The copies that operations read, by the numbers of operation and tensor."""

Totals = tuple[int, ...]
"""Elements that move after the first step, after the first two, and so on up to all."""


PAIRS = 1 << 18
"""The most pairs of regions that are intersected at once."""

Kind = Literal["copy", "fetch", "concat", "reduce"]


@dataclass(frozen=True, slots=True)
class Contribution:
    """The bytes that an operation moves for a tensor."""

    operation: str
    """The operation's name."""

    tensor: str
    """The tensor's name."""

    kind: Kind
    """`fetch` for an input, `concat` or `reduce` for an output, `copy` for a copy that is made before it."""

    bytes: int
    """The bytes that cross between workers in one iteration."""


def count(
    graph: Graph,
    layouts: Mapping[str, Layout],
    strategies: Mapping[str, Form],
    factors: tuple[int, ...],
    versions: Versions = MappingProxyType({}),
) -> list[Contribution]:
    """Count the bytes that every operation moves for every tensor it touches, in graph order, with zeros.

    `versions` are the copies that operations read instead of a tensor's home.
    """
    parts = PartCounts(factors)
    contributions: list[Contribution] = []
    for operation in graph.operations:
        contributions += _of_operation(parts, graph, operation, layouts, strategies, versions)
    return contributions


def _of_operation(
    parts: PartCounts,
    graph: Graph,
    operation: Operation,
    layouts: Mapping[str, Layout],
    strategies: Mapping[str, Form],
    versions: Versions,
) -> Iterator[Contribution]:
    """Yield the contributions of one operation."""
    tasks = parts.tasks(operation.bound, strategies[operation.name])
    uses = touched(operation)
    if versions:
        uses += [(index, ()) for index in unread(operation) if (operation.index, index) in versions]
    for index, source in uses:
        tensor = graph.tensors[index]
        layout = layouts[tensor.name]
        version = None if isinstance(source, int) else versions.get((operation.index, index))
        if version is not None:
            layout = version.layout
            if version.made:
                copied = parts.copied(version.layout, version.source) * tensor.itemsize
                yield Contribution(operation.name, tensor.name, "copy", copied)
        if source == ():
            continue
        moved = parts.moved(tasks, parts.held(layout), source)
        made: Kind = "reduce" if tasks.terms > 1 else "concat"
        kind = made if isinstance(source, int) else "fetch"
        yield Contribution(operation.name, tensor.name, kind, moved * tensor.itemsize)


def _sum(
    graph: Graph,
    layouts: Mapping[str, Layout],
    strategies: Mapping[str, Form],
    versions: Versions,
    parts: PartCounts,
) -> int:
    """Return the sum of `count`."""
    total = 0
    for operation, members in _groups(graph, layouts, strategies, versions):
        moved = _of_operation(parts, graph, operation, layouts, strategies, versions)
        total += members * sum([entry.bytes for entry in moved])
    return total


def _groups(
    graph: Graph, layouts: Mapping[str, Layout], strategies: Mapping[str, Form], versions: Versions
) -> list[tuple[Operation, int]]:
    """Return an operation of each group that moves alike, and the number of its members.

    They are alike, and the objects of their forms, layouts and copies are the same.
    """
    forms = numbered([strategies[operation.name] for operation in graph.operations])
    keys: list[tuple[int, ...]] = graph.alike.keys(
        forms, numbered([layouts[tensor.name] for tensor in graph.tensors])
    )
    for (operation, tensor), copy in sorted(versions.items(), key=itemgetter(0)):
        place = graph.operations[operation].inputs.index(tensor)
        keys[operation] += place, id(copy.layout), id(copy.source), copy.made
    members = Counter(keys)
    leaders = {key: number for number, key in zip(reversed(range(len(keys))), reversed(keys), strict=True)}
    return [(graph.operations[leaders[key]], count) for key, count in members.items()]


def count_bytes(
    graph: Graph,
    layouts: Mapping[str, Layout],
    strategies: Mapping[str, Form],
    factors: tuple[int, ...],
    versions: Versions = MappingProxyType({}),
    known: KnownCounts | None = None,
) -> list[int]:
    """Return the sum of `count` after no step, one, and so on up to all; equal operations are evaluated once.

    After some steps, each of the remaining groups of workers counts as one worker. A plan that is not written
    in steps throughout counts as one step. `known` has the counts of other plans with the same factors.
    """
    known = KnownCounts(factors) if known is None else known
    forms = {id(each): each for each in (*layouts.values(), *strategies.values())}
    if versions or not is_stepped(forms.values()):
        return [0, _sum(graph, layouts, strategies, versions, known.parts)]
    if not factors:
        return [0]
    elements = known.elements
    weights: Counter[tuple[_Operator, _Tensor, Use]] = Counter()
    for operation, members in _groups(graph, layouts, strategies, versions):
        operator = elements.operator(operation.bound, plain_steps(strategies[operation.name]))
        for index, source in touched(operation):
            tensor = graph.tensors[index]
            layout = layouts[tensor.name]
            held = elements.tensor(layout.shape, layout.dimensions)
            weights[operator, held, source] += members * tensor.itemsize
    totals = [0] * len(factors)
    for (operator, held, source), weight in weights.items():
        for steps, moved in enumerate(elements.moved(operator, held, source)):
            totals[steps] += weight * moved
    return [0, *totals]


@dataclass(frozen=True, slots=True, eq=False)
class _Tasks:
    """The tasks of one operator."""

    workers: Counts
    """Each task's worker."""

    inputs: Mapping[str, Boxes]
    """For each parameter, the regions that are read."""

    read: Counts
    """Each task's term of its inputs, of those that are not reduced."""

    outputs: tuple[Expanded, ...]
    """For each output, the regions that are produced."""

    terms: int
    """The number of partial results; 1 if the outputs are only concatenated."""

    apart: bool
    """Whether no two of them are of one worker."""


@dataclass(frozen=True, slots=True, eq=False)
class _Holdings:
    """The holdings of one tensor."""

    parts: Expanded
    """Their workers, regions and terms."""

    stop: _Holdings | None = None
    """Where partial results are reduced on their way here."""


class PartCounts:
    """Elements that move between tasks and holdings, whatever the forms; each count is computed once."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._tasks: dict[tuple[Bound, Form], _Tasks] = {}
        self._holdings: dict[Layout, _Holdings] = {}
        self._moved: dict[tuple[_Tasks, _Holdings, Use], int] = {}
        self._copied: dict[tuple[_Holdings, _Holdings], int] = {}

    def tasks(self, bound: Bound, form: Form) -> _Tasks:
        found = self._tasks.get((bound, form))
        if found is None:
            parts = split_operation(bound, form, self._factors)
            found = self._tasks[bound, form] = _Tasks(
                parts.workers,
                bound.input_regions(parts.boxes),
                parts.read,
                tuple([
                    Expanded(parts.workers, boxes, parts.term, parts.terms)
                    for boxes in bound.output_regions(parts.boxes)
                ]),
                parts.terms,
                len(np.unique(parts.workers)) == len(parts.workers),
            )  # fmt: skip
        return found

    def held(self, layout: Layout) -> _Holdings:
        found = self._holdings.get(layout)
        if found is None:
            stop = None if layout.stop is None else self.held(layout.stop)
            found = self._holdings[layout] = _Holdings(layout.expanded, stop)
        return found

    def copied(self, layout: Layout, source: Layout) -> int:
        """Count the elements that move to make a copy from another version."""
        key = self.held(source), self.held(layout)
        found = self._copied.get(key)
        if found is None:
            found = self._copied[key] = _summed(key[0].parts, key[1].parts)
        return found

    def moved(self, tasks: _Tasks, held: _Holdings, use: Use) -> int:
        key = (tasks, held, use)
        found = self._moved.get(key)
        if found is None:
            found = self._moved[key] = _moved_parts(tasks, held, use)
        return found


def _moved_parts(tasks: _Tasks, held: _Holdings, use: Use) -> int:
    if isinstance(use, int):
        made, home = tasks.outputs[use], held.parts
        if held.stop is None or made.terms == home.terms:
            return _summed(made, home)
        return _summed(made, held.stop.parts) + _summed(held.stop.parts, home)
    reads, terms = [tasks.inputs[name] for name in use], held.parts.terms
    workers = tasks.workers * terms + (tasks.read if terms > 1 else 0)
    workers, regions = np.tile(workers, len(reads)), np.concatenate(reads)
    if len(reads) > 1 or not tasks.apart:
        rows = np.concatenate((workers[:, None], regions.reshape(len(regions), -1)), axis=1)
        _, first = np.unique(rows, axis=0, return_index=True)
        workers, regions = workers[first], regions[first]
    there = held.parts.workers * terms + held.parts.term
    return int(volume(regions).sum()) - _own(workers, regions, there, held.parts.boxes)


def _summed(made: Expanded, wanted: Expanded) -> int:
    """Count the elements that move if every wanted term is the sum of equally many terms that were made."""
    each = made.terms // wanted.terms
    here = wanted.workers * wanted.terms + wanted.term
    there = made.workers * wanted.terms + made.term // each
    return each * int(volume(wanted.boxes).sum()) - _own(here, wanted.boxes, there, made.boxes)


def _own(workers: Counts, regions: Boxes, holders: Counts, held: Boxes) -> int:
    """Count the elements of regions that the regions' workers hold; equal terms count as workers do."""
    by_holder = np.argsort(holders, kind="stable")
    ordered = holders[by_holder]
    firsts = np.searchsorted(ordered, workers, side="left")
    counts = np.searchsorted(ordered, workers, side="right") - firsts
    ends = counts.cumsum()
    found, pairs = 0, int(ends[-1]) if len(ends) else 0
    for first in range(0, pairs, PAIRS):
        pair = np.arange(first, min(first + PAIRS, pairs))
        region = np.searchsorted(ends, pair, side="right")
        holding = by_holder[firsts[region] + pair - ends[region] + counts[region]]
        found += int(overlap(regions[region], held[holding]).sum())
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Operator:
    """The regions of an operator for the groups after the first step, those after the second, and so on."""

    inputs: Mapping[str, Boxes]
    """For each parameter, the regions that are read."""

    outputs: tuple[Boxes, ...]
    """For each output, the regions that are produced."""

    terms: Counts
    """For each group, the number of partial results that are reduced."""


@dataclass(frozen=True, slots=True, eq=False)
class _Tensor:
    """The regions of a tensor that groups own, the groups as for `_Operator`."""

    regions: Boxes


class _Elements:
    """Elements that move between operators and tensors, each count computed once and for all steps."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._groups = tuple(accumulate(factors, mul))
        self._starts = np.cumsum((0, *self._groups[:-1])) if factors else np.zeros(0, np.int64)
        self._operators: dict[tuple[Bound, Choice], _Operator] = {}
        self._tensors: dict[tuple[Shape, Dimensions], _Tensor] = {}
        self._moved: dict[tuple[_Operator, _Tensor, Use], Totals] = {}

    def operator(self, bound: Bound, sequence: Choice) -> _Operator:
        found = self._operators.get((bound, sequence))
        if found is None:
            names = bound.variables
            axes = tuple(None if variable is None else names.index(str(variable)) for variable in sequence)
            boxes = self._split(bound.full_box, axes)
            reducing = [
                factor if variable is not None and bound.kind(str(variable)) == "reduce" else 1
                for variable, factor in zip(sequence, self._factors, strict=True)
            ]
            found = self._operators[bound, sequence] = _Operator(
                bound.input_regions(boxes),
                bound.output_regions(boxes),
                np.repeat(np.array(list(accumulate(reducing, mul)), np.int64), self._groups),
            )
        return found

    def tensor(self, shape: Shape, dimensions: Dimensions) -> _Tensor:
        found = self._tensors.get((shape, dimensions))
        if found is None:
            found = self._tensors[shape, dimensions] = _Tensor(self._split(whole(shape), axes(dimensions)))
        return found

    def moved(self, operator: _Operator, tensor: _Tensor, source: Use) -> Totals:
        key = (operator, tensor, source)
        found = self._moved.get(key)
        if found is None:
            by_group = _moved_by_group(operator, tensor.regions, source)
            found = self._moved[key] = tuple(np.add.reduceat(by_group, self._starts).tolist())
        return found

    def _split(self, box: Boxes, axes: Axes) -> Boxes:
        """Return a box as split after each step: `[groups of all steps, d, 2]`."""
        boxes = box[None]
        after: list[Boxes] = [boxes[:0]]
        for axis, factor in zip(axes, self._factors, strict=True):
            boxes = split_further(boxes, (axis,), factor)[0]
            after.append(boxes)
        return np.concatenate(after)


def _moved_by_group(operator: _Operator, owned: Boxes, source: Use) -> Counts:
    if isinstance(source, int):
        return operator.terms * volume(owned) - overlap(owned, operator.outputs[source])
    return fetched_by_worker([operator.inputs[name] for name in source], owned)


class KnownCounts:
    """Elements that move in plans with the same factors; each count is computed once for all of them."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self.parts = PartCounts(factors)
        """For plans in any form."""
        self.elements = _Elements(factors)
        """For plans in steps."""
