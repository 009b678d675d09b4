"""Prove a lower bound for every recursive plan: the bytes that must cross between the first step's groups.

    wanted    a number  b  <=  cost of P    for every plan P of the recursion
    b         the least, over all choices of the first step, of the sum over the links of certain[link]

Take any plan that refines a choice of the first step, whose `k` groups own `T_g`, compute boxes that need
`R_g`, and produce `P_g`. The certain count of a link is at most the refined plan's count:

* *Outputs, concatenated.* An element of `T_g` outside `P_g` is owned by some worker of group `g` and
  computed by none of its workers, so it is fetched at least once: `|T_g| - |T_g n P_g|` in all.
* *Outputs, reduced.* Each owner of an element fetches it from one holder of every term but its own. At
  least `k - 1` terms are computed outside the group: `(k - 1) |T_g|`.
* *Inputs.* Together the workers of a group fetch at least what their regions cover outside `T_g`. If the
  regions of any refinement cover all of `R_g`, that is `|R_g| - |R_g n T_g|`. They need not: a window
  with a stride skips elements at the seam between two workers that the group's bounding box contains.
  Such a read counts as zero here. A tensor that is read twice counts by its larger read only, since
  refined regions may coincide and be fetched once.

* *Copies.* Together the workers of a group fetch at least what their parts of a copy cover outside `T_g`,
  and an operation reads the home or the copy.

The least sum of these over all choices of the first step is therefore a bound for every plan with the
same decisions (ties included) and the same first factor. Implemented in: `first_step_bound` (the least sum),
`certain_reads` (inputs), `Refinable` (whether refined regions cover all of `R_g`). The tables of outputs are
those of the first step itself.

Assumes: the first step's choices include those of every plan that the bound is for, and `least_bytes` is a
proven bound on the sum of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.analysis import Analysis
from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, flattened, volume
from ...tdl.ast import Element, Index, Variable
from ...tdl.traverse import walk
from ..costs.box_counts import overlap
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..solvers.elimination import CostTable
from ..solvers.semiring import TableArithmetic
from ..solvers.solve import STEP_EFFORT, least_cost
from .problem import Problem

UNIT_LIMIT = 1 << 14
"""If an index has more values, its reads are not checked for holes and count as zero."""

Mask = npt.NDArray[np.bool_]


def first_step_bound(
    problem: Problem,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    counted: Sequence[CostTable],
    least_bytes: int,
    arithmetic: TableArithmetic,
) -> int:
    """Return the bound, given the choices of the first step and its tables `counted`, one per link.

    `least_bytes` is the proven least sum of these tables. If every count is itself a bound, this is the
    answer. Otherwise the answer is the proven least sum of smaller tables; `arithmetic` reuses the results
    that both have in common.
    """
    refinable = Refinable()
    links = problem.links
    kinds = links.kinds(operators, tensors)
    reads: list[Counts | None] = []
    for operator, tensor, use, weight in map(links.__getitem__, kinds.first):
        if isinstance(use, int) or refinable.all(operators[operator], use):
            reads.append(None)
        else:
            reads.append(certain_reads(operators[operator], tensors[tensor], use, refinable) * weight)
    if all(table is None for table in reads):
        return least_bytes
    cost_tables = [
        whole if table is None else CostTable(whole.scope, table)
        for whole, table in zip(counted, map(reads.__getitem__, kinds.of.tolist()), strict=True)
    ]
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    return least_cost(domains, cost_tables, arithmetic, STEP_EFFORT).lower_bound


def certain_reads(
    operator: OperatorChoices, tensor: TensorChoices, names: tuple[str, ...], refinable: Refinable
) -> Counts:
    """Count the elements of an input that any refinement fetches: `[operator choices, tensor choices]`.

    `names` are the parameters through which the operator reads the tensor.
    """
    versions = [tensor.regions] if tensor.copied is None else [tensor.regions, tensor.copied]
    return np.asarray(np.minimum.reduce([_certain(operator, held, names, refinable) for held in versions]))


def _certain(operator: OperatorChoices, held: Boxes, names: tuple[str, ...], refinable: Refinable) -> Counts:
    """Count like `certain_reads` if the operator reads one version of the tensor."""
    owned = held[None]
    largest: Counts | None = None
    for name in names:
        needed = operator.inputs[name][:, None]
        counts = (volume(needed) - overlap(needed, owned)) * refinable.mask(operator, name)[:, None]
        largest = counts if largest is None else np.maximum(largest, counts)
    assert largest is not None
    total: Counts = largest.sum(axis=-1)
    return total


class Refinable:
    """Which reads have the property that the regions of any refinement cover the whole region."""

    def __init__(self) -> None:
        self._windows: dict[tuple[Analysis, str], tuple[_Window, ...] | None] = {}
        self._masks: dict[tuple[OperatorChoices, str], Mask] = {}
        self._covered: dict[tuple[Bound, str, int, bytes], bool] = {}

    def all(self, operator: OperatorChoices, names: tuple[str, ...]) -> bool:
        return len(names) == 1 and bool(self.mask(operator, names[0]).all())

    def mask(self, operator: OperatorChoices, name: str) -> Mask:
        """Tell whether unit boxes of a group's box cover its region of the tensor: `[choices, groups]`."""
        found = self._masks.get((operator, name))
        if found is None:
            found = self._masks[operator, name] = self._compute(operator, name)
        return found

    def _compute(self, operator: OperatorChoices, name: str) -> Mask:
        shape = operator.boxes.shape[:2]
        windows = self._windows_of(operator.bound, name)
        if windows is None:
            return np.zeros(shape, np.bool_)
        mask = np.ones(shape, np.bool_)
        for window in windows:
            mask &= self._are_covered(operator, name, window)
        return mask

    def _windows_of(self, bound: Bound, name: str) -> tuple[_Window, ...] | None:
        """List the dimensions of a tensor whose reads may have holes; None if they are not independent."""
        key = (bound.analysis, name)
        if key not in self._windows:
            self._windows[key] = _windows(bound, name)
        return self._windows[key]

    def _are_covered(self, operator: OperatorChoices, name: str, window: _Window) -> Mask:
        """Compute the mask of one dimension, `[choices, groups]`; new cases are evaluated at once."""
        bound = operator.bound
        boxes = flattened(operator.boxes)
        regions = operator.inputs[name].reshape(len(boxes), -1, 2)[:, window.dimension]
        keys = [(bound, name, window.dimension, box[window.positions].tobytes()) for box in boxes]
        new = {key: place for place, key in enumerate(keys) if key not in self._covered}
        units = {key: _unit_boxes(boxes[place], window.positions) for key, place in new.items()}
        self._covered |= {key: False for key, cut in units.items() if cut is None}
        cuts = {key: cut for key, cut in units.items() if cut is not None}
        if cuts:
            read = bound.input_regions(np.concatenate(list(cuts.values())))[name][:, window.dimension]
            ends = np.cumsum([len(cut) for cut in cuts.values()])[:-1]
            for key, intervals in zip(cuts, np.split(read, ends), strict=True):
                self._covered[key] = _covers(intervals, regions[new[key]])
        return np.array([self._covered[key] for key in keys]).reshape(operator.boxes.shape[:2])


