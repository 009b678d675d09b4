"""The steps of a gather or scatter: codes from keys, rows by their codes, and what results share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite, prod

import numpy as np

from ...kernels.kernel import Array
from ..nodes.affine import ZERO, AffineIndex, Ranges, added, variable
from ..nodes.blocks import BLOCK_ELEMENTS, blocks, fitting, length
from ..nodes.functions import identity
from ..nodes.ir import Constant, Names, Node
from ..reductions.onehot import Key, OneHot
from ..steps.matrices import joined
from ..steps.steps import DType, Operand, convert, copy, fixed
from ..steps.views import narrow
from . import rows
from .open_program import OpenProgram
from .rows import Digit
from .shared_factors import apply_shared

CODE = np.dtype(np.int64)
LOCATED = 1 << 16
"""The number of codes computed together: a few arrays of them fit in cache."""

ROOM = 1 << 12
"""The least number of rows added up together."""


def write_onehot(program: OpenProgram, plan: OneHot, target: Array) -> None:
    """Write steps that compute a gather or scatter over the whole box; `target` has an axis per variable."""
    writing = _Writing(program, plan)
    if plan.gathers:
        writing.gather(target)
    else:
        writing.scatter(target)
    if plan.holds:
        apply_shared(program, plan.node, target, (), plan.holds)


class _Writing:
    def __init__(self, program: OpenProgram, plan: OneHot) -> None:
        self.program, self.plan = program, plan
        self.nothing = identity(plan.node.reducer)

    def gather(self, target: Array) -> None:
        """Copy a row of the source for every position."""
        plan, program = self.plan, self.program
        positions = self.ordered(plan.positions, target.strides)
        columns = self.ordered(plan.source.free - plan.named - plan.positions, target.strides)
        digits = self.ordered((plan.named | plan.positions) & plan.source.free, self.strides(plan.source))
        table = self.matrix(plan.source, digits, columns)
        codes, places = self.codes(positions, digits)
        result, picked = self.result(target, positions, columns)
        program.steps.add(rows.pick, (fixed(codes), fixed(table)), fixed(picked), inplace=False)
        if result is not target:
            program.steps.add(copy, (fixed(result),), fixed(target), inplace=False)
        apply_shared(program, plan.node, target, plan.after, ())
        clear = partial(rows.clear, len(table), self.nothing)
        program.steps.add(clear, (fixed(places), fixed(target)), fixed(target), inplace=False)

    def scatter(self, target: Array) -> None:
        """Reduce the rows of all positions by their codes."""
        plan, program = self.plan, self.program
        positions = self.ordered(plan.positions, self.strides(plan.source))
        columns = self.ordered(plan.source.free - plan.positions, target.strides)
        digits = self.ordered(plan.named | (plan.positions & plan.node.free), target.strides)
        codes, _ = self.codes(positions, digits)
        result, reduced = self.result(target, digits, columns)
        self.reduce(codes, positions, columns, reduced)
        if result is not target:
            program.steps.add(copy, (fixed(result),), fixed(target), inplace=False)
        if plan.after:
            seen, places = self.laid(digits, CODE)
            program.steps.add(rows.hits, (fixed(codes),), fixed(seen), inplace=False)
            apply_shared(program, plan.node, target, plan.after, ())
            clear = partial(rows.clear, len(reduced), self.nothing)
            program.steps.add(clear, (fixed(places), fixed(target)), fixed(target), inplace=False)

    def reduce(self, codes: Array, positions: list[str], columns: list[str], reduced: Array) -> None:
        plan, steps = self.plan, self.program.steps
        if isinstance(plan.source, Constant) and self.nothing == 0 and isfinite(plan.source.value):
            count = partial(rows.count, plan.source.value)
            steps.add(count, (fixed(codes),), fixed(reduced), inplace=False)
            return
        values = self.matrix(plan.source, positions, columns)
        room = (min(len(values), max(len(reduced), ROOM)), values.shape[1])
        several = [fixed(steps.whole(room, self.program.number)) for _ in range(2)]
        run = partial(rows.add_up, plan.node.reducer)
        steps.add(run, (fixed(codes), fixed(values), *several), fixed(reduced), inplace=False)

    def codes(self, positions: list[str], digits: list[str]) -> tuple[Array, Array]:
        """Return the code of every position, in a row and with one axis per variable."""
        program, plan = self.program, self.plan
        keys = {key.variable: key for key in plan.keys}
        for name in digits:
            # a digit that no key names is a variable of the position
            keys.setdefault(name, Key(name, None, added(ZERO, variable(name), -1), 1, Constant(True)))
        counted = [*digits, *(name for name in keys if name not in digits)]
        spec = tuple(
            Digit(program.box[name][0], length(program.box[name]), keys[name].sign, name in digits)
            for name in counted
        )
        nowhere = prod(length(program.box[name]) for name in digits)
        codes, places = self.laid(positions, CODE)
        lengths = fitting(positions, program.box, LOCATED)
        for block in blocks(positions, program.box, lengths):
            ranges = {**program.box, **block}
            operands = [operand for name in counted for operand in self.operands(keys[name], ranges)]
            out = narrow(places, program.axes, block, program.box)
            program.steps.add(partial(rows.locate, spec, nowhere), operands, fixed(out), inplace=False)
        return codes, places

    def operands(self, key: Key, ranges: Ranges) -> tuple[Operand, Operand]:
        value = 0 if key.value is None else self.program.value(key.value, ranges)
        offset: AffineIndex = key.offset
        if not offset.coefficients:
            return value, offset.constant
        return value, self.program.index(offset, ranges)

    def matrix(self, node: Node, outer: list[str], inner: list[str]) -> Array:
        """Return a node's values `[outer, inner]`, evenly spaced: a view if it lies so in memory, else a
        copy.
        """
        program = self.program
        view = program.whole_view(node)
        if view is not None and (found := self.dense(view, outer, inner, program.number)) is not None:
            return found
        memory, places = self.laid([*outer, *inner], program.number)
        names = [*outer, *inner]
        for block in blocks(names, program.box, fitting(names, program.box, BLOCK_ELEMENTS)):
            value = program.value(node, {**program.box, **block})
            out = fixed(narrow(places, program.axes, block, program.box))
            program.steps.add(convert, (value,), out, inplace=False)
        return memory.reshape(self.size(outer), self.size(inner))

    def result(self, target: Array, outer: list[str], inner: list[str]) -> tuple[Array, Array]:
        """Return where rows go, with one axis per variable and as `[outer, inner]`: the target if
        it is dense.
        """
        program = self.program
        if self.plan.node.free == {*outer, *inner}:
            found = self.dense(target, outer, inner, program.number)
            if found is not None:
                return target, found
        memory, places = self.laid([*outer, *inner], program.number)
        return places, memory.reshape(self.size(outer), self.size(inner))

    def dense(self, view: Array, outer: list[str], inner: list[str], dtype: DType) -> Array | None:
        """Return a view `[outer, inner]` of contiguous memory; None if it is not that."""
        axes = [self.program.axes[name] for name in (*outer, *inner)]
        shape = (self.size(outer), self.size(inner))
        if view.dtype != dtype or prod(view.shape) != prod(shape):
            return None
        if joined(view.shape, view.strides, axes) not in ((prod(shape), dtype.itemsize), (1, 0)):
            return None
        strides = (shape[1] * dtype.itemsize, dtype.itemsize)
        return np.lib.stride_tricks.as_strided(view, shape, strides)

    def laid(self, names: Sequence[str], dtype: DType) -> tuple[Array, Array]:
        """Return scratch for values of the variables: all in a row, and with one axis per variable."""
        program = self.program
        shape, strides = [1] * len(program.axes), [0] * len(program.axes)
        step = dtype.itemsize
        for name in reversed(names):
            axis = program.axes[name]
            shape[axis], strides[axis] = length(program.box[name]), step
            step *= shape[axis]
        memory = program.steps.whole((self.size(names),), dtype)
        return memory, np.ndarray(shape, dtype, memory, 0, strides)

    def size(self, names: Sequence[str]) -> int:
        return prod(length(self.program.box[name]) for name in names)

    def ordered(self, names: Names, strides: Sequence[int]) -> list[str]:
        """Return variables from the slowest in memory to the fastest."""
        axes = self.program.axes
        order = [self.program.lowered.variables[axis] for axis in self.program.order]
        return sorted((name for name in order if name in names), key=lambda name: -abs(strides[axes[name]]))

    def strides(self, node: Node) -> Sequence[int]:
        """Return how a node's values lie in memory, or would."""
        view = self.program.whole_view(node)
        if view is not None:
            return view.strides
        return self.program.fresh(sorted(node.free), self.program.box, self.program.number).strides
