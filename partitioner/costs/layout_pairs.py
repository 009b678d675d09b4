"""Count the elements that move and are buffered if a tensor is held in any of many layouts, or in two.

    home h     where makers leave a tensor, directly or by way of a layout v in which they reduce
    copy c     a second layout, made from h, for some of the readers

The counts are those of `box_counts` and the buffers those of lowering, summed over the workers: a worker
reads from its own part if all that it needs is there, and otherwise fetches into a buffer of that size. A
part of a copy that lies in the same worker's part of the home takes no memory. Each count is an array over
all layouts of a shape, and computed once. Implemented in: `LayoutPairs` (one shape), `Uses` (operations).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices, operator_choices, tensor_choices
from ..layouts.step_split import Dimensions, Strategies
from ..layouts.uses import Use
from .box_counts import communication, fetched_elements, overlap


@dataclass(frozen=True, slots=True, eq=False)
class LayoutPairs:
    """The layouts of one shape, singly and in pairs."""

    layouts: TensorChoices
    """The layouts."""

    held: Counts
    """The elements that workers hold: `[layouts]`."""

    common: Counts
    """The elements that workers hold in both of two layouts: `[layouts, layouts]`."""

    fresh: Counts
    """For home and copy, the elements of parts of the copy that need memory of their own, likewise."""

    lent: Counts
    """For home and copy, the elements of parts of the home in which parts of the copy lie, likewise."""

    read: Counts
    """For home and copy, the elements of parts of the home that their own worker reads to make the copy."""

    @classmethod
    def of(cls, shape: Shape, sequences: Sequence[Dimensions], factors: Sequence[int]) -> LayoutPairs:
        """Count the elements of all layouts of a shape and of all pairs of them."""
        layouts = tensor_choices(shape, sequences, factors)
        sizes = volume(layouts.regions)
        common = [overlap(home, layouts.regions) for home in layouts.regions]
        inside = [row == sizes for row in common]
        return cls(
            layouts,
            sizes.sum(axis=-1),
            np.stack([row.sum(axis=-1) for row in common]),
            np.stack([np.where(row, 0, sizes).sum(axis=-1) for row in inside]),
            np.stack([np.where(row, own, 0).sum(axis=-1) for row, own in zip(inside, sizes, strict=True)]),
            np.stack([np.where(row, own, 0).sum(axis=-1) for row, own in zip(common, sizes, strict=True)]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """One operation's reads of a tensor: the elements for each layout that it may be held in."""

    fetched: Counts
    """The elements that workers fetch: `[layouts]`."""

    buffered: Counts
    """The elements of the buffers that they are fetched into: `[layouts]`."""

    touched: Counts
    """The elements of the parts that their own worker reads: `[layouts]`."""

    direct: Counts
    """The elements of the parts in which their own worker has all that it needs: `[layouts]`."""


@dataclass(frozen=True, slots=True, eq=False)
class Makes:
    """How one operation makes a tensor: the elements for each layout that it may be held in."""

    made: int
    """The elements that all workers compute."""

    terms: int
    """The number of partial results."""

    moved: Counts
    """The elements that move if the makers' results go straight to a layout: `[layouts]`."""

    loose: Counts
    """The elements that are computed in buffers, since they are not a part of the layout: `[layouts]`."""


class Uses:
    """Counts of what operations read and make of tensors in any layout; each is computed once."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._operators: dict[tuple[Bound, Strategies], OperatorChoices] = {}
        self._reads: dict[tuple[Bound, Strategies, Use, LayoutPairs], Reads] = {}
        self._makes: dict[tuple[Bound, Strategies, int, LayoutPairs], Makes] = {}

    def reads(self, bound: Bound, form: Strategies, use: tuple[str, ...], pairs: LayoutPairs) -> Reads:
        """Count what an operation reads of a tensor through the parameters `use`."""
        key = bound, form, use, pairs
        found = self._reads.get(key)
        if found is None:
            operator, owned = self._operator(bound, form), pairs.layouts.regions
            needed = [operator.inputs[name] for name in use]
            own = sum(overlap(boxes, owned) for boxes in needed)
            whole = sum(overlap(boxes, owned) == volume(boxes) for boxes in needed)
            found = self._reads[key] = Reads(
                fetched_elements(needed, owned),
                _buffered([boxes[0] for boxes in needed], owned),
                np.where(own, volume(owned), 0).sum(axis=-1),
                np.where(whole, volume(owned), 0).sum(axis=-1),
            )
        return found

    def makes(self, bound: Bound, form: Strategies, output: int, pairs: LayoutPairs) -> Makes:
        """Count what an operation makes of a tensor, which is its output number `output`."""
        key = bound, form, output, pairs
        found = self._makes.get(key)
        if found is None:
            operator, owned = self._operator(bound, form), pairs.layouts.regions
            produced, terms = operator.outputs[output], int(operator.terms[0])
            sizes = volume(produced[0])
            same = (produced == owned).all(axis=(-1, -2)) & (operator.term == pairs.layouts.term)
            same = np.where((pairs.layouts.terms == terms)[:, None], same, False)
            found = self._makes[key] = Makes(
                int(sizes.sum()),
                terms,
                communication(operator, pairs.layouts, output)[0],
                np.where(same, 0, sizes).sum(axis=-1),
            )
        return found

    def _operator(self, bound: Bound, form: Strategies) -> OperatorChoices:
        found = self._operators.get((bound, form))
        if found is None:
            found = self._operators[bound, form] = operator_choices(bound, [form], self._factors)
        return found


def _buffered(needed: Sequence[Counts], owned: Counts) -> Counts:
    """Count the elements of the regions that their own worker does not hold whole, equal ones once."""
    total = np.zeros(len(owned), np.int64)
    for number, regions in enumerate(needed):
        sizes = volume(regions)
        again = np.zeros(len(regions), bool)
        for earlier in needed[:number]:
            again |= (earlier == regions).all(axis=(-1, -2))
        total += np.where((overlap(regions, owned) == sizes) | again, 0, sizes).sum(axis=-1)
    return total
