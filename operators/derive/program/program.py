"""Turn nodes into steps: the blocked evaluation of every derived kernel.

Values are arrays with one axis per index variable of the description, of length 1 if they do not
depend on it, so everything broadcasts. A node's value for given ranges of its variables is computed once.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from math import prod
from typing import assert_never

import numpy as np

from ....analyzer.indices.region import Interval
from ....support.integers import Integers
from ....tdl.reducers import UFUNCS
from ...kernels.kernel import Array, KernelCall
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.blocks import block_lengths, blocks, length, volume
from ..nodes.functions import ROUNDING, LoopTypes, identity, is_costly, loop
from ..nodes.index_values import BOOL, frozen, index_values, iota
from ..nodes.integer_range import fits
from ..nodes.ir import Apply, Constant, Iota, Load, Lowered, Node, Reduction, walk
from ..reductions.ahead import Plan, planned
from ..reductions.matching import Match
from ..reductions.onehot import OneHot
from ..reductions.scan import Scan
from ..steps.fold import Fold
from ..steps.select import select, spread_bits
from ..steps.steps import DType, Operand, Steps, Value, convert, fixed, register
from ..steps.views import axes_view, narrow
from .access import OpenAccess, gather, open_access
from .contraction import contract, contracts
from .match_steps import write_match
from .onehot_steps import write_onehot
from .picking import picked
from .scan_steps import write_scan

Key = tuple[Node, *tuple[Interval, ...]]
"""A node and the range of each of its variables."""

INTEGER = np.dtype(np.int64)
KEPT_ELEMENTS = 4096
"""Values of at most this many elements are kept from block to block instead of computed again."""

FOLDED_ELEMENTS = 1 << 16
"""Values of index variables alone are computed at preparation up to this size, or that of the tensors."""

RESULT_ELEMENTS = 1 << 24
"""Matrix products with more elements that are not the output itself are not stored. Their sums are evaluated
block by block instead.
"""

COSTLY = 4
"""They may be this many times larger if costly functions, such as cosines, are among them."""


class KernelProgram:
    """The steps of one kernel call, being written."""

    def __init__(self, lowered: Lowered, call: KernelCall) -> None:
        self.lowered = lowered
        self.call = call
        self.box: Ranges = {name: call.box[name] for name in lowered.variables}
        self.axes = {name: axis for axis, name in enumerate(lowered.variables)}
        self.steps = Steps()
        self.number = _floating_type(call)
        tensors = sum(array.size for array in (*call.inputs.values(), *call.outputs))
        self.folded = max(FOLDED_ELEMENTS, tensors)
        self.floating = any(array.dtype.kind == "f" for array in call.inputs.values())
        self.accesses: dict[Load, OpenAccess] = {}
        self.given: dict[Node, Array] = {}
        self.memo: dict[Key, Operand] = {}
        self.kept: dict[Key, Operand] = {}
        self.masks: dict[tuple[Value, DType], Value] = {}
        self.views = [
            axes_view(array, output.variables, self.axes)
            for output, array in zip(lowered.outputs, call.outputs, strict=True)
        ]
        self.aliased = [
            any(np.may_share_memory(output, array) for array in call.inputs.values())
            for output in call.outputs
        ]
        self.order = self._memory_order()
        self.lengths = self._block_lengths()

    def reduce_ahead(self) -> None:
        """Compute matrix products and scans first. The rest reads their results.

        The result of the only sum of a single output is written into the output itself.
        """
        extents = {name: length(interval) for name, interval in self.box.items()}
        for number, output in enumerate(self.lowered.outputs):
            nodes = [node for node in walk(output.value) if isinstance(node, Reduction)]
            plans = {node: planned(node, extents) for node in nodes}
            inside = {plan.inside for plan in plans.values() if isinstance(plan, Scan)}
            for node in reversed(nodes):
                if node in self.given or node in inside or not self.floating:
                    continue
                if (plan := plans[node]) is not None:
                    self.given[node] = self._target(number, node)
                    self._write(plan, self.given[node])
                elif contracts(node, self.box) and self._is_stored(number, node):
                    self.given[node] = self._target(number, node)
                    contract(self, node, self.given[node])
        self.memo.clear()
        self.lengths = self._block_lengths()

    def _write(self, plan: Plan, target: Array) -> None:
        match plan:
            case Scan():
                write_scan(self, plan, target)
            case OneHot():
                write_onehot(self, plan, target)
            case Match():
                write_match(self, plan, target)
            case _:
                assert_never(plan)

    def _block_lengths(self) -> dict[str, int]:
        order = [self.lowered.variables[axis] for axis in self.order]
        return block_lengths(self.lowered, order, self.box, self.given)

    def _is_stored(self, number: int, node: Reduction) -> bool:
        """Tell whether the result of a matrix product has memory: the output, or scratch if it is small."""
        return self._fits_output(number, node) or volume(node.free, self.box) <= RESULT_ELEMENTS

    def _fits_output(self, number: int, node: Reduction) -> bool:
        whole = frozenset(self.lowered.outputs[number].variables) == node.free
        fits = self.views[number].dtype == self.number and not self.aliased[number]
        return whole and fits and len(self.views) == 1

    def _target(self, number: int, node: Reduction) -> Array:
        if self._fits_output(number, node):
            self.aliased[number] = True
            return self.views[number]
        value = self.fresh(sorted(node.free), self.box, self.number)
        memory = self.steps.whole((prod(value.shape),), value.dtype)
        return np.ndarray(value.shape, value.dtype, memory, 0, value.strides)

    def whole_view(self, node: Node) -> Array | None:
        """Return the array that a factor is read from over the whole box; None if it is computed."""
        if (array := self.given.get(node)) is not None:
            return array
        return self.access(node).view if isinstance(node, Load) else None

    def value(self, node: Node, ranges: Ranges) -> Operand:
        """Return the node's value for the given ranges of its free variables, computing it if it is new."""
        if isinstance(node, Constant):
            return node.value
        key = self._key(node, ranges)
        if (known := self.memo.get(key)) is not None or (known := self.kept.get(key)) is not None:
            return known
        result = self._compute(node, ranges)
        keep = isinstance(node, Reduction) or volume(node.free, ranges) <= KEPT_ELEMENTS
        (self.kept if keep else self.memo)[key] = result
        return result

    def forget(self, ranges: Ranges, keep: Container[Node]) -> None:
        """Forget the values of a block, but those of nodes to keep that the next one needs again."""
        self.memo = {
            key: value
            for key, value in self.memo.items()
            if key[0] in keep and key == self._key(key[0], ranges)
        }
        self.masks.clear()

    def _key(self, node: Node, ranges: Ranges) -> Key:
        return (node, *[ranges[name] for name in self.lowered.variables if name in node.free])

    def array(self, node: Node, ranges: Ranges) -> Value:
        """Return the node's value as an array of a number type, constants included."""
        operand = self.value(node, ranges)
        if isinstance(operand, Value):
            return self.cast(operand, self.number) if operand.dtype == BOOL else operand
        return fixed(frozen(np.full((1,) * len(self.axes), operand, self.number)))

    def fresh(self, names: Sequence[str], ranges: Ranges, dtype: DType) -> Value:
        """Return a register for a value that depends on `names`."""
        shape = [1] * len(self.axes)
        for name in names:
            shape[self.axes[name]] = length(ranges[name])
        return register(tuple(shape), dtype, self.order)

    def cast(self, value: Value, dtype: DType) -> Value:
        if value.dtype == dtype:
            return value
        if isinstance(value.home, np.ndarray) and not value.home.flags.writeable:
            return fixed(frozen(value.home.astype(dtype)))
        return self.steps.add(convert, (value,), register(value.shape, dtype, self.order), inplace=False)

    def _compute(self, node: Node, ranges: Ranges) -> Operand:
        if (array := self.given.get(node)) is not None:
            return fixed(narrow(array, self.axes, ranges, self.box))
        if not node.loads and self._foldable(node):
            return fixed(frozen(index_values(node, self.axes, ranges)))
        match node:
            case Constant(value=value):
                return value
            case Iota():
                return fixed(frozen(index_values(node, self.axes, ranges)))
            case Load():
                return self._load(node, ranges)
            case Apply():
                return self._apply(node, ranges)
            case Reduction():
                return self._reduce(node, ranges)
            case _:
                assert_never(node)

    def _foldable(self, node: Node) -> bool:
        inner = walk(node)
        if any(isinstance(part, Reduction) for part in inner):
            return False
        costly = any(isinstance(part, Apply) and is_costly(part.function) for part in inner)
        return volume(node.free, self.box) <= self.folded * (COSTLY if costly else 1)

    def access(self, node: Load) -> OpenAccess:
        if (access := self.accesses.get(node)) is None:
            access = self.accesses[node] = open_access(node, self.call, self.axes, self.box, self.steps)
        return access

    def _load(self, node: Load, ranges: Ranges) -> Value:
        access = self.access(node)
        if access.view is not None:
            return fixed(narrow(access.view, self.axes, ranges, self.box))
        if (found := picked(node, access, self.axes, ranges, self.order)) is not None:
            step, numbers, table, out = found
            read = [fixed(table), self.value(numbers, ranges)]
            if node.padding is not None:
                read.append(self.value(node.padding, ranges))
            return self.steps.add(step, read, out, inplace=False)
        indices = [
            self.index(index, ranges) if isinstance(index, AffineIndex) else self.value(index, ranges)
            for index in node.indices
        ]
        padding = None if node.padding is None else self.value(node.padding, ranges)
        out = self.fresh(sorted(node.free), ranges, self.call.inputs[node.tensor].dtype)
        run = partial(gather, access.tensor, access.region, len(indices))
        arguments = [fixed(access.array), *indices, *([] if padding is None else [padding])]
        return self.steps.add(run, arguments, out, inplace=False)

    def index(self, index: AffineIndex, ranges: Ranges) -> Operand:
        """Return the values of an affine form, known at preparation."""
        values: Integers = np.full((1,) * len(self.axes), index.constant, np.int64)
        for name, coefficient in index.coefficients:
            values = values + coefficient * iota(name, self.axes, ranges)
        return fixed(frozen(values))

    def _apply(self, node: Apply, ranges: Ranges) -> Operand:
        operands = [self.value(argument, ranges) for argument in node.arguments]
        names = sorted(node.free)
        if node.function == "where":
            return self._choose(operands, names, ranges)
        entry = loop(node.function)
        match entry.kind:
            case LoopTypes.FLOAT:
                dtype = result = self.number
            case LoopTypes.NUMBER:
                dtype = result = self._type(node, operands)
            case LoopTypes.COMPARISON:
                dtype, result = self.common(operands), BOOL
            case LoopTypes.LOGICAL:
                out = self.fresh(names, ranges, BOOL)
                return self.steps.add(entry.run, operands, out, inplace=entry.ufunc)
            case _:
                assert_never(entry.kind)
        if node.function in ROUNDING and dtype == INTEGER:
            return operands[0]
        if node.function == "**":
            return self._power(node, operands, dtype, ranges)
        numbers = [self._number(operand, dtype) for operand in operands]
        return self.steps.add(entry.run, numbers, self.fresh(names, ranges, result), inplace=entry.ufunc)

    def _choose(self, operands: list[Operand], names: Sequence[str], ranges: Ranges) -> Operand:
        """Return the second operand where the first holds, else the third, without a branch per element."""
        condition, x, y = operands
        if not isinstance(condition, Value):
            return x if condition else y
        dtype = self.common((x, y))
        mask = self._mask(self.cast(condition, BOOL), np.dtype(f"i{dtype.itemsize}"))
        chosen = [
            self.cast(each, dtype) if isinstance(each, Value) else self._number(each, dtype)
            for each in (x, y)
        ]
        out = self.fresh(names, ranges, dtype)
        return self.steps.add(select, (mask, *chosen), out, inplace=False)

    def _mask(self, condition: Value, dtype: DType) -> Value:
        if (known := self.masks.get((condition, dtype))) is None:
            if isinstance(condition.home, np.ndarray) and not condition.home.flags.writeable:
                bits: Array = np.empty(condition.shape, dtype)
                spread_bits(condition.home, out=bits)
                known = fixed(frozen(bits))
            else:
                out = register(condition.shape, dtype, self.order)
                known = self.steps.add(spread_bits, (condition,), out, inplace=False)
            self.masks[condition, dtype] = known
        return known

    def _power(self, node: Apply, operands: list[Operand], dtype: DType, ranges: Ranges) -> Value:
        base, exponent = operands
        names = sorted(node.free)
        if exponent == 2 and not isinstance(exponent, Value):
            out = self.fresh(names, ranges, dtype)
            return self.steps.add(np.square, (self._number(base, dtype),), out, inplace=True)
        if not (isinstance(exponent, int) and exponent >= 0):
            dtype = self.number
        numbers = (self._number(base, dtype), self._number(exponent, dtype))
        return self.steps.add(np.power, numbers, self.fresh(names, ranges, dtype), inplace=True)

    def common(self, operands: Sequence[Operand]) -> DType:
        """Return the type to compute in: integer if all operands are, else the kernel's floating type."""
        whole = all(
            operand.dtype.kind in "iub" if isinstance(operand, Value) else isinstance(operand, int)
            for operand in operands
        )
        return INTEGER if whole else self.number

    def _type(self, node: Apply | Reduction, operands: Sequence[Operand]) -> DType:
        """Return the type to compute a node in: `common`, but floating if its integers might not fit."""
        dtype = self.common(operands)
        return self.number if dtype == INTEGER and not fits(node, self.box) else dtype

    def _number(self, operand: Operand, dtype: DType) -> Operand:
        if isinstance(operand, Value):
            return operand if operand.dtype.kind == dtype.kind else self.cast(operand, dtype)
        return int(operand) if dtype == INTEGER else float(operand)

    def _reduce(self, node: Reduction, ranges: Ranges) -> Value:
        inner = {name: self.box[name] for name in node.variables}
        total: Value | None = None
        for block in blocks(node.variables, inner, self.lengths):
            body = self.value(node.body, {**ranges, **block})
            dtype = self._type(node, (body,))
            body = self._number(body, dtype)
            if total is not None and all(length(block[name]) == 1 for name in node.variables):
                part = body
            else:
                part = self._reduced(node, body, block, ranges, dtype)
            if total is None:
                assert isinstance(part, Value)
                total = part
            else:
                self.steps.add(UFUNCS[node.reducer], (total, part), total, inplace=True)
        if total is None:
            total = self.fresh(sorted(node.free), ranges, self.number)
            self.steps.add(convert, (identity(node.reducer),), total, inplace=False)
        return total

    def _reduced(self, node: Reduction, body: Operand, block: Ranges, ranges: Ranges, dtype: DType) -> Value:
        """Return one block reduced; variables the body does not mention repeat it."""
        shape = [1] * len(self.axes)
        for name in (*node.free, *node.variables):
            shape[self.axes[name]] = length({**ranges, **block}[name])
        axes = tuple(self.axes[name] for name in node.variables)
        repeats = not isinstance(body, Value) or body.shape != tuple(shape)
        reduce = Fold(UFUNCS[node.reducer], axes, dtype, tuple(shape) if repeats else None)
        return self.steps.add(reduce, (body,), self.fresh(sorted(node.free), ranges, dtype), inplace=False)

    def _memory_order(self) -> tuple[int, ...]:
        """Return axes of temporaries, slowest first: as the largest tensor of the kernel lies in memory."""
        count = len(self.lowered.variables)
        candidates = [
            (volume(frozenset(output.variables), self.box), view)
            for output, view in zip(self.lowered.outputs, self.views, strict=True)
        ]
        for output in self.lowered.outputs:
            for node in walk(output.value):
                if isinstance(node, Load) and node.affine and (view := self.access(node).view) is not None:
                    candidates.append((volume(node.free, self.box), view))
        _, dominant = max(candidates, key=lambda candidate: candidate[0])
        strides = [abs(dominant.strides[axis]) if dominant.shape[axis] > 1 else 0 for axis in range(count)]
        present = [axis for axis in range(count) if strides[axis]]
        absent = [axis for axis in range(count) if not strides[axis]]
        return (*absent, *sorted(present, key=lambda axis: -strides[axis]))


def _floating_type(call: KernelCall) -> DType:
    types = [array.dtype for array in call.inputs.values() if array.dtype.kind == "f"]
    types = types or [array.dtype for array in call.outputs if array.dtype.kind == "f"]
    return np.result_type(*types) if types else np.dtype(np.float64)
