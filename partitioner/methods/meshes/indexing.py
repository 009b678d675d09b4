"""Which dimensions of its tensors each variable of an operator indexes, from the regions that it derives.

Each variable is cut in two halves, and the regions of the halves are compared, dimension by dimension:

    moved    the regions differ               windows and reshapes overlap, but the variable has a say
    split    they differ and are disjoint     each half has elements of its own

A dimension that no variable moves, though all of it is read, is looked up by values: a gather.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Boxes
from ...layouts.uses import Use

Pairs = frozenset[tuple[str | int, int]]
"""Pairs of a parameter, or an output's number, and one of its dimensions."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """The dimensions that the variables of one operator index."""

    moved: dict[str, Pairs]
    """For every variable, the dimensions in which its halves differ."""

    split: dict[str, Pairs]
    """For every variable, the dimensions in which its halves are disjoint."""

    gathered: Pairs
    """The dimensions of inputs of which all is read, whatever the variables are."""

    _known: dict[tuple[str, Use, bool], frozenset[int]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """The results of `dimensions`."""

    def dimensions(self, variable: str, use: Use, disjoint: bool = True) -> frozenset[int]:
        """Return the dimensions of a tensor that a variable splits, or moves."""
        key = variable, use, disjoint
        found = self._known.get(key)
        if found is None:
            names = (use,) if isinstance(use, int) else use
            pairs = (self.split if disjoint else self.moved).get(variable, frozenset())
            found = self._known[key] = frozenset(dimension for name, dimension in pairs if name in names)
        return found

    def is_gathered(self, use: Use) -> bool:
        """Tell whether elements of a tensor are looked up by values."""
        return any(not isinstance(use, int) and name in use for name, _ in self.gathered)


@lru_cache(maxsize=1024)
def indexing(bound: Bound) -> Indexing:
    """Compare the halves of every variable of an operator. Methods ask for those of one graph in turn."""
    variables = [v for v, extent in bound.extents.items() if extent > 1]
    boxes = np.repeat(bound.full_box[None], 2 * len(variables) + 1, axis=0)
    for number, variable in enumerate(variables):
        axis = bound.variables.index(variable)
        boxes[2 * number, axis, 1] = boxes[2 * number + 1, axis, 0] = bound.extents[variable] // 2
    inputs = {name: r for name, r in bound.input_regions(boxes).items() if name in bound.reads}
    regions: dict[str | int, Boxes] = dict(enumerate(bound.output_regions(boxes)))
    regions.update(inputs)
    moved: dict[str, set[tuple[str | int, int]]] = {variable: set() for variable in variables}
    split: dict[str, set[tuple[str | int, int]]] = {variable: set() for variable in variables}
    for name, found in regions.items():
        low, high = found[:-1:2], found[1::2]
        apart = (low[..., 1] <= high[..., 0]) | (high[..., 1] <= low[..., 0])
        for number, dimension in np.argwhere((low != high).any(axis=-1)).tolist():
            moved[variables[number]].add((name, dimension))
            if apart[number, dimension]:
                split[variables[number]].add((name, dimension))
    known = frozenset().union(*moved.values())
    gathered = frozenset(
        (name, dimension)
        for name, found in inputs.items()
        for dimension, extent in enumerate(bound.shapes[name])
        if extent > 1 and (name, dimension) not in known and found[-1, dimension].tolist() == [0, extent]
    )
    return Indexing(
        {variable: frozenset(pairs) for variable, pairs in moved.items()},
        {variable: frozenset(pairs) for variable, pairs in split.items()},
        gathered,
    )
