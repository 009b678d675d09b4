"""The steps of a scan: partial results, in scratch or in the target, and what the target reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from ....analyzer.indices.region import Interval
from ....tdl.reducers import UFUNCS
from ...kernels.kernel import Array, view_of
from ..nodes.affine import Ranges
from ..nodes.blocks import BLOCK_ELEMENTS, blocks, fitting, length
from ..nodes.functions import identity
from ..reductions.scan import Scan
from ..steps.steps import Operand, Value, convert, fixed, register
from ..steps.views import narrow
from .open_program import OpenProgram
from .recurrence import accumulate, fall_off, recur, weigh
from .shared_factors import apply_shared

SCANNED_BLOCKS = 4
"""Blocks that are scanned together, since a scan has many calls."""


@dataclass(frozen=True, slots=True)
class _Reach:
    """Which values of `along` read which partial results, in the order of the scan.

    Intervals count from the box's first value of `along`.
    """

    terms: int
    """The number of partial results."""

    start: int
    """The partial result that the first value in `inside` reads."""

    step: int
    """The distance from a value's partial result to that of the next value."""

    none: Interval
    """The values that come before all terms, and read nothing."""

    inside: Interval
    """The values that read a partial result each."""

    past: Interval
    """The values that come after the last term, and read the last partial result."""

    first: int
    """How far the first value in `past` lies after the last term. The distance grows by `step` with each
    value."""

    @property
    def everything(self) -> bool:
        """Whether every partial result is read once, in order or in the opposite order."""
        return abs(self.step) == 1 and length(self.inside) == self.terms


def write_scan(program: OpenProgram, plan: Scan, target: Array) -> None:
    """Write steps that compute a scan over the whole box into `target`, one axis per variable."""
    reach, order = _reach(program, plan), plan.order
    others = [program.lowered.variables[axis] for axis in program.order]
    others = [name for name in others if name in plan.node.free and name != order.along]
    lengths = fitting(others, program.box, SCANNED_BLOCKS * BLOCK_ELEMENTS // max(reach.terms, 1))
    writing = _Writing(program, plan, reach, reach.terms * prod(lengths.values()))
    for block in blocks(others, program.box, lengths):
        writing.block(narrow(target, program.axes, block, program.box), {**program.box, **block})


def _reach(program: OpenProgram, plan: Scan) -> _Reach:
    order = plan.order
    first, stop = program.box[order.variable]
    begin, end = program.box[order.along]
    step = dict(order.bound.coefficients)[order.along]
    start = order.bound.constant + step * begin - first
    if order.suffix:
        start, step = (stop - first - 1) - start, -step
    places = start + step * np.arange(end - begin)

    def interval(held: Array) -> Interval:
        (found,) = np.nonzero(held)
        return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)

    terms = stop - first
    inside = interval((places >= 0) & (places < terms))
    past = interval((places >= terms) & (terms > 0))
    none = interval((places < 0) | (terms == 0))
    return _Reach(
        terms, start + step * inside[0], step, none, inside, past, start + step * past[0] - terms + 1
    )


class _Writing:
    """Steps for blocks of the variables that the scan does not run along."""

    def __init__(self, program: OpenProgram, plan: Scan, reach: _Reach, elements: int) -> None:
        """`elements`: the terms of the largest block."""
        self.program, self.plan, self.reach = program, plan, reach
        self.axis = program.axes[plan.order.along]
        self.weighted = plan.decay is not None and plan.decay.slope != 0
        self.results = None if reach.everything else self._memory(elements)
        self.sums = self._memory(elements) if self.weighted else None

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
        if isinstance(source, Value):
            source = self._moved(source)
        self._move(source, self._part(sums, None, turned=plan.order.suffix))
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

    def _moved(self, value: Value) -> Value:
        """Return a value along the terms as one along the axis of what they are reduced to."""
        axes = self.program.axes
        terms, shape, strides = axes[self.plan.order.variable], list(value.shape), list(value.strides)
        for lengths in (shape, strides):
            lengths[terms], lengths[self.axis] = lengths[self.axis], lengths[terms]
        return value.viewed(tuple(shape), tuple(strides))

    def _part(self, array: Array, part: Interval | None, turned: bool = False) -> Array:
        found = array if part is None else self._sliced(array, slice(*part))
        return self._sliced(found, slice(None, None, -1)) if turned else found

    def _sliced(self, array: Array, part: slice) -> Array:
        return view_of(array, (part if axis == self.axis else slice(None) for axis in range(array.ndim)))

    def _shaped(self, memory: Array, like: Array) -> Array:
        """Return room for the terms of a block, in the order of the block's other axes."""
        shape = [self.reach.terms if axis == self.axis else size for axis, size in enumerate(like.shape)]
        strides = register(tuple(shape), memory.dtype, self.program.order).strides
        return np.ndarray(shape, memory.dtype, memory, 0, strides)