@dataclass(frozen=True, slots=True)
class _Window:
    """A dimension whose index is more than a plain variable."""

    dimension: int
    """The dimension of the tensor."""

    positions: list[int]
    """The positions of the variables in its index."""


def _windows(bound: Bound, name: str) -> tuple[_Window, ...] | None:
    reads = [
        node.indices for node in walk(bound.description) if isinstance(node, Element) and node.tensor == name
    ]
    dimensions = list(zip(*reads, strict=True))
    variables = [_variables(indices) for indices in dimensions]
    if len(set().union(*variables)) != sum(map(len, variables)):
        return None
    return tuple(
        _Window(dimension, [bound.variables.index(variable) for variable in sorted(variables[dimension])])
        for dimension, indices in enumerate(dimensions)
        if variables[dimension]
        and not (isinstance(indices[0], Variable) and all(index == indices[0] for index in indices))
    )


def _variables(indices: Sequence[Index]) -> set[str]:
    return {node.name for index in indices for node in walk(index) if isinstance(node, Variable)}


def _unit_boxes(box: Boxes, positions: list[int]) -> Boxes | None:
    """Cut `box` into single values of the variables at `positions`; None if there are too many."""
    extents = (box[positions, 1] - box[positions, 0]).tolist()
    if prod(extents) > UNIT_LIMIT:
        return None
    offsets = np.indices(extents).reshape(len(positions), -1)
    units = np.repeat(box[None], offsets.shape[1], axis=0)
    for position, offset in zip(positions, offsets, strict=True):
        units[:, position, 0] = box[position, 0] + offset
        units[:, position, 1] = units[:, position, 0] + 1
    return units


def _covers(intervals: Boxes, target: Boxes) -> bool:
    """Tell whether the union of `[n, 2]` intervals contains the `[2]` target."""
    intervals = intervals[intervals[:, 1] > intervals[:, 0]]
    if not len(intervals):
        return bool(target[1] <= target[0])
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    reached = np.maximum.accumulate(intervals[:, 1])
    return bool(
        intervals[0, 0] <= target[0] and reached[-1] >= target[1] and (intervals[1:, 0] <= reached[:-1]).all()
    )
