"""The steps of a scan: partial results, in scratch or in the target, and what the target reads of them."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from ....analyzer.indices.region import Interval
from ....tdl.reducers import UFUNCS
from ...kernels.kernel import Array, view_of
from ..nodes.affine import Ranges
from ..nodes.blocks import BLOCK_ELEMENTS, blocks, fitting, length
from ..nodes.functions import identity
from ..reductions.decay import Between
from ..reductions.scan import Scan
from ..steps.steps import Operand, Value, convert, fixed, register
from ..steps.views import narrow
from .open_program import OpenProgram
from .reach import Reach, reach_of
from .recurrence import accumulate, fall_off, recur, recur_by, weigh
from .shared_factors import apply_shared

SCANNED_BLOCKS = 4
"""Blocks that are scanned together, since a scan has many calls."""


def write_scan(program: OpenProgram, plan: Scan, target: Array) -> None:
    """Write steps that compute a scan over the whole box into `target`, one axis per variable."""
    order = plan.order
    beyond = plan.decay is not None and plan.decay.between is not None
    reach = reach_of(order, program.box, beyond)
    others = [program.lowered.variables[axis] for axis in program.order]
    others = [name for name in others if name in plan.node.free and name != order.along]
    lengths = fitting(others, program.box, SCANNED_BLOCKS * BLOCK_ELEMENTS // max(reach.places, 1))
    writing = _Writing(program, plan, reach, reach.places * prod(lengths.values()))
    for block in blocks(others, program.box, lengths):
        writing.block(narrow(target, program.axes, block, program.box), {**program.box, **block})


class _Writing:
    """Steps for blocks of the variables that the scan does not run along."""

    def __init__(self, program: OpenProgram, plan: Scan, reach: Reach, elements: int) -> None:
        """`elements`: the partial results of the largest block."""
        self.program, self.plan, self.reach = program, plan, reach
        self.axis = program.axes[plan.order.along]
        self.weighted = plan.decay is not None and plan.decay.slope != 0
        self.results = None if reach.everything else self._memory(elements)
        self.sums = self._memory(elements) if self.weighted else None
        self.between = plan.decay.between if plan.decay is not None else None
        self.factors = self._memory(elements) if self.between is not None else None

    def _memory(self, elements: int) -> Array:
        return self.program.steps.whole((elements,), self.program.number)

    def block(self, target: Array, ranges: Ranges) -> None:
        """Write a block of the target."""
        reach = self.reach
        nothing, inside, past = (self._part(target, part) for part in (reach.none, reach.inside, reach.past))
        if nothing.size:
            self._move(identity(self.plan.node.reducer), nothing)
        if not inside.size and not past.size:
            return
        if self.results is None:
            results = self._part(inside, None, turned=reach.step < 0)
        else:
            results = self._shaped(self.results, target)
        self._scan(results, ranges)
        if self.results is not None and inside.size:
            stop = reach.start + reach.step * length(reach.inside)
            self._move(
                fixed(self._sliced(results, slice(reach.start, stop if stop >= 0 else None, reach.step))),
                inside,
            )
        if past.size:
            self._past(results, past, ranges)
        self._finish(inside, reach.inside, ranges)
        self._finish(past, reach.past, ranges)

    def _scan(self, results: Array, ranges: Ranges) -> None:
        """Write the partial results, in the order of the scan."""
        plan, steps = self.plan, self.program.steps
        sums = results if self.sums is None else self._shaped(self.sums, results)
        source = self.program.value(plan.source, ranges)
        terms = self._part(sums, (0, self.reach.terms))
        self._move(
            self._moved(source, plan.order.variable), self._part(terms, None, turned=plan.order.suffix)
        )
        if self.between is not None:
            self._move(0, self._part(sums, (self.reach.terms, self.reach.places)))
            factors = fixed(self._factors(self.between, results, ranges))
            run = partial(recur_by, self.axis)
            steps.add(run, (fixed(results), factors), fixed(results), inplace=False)
            return
        base = self._base(ranges)
        if self.weighted:
            assert plan.decay is not None
            run = partial(weigh, self.axis, plan.decay.slope, plan.decay.level)
            steps.add(run, (fixed(sums), *base), fixed(results), inplace=False)
        elif base:
            steps.add(partial(recur, self.axis), (fixed(results), *base), fixed(results), inplace=False)
        else:
            run = partial(accumulate, UFUNCS[plan.node.reducer], self.axis)
            steps.add(run, (fixed(results),), fixed(results), inplace=False)

    def _base(self, ranges: Ranges) -> list[Operand]:
        decay = self.plan.decay
        return [] if decay is None or decay.base is None else [self.program.array(decay.base, ranges)]

    def _factors(self, between: Between, like: Array, ranges: Ranges) -> Array:
        """Write the base of the step to every place: 1 if the product has no term there."""
        assert self.factors is not None
        assert self.plan.decay is not None
        assert self.plan.decay.base is not None
        factors, order, places = self._shaped(self.factors, like), self.plan.order, self.reach.places
        first, stop = self.program.box[order.variable]
        low = between.shift + (stop - places if order.suffix else first)
        begin, end = self.program.box[between.variable]
        kept = (max(low, begin), min(low + places, end))
        self._move(1, factors)
        if kept[0] < kept[1]:
            base = self.program.value(self.plan.decay.base, {**ranges, between.variable: kept})
            target = self._part(factors, None, turned=order.suffix)
            self._move(
                self._moved(base, between.variable), self._part(target, (kept[0] - low, kept[1] - low))
            )
        return factors

    def _past(self, results: Array, target: Array, ranges: Ranges) -> None:
        """Write the elements that lie after all terms, by more than the last one's distance."""
        last = slice(self.reach.terms - 1, self.reach.terms)
        total = fixed(self._sliced(results, last))
        base = self._base(ranges)
        if not base and not self.weighted:
            self._move(total, target)
            return
        assert self.plan.decay is not None
        sums = total if self.sums is None else fixed(self._sliced(self._shaped(self.sums, results), last))
        run = partial(fall_off, self.axis, self.plan.decay.slope, self.reach.first, self.reach.step)
        self.program.steps.add(run, (total, sums, *base), fixed(target), inplace=False)

    def _finish(self, target: Array, part: Interval, ranges: Ranges) -> None:
        """Multiply by factors that do not depend on the terms, and write the identity where
        conditions fail.
        """
        plan, program = self.plan, self.program
        if not target.size:
            return
        begin = program.box[plan.order.along][0]
        ranges = {**ranges, plan.order.along: (begin + part[0], begin + part[1])}
        scale = plan.decay.scale if plan.decay is not None else ()
        apply_shared(program, plan.node, target, (*plan.after, *scale), plan.holds, ranges)

    def _move(self, source: Operand, target: Array) -> None:
        self.program.steps.add(convert, (source,), fixed(target), inplace=False)

    def _part(self, array: Array, part: Interval | None, turned: bool = False) -> Array:
        found = array if part is None else self._sliced(array, slice(*part))
        return self._sliced(found, slice(None, None, -1)) if turned else found

    def _sliced(self, array: Array, part: slice) -> Array:
        return view_of(array, (part if axis == self.axis else slice(None) for axis in range(array.ndim)))

    def _moved(self, value: Operand, variable: str) -> Operand:
        return moved(self.program, value, variable, self.axis)

    def _shaped(self, memory: Array, like: Array) -> Array:
        return shaped(self.program, memory, like, self.axis, self.reach.places)


def moved(program: OpenProgram, value: Operand, variable: str, axis: int) -> Operand:
    """Return a value along a variable as one along another axis, that of what the terms are reduced to."""
    if not isinstance(value, Value):
        return value
    source, shape, strides = program.axes[variable], list(value.shape), list(value.strides)
    for lengths in (shape, strides):
        lengths[source], lengths[axis] = lengths[axis], lengths[source]
    return value.viewed(tuple(shape), tuple(strides))


def shaped(program: OpenProgram, memory: Array, like: Array, axis: int, places: int) -> Array:
    """Return room for one value per place along an axis, in the order of a block's other axes."""
    shape = tuple(places if number == axis else size for number, size in enumerate(like.shape))
    strides = register(shape, memory.dtype, program.order).strides
    return np.ndarray(shape, memory.dtype, memory, 0, strides)
