"""Add up the terms that equal a key: the run-time part of sums over matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...kernels.kernel import Array
from ..steps.select import spread_bits
from .reach import Reach
from .recurrence import recur_by


def add_matches(axis: int, reach: Reach, *arguments: Array, out: Array) -> None:
    """Set `out[s]` to the sum of the terms up to the place of `s` whose reference is `keys[s]`.

    `arguments` are the references and terms in the order of their places, room for a mask of each, and the
    keys. The terms are written over.
    """
    references, terms, masks, keys, result = (np.moveaxis(array, axis, 0) for array in (*arguments, out))
    parts = [
        _Part(slice(*reach.inside), reach.start, reach.step),
        _Part(slice(*reach.past), len(terms) - 1, 0),
    ]
    parts = [part for part in parts if part.values.start < part.values.stop]
    result[slice(*reach.none)] = 0
    pairs = [(keys[part.values], references[part.places]) for part in parts]
    if not any(_in_runs(ordered, references, pairs) for ordered in (np.greater_equal, np.less_equal)):
        for part in parts:
            part.add_one_by_one(references, terms, keys, result)
        return
    masks[:1] = 0
    spread_bits(np.equal(references[1:], references[:-1]), out=masks[1:])
    recur_by(0, terms, masks, out=terms)
    for part, (wanted, found) in zip(parts, pairs, strict=True):
        np.copyto(result[part.values], terms[part.places])
        np.copyto(result[part.values], 0, where=wanted != found)


@dataclass(frozen=True, slots=True)
class _Part:
    """Values of `along` that read the places `start`, `start + step`, ...; with step 0 all read one place."""

    values: slice
    """The values, counted from the box's first one."""

    start: int
    """The place that the first value reads."""

    step: int
    """The distance from a value's place to that of the next value."""

    @property
    def places(self) -> slice:
        """The places that are read."""
        if self.step == 0:
            return slice(self.start, self.start + 1)
        stop = self.start + self.step * (self.values.stop - self.values.start)
        return slice(self.start, stop if stop >= 0 else None, self.step)

    def add_one_by_one(self, references: Any, terms: Any, keys: Any, result: Any) -> None:
        """Compare the key of every value with all references up to its place."""
        for number in range(self.values.start, self.values.stop):
            count = self.start + self.step * (number - self.values.start) + 1
            equal = references[:count] == keys[number]
            np.add.reduce(np.where(equal, terms[:count], 0), axis=0, out=result[number])


def _in_runs(ordered: np.ufunc, references: Any, pairs: list[tuple[Any, Any]]) -> bool:
    """Return whether the terms that equal a key follow one another, of which the last is at its place.

    They do if references grow, from the key on, towards the first place; or if they fall. A reference that
    is not a number equals nothing, and only others such come after it.
    """
    earlier, later = references[1:], references[:-1]
    return bool((ordered(later, earlier) | (later != later)).all()) and all(
        bool((ordered(found, wanted) | (found != found) | (wanted != wanted)).all())
        for wanted, found in pairs
    )
