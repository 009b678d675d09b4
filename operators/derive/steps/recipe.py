"""Kernels without memory: written once for a layout, then bound to the arrays of any number of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from ....analyzer.indices.region import Shape
from ...kernels.kernel import NUMPY_PRODUCT, Array, Run, in_turn, view_of
from ...kernels.onednn.product import LibraryProduct, product
from ...kernels.strided import copied_bytes, on_copies, trusted
from ...kernels.workspace import aligned
from ..nodes.functions_beyond_numpy import erf, sign
from ..nodes.ir import Scalar
from .fold import Fold
from .layout import address_of, bounds
from .select import select, spread_bits
from .steps import ArrayStep, DType, Operand, Register, Steps, Value, assign_memory

Function = Callable[..., object] | LibraryProduct
"""A step: a function of arrays, or a library's product, which is bound to them."""

SCRATCH = -1

OUTPUT_BY_NAME = (np.maximum, np.minimum)
"""Functions whose output is passed by name: a future NumPy may read a third position as an input."""


@dataclass(frozen=True, slots=True)
class ArrayLocation:
    """An array in the memory of a call's array, or in scratch."""

    source: int
    """The number of the array in the call's layout; `SCRATCH` for scratch."""

    offset: int
    """The place of the first element, in bytes from the first element of that array, or from the start of the
    scratch."""

    shape: Shape
    """The number of elements along each axis."""

    strides: tuple[int, ...]
    """The distance of neighbours along each axis, in bytes."""

    dtype: DType
    """The element type."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Steps over numbered operands."""

    steps: tuple[tuple[Function, tuple[int, ...], int], ...]
    """For each step, its function, the numbers of its arguments and the number of its output."""

    operands: tuple[ArrayLocation | Array | Scalar, ...]
    """The arrays and numbers that steps take and write."""

    scratch_bytes: int
    """The scratch that a call has to provide."""

    constants: tuple[Array, ...]
    """Arrays among the operands, which every kernel of this recipe reads and none writes."""

    @property
    def calls(self) -> list[str]:
        """Return the code of libraries that the steps call."""
        functions = {function for function, _, _ in self.steps}
        products = {each.implementation for each in functions if isinstance(each, LibraryProduct)}
        return sorted(products | ({NUMPY_PRODUCT} if np.matmul in functions else set()))

    def bind(self, arrays: Sequence[Array], scratch: Array) -> Run:
        """Return the function that runs the steps on a call's arrays, in the order of the layout."""
        memories = [*(_memory(array) for array in arrays), (scratch, 0)]
        operands: list[Array | Scalar] = []
        for operand in self.operands:
            if isinstance(operand, ArrayLocation):
                memory, start = memories[operand.source]
                offset = start + operand.offset
                operands.append(np.ndarray(operand.shape, operand.dtype, memory, offset, operand.strides))
            else:
                operands.append(operand)
        return in_turn(
            [
                _call(function, [operands[number] for number in arguments], operands[out])
                for function, arguments, out in self.steps
            ]
        )


def _call(function: Function, arguments: Sequence[Array | Scalar], out: Array | Scalar) -> Callable[[], Any]:
    """Return a step bound to its operands.

    A product of a library is bound to their memory. Passing the output of a ufunc by position is faster than
    by name.
    """
    if isinstance(function, LibraryProduct):
        left, right = cast(Sequence[Array], arguments)
        return function.bind(left, right, cast(Array, out))
    if isinstance(function, np.ufunc) and function not in OUTPUT_BY_NAME:
        return partial(function, *arguments, out)
    return partial(function, *arguments, out=out)


def recipe(steps: Steps, templates: Sequence[Array]) -> Recipe:
    """Make a recipe of the steps that were written for templates."""
    return _Removal(steps, templates).recipe()


class _Removal:
    """Turns arrays into places. An array outside templates and scratch is a constant."""

    def __init__(self, steps: Steps, templates: Sequence[Array]) -> None:
        self.steps = steps.items
        self.scratch_bytes = assign_memory(steps.items)
        # (bounds of a source, its number, address from which its offsets count)
        self.sources = [
            (bounds(template), number, address_of(template)) for number, template in enumerate(templates)
        ]
        for array in steps.scratch:
            lower, upper = bounds(array)
            self.sources.append(((lower, upper), SCRATCH, lower - self.scratch_bytes))
            self.scratch_bytes += aligned(array.nbytes)
        self.copied_bytes = 0
        self.numbers: dict[Any, int] = {}
        self.operands: list[ArrayLocation | Array | Scalar] = []

    def recipe(self) -> Recipe:
        steps = tuple(self.numbered(step) for step in self.steps)
        constants = tuple(operand for operand in self.operands if isinstance(operand, np.ndarray))
        return Recipe(steps, tuple(self.operands), self.scratch_bytes + self.copied_bytes, constants)

    def numbered(self, step: ArrayStep) -> tuple[Function, tuple[int, ...], int]:
        """Return a step over numbered operands.

        If NumPy is wrong for these strides, the step works on copies at the end of the scratch.
        """
        out = self.relocated(step.out)
        run: Function = step.run
        arguments = [self.found(argument) for argument in step.arguments]
        if run is np.matmul:
            run = _product(arguments, out) or run
        elif not _trusted(step.run, arguments, out):
            nbytes = copied_bytes(arguments, out)
            memory = ArrayLocation(SCRATCH, self.scratch_bytes, (nbytes,), (1,), np.dtype(np.uint8))
            self.copied_bytes = max(self.copied_bytes, nbytes)
            run, arguments = partial(on_copies, step.run), [memory, *arguments]
        return run, tuple([self.number(argument) for argument in arguments]), self.number(out)

    def found(self, operand: Operand) -> ArrayLocation | Array | Scalar:
        return self.relocated(operand) if isinstance(operand, Value) else operand

    def number(self, found: ArrayLocation | Array | Scalar) -> int:
        # 1, 1.0 and True are equal, but not the same operand
        key = (
            found
            if isinstance(found, ArrayLocation)
            else id(found)
            if isinstance(found, np.ndarray)
            else None
        )
        if key is None or key not in self.numbers:
            self.operands.append(found)
            if key is None:
                return len(self.operands) - 1
            self.numbers[key] = len(self.operands) - 1
        return self.numbers[key]

    def relocated(self, value: Value) -> ArrayLocation | Array:
        home = value.home
        if isinstance(home, Register):
            if home.target is not None:
                return self.placed(home.target)
            assert home.memory is not None, "a register has memory once it was written"
            return ArrayLocation(SCRATCH, home.memory[0], value.shape, value.strides, value.dtype)
        return self.placed(home)

    def placed(self, array: Array) -> ArrayLocation | Array:
        if array.size == 0:
            return np.empty(array.shape, array.dtype)
        lower, upper = bounds(array)
        for (start, stop), number, origin in self.sources:
            if start <= lower and upper <= stop:
                offset = address_of(array) - origin
                return ArrayLocation(number, offset, array.shape, array.strides, array.dtype)
        return array


def _product(
    arguments: Sequence[ArrayLocation | Array | Scalar], out: ArrayLocation | Array
) -> LibraryProduct | None:
    """Return a library's product of matrices; None if NumPy is to compute it."""
    left, right = arguments
    assert isinstance(left, ArrayLocation | np.ndarray), "a factor is an array"
    assert isinstance(right, ArrayLocation | np.ndarray), "a factor is an array"
    return product(left, right, out)


def _trusted(
    run: Callable[..., object],
    arguments: Sequence[ArrayLocation | Array | Scalar],
    out: ArrayLocation | Array,
) -> bool:
    """Return whether a step that computes element by element, or reduces, is right in this layout.

    All other steps copy, multiply matrices, or make new arrays.
    """
    if isinstance(run, Fold):
        return trusted(run.ufunc, (out, *arguments), out)
    elementwise = isinstance(run, np.ufunc) and run.signature is None
    return not (elementwise or run in (select, spread_bits, sign, erf)) or trusted(run, arguments, out)


def _memory(array: Array) -> tuple[Array, int]:
    """Return contiguous memory that holds an array, and where in it the array's first element lies."""
    address = address_of(array)
    base = array.base
    if isinstance(base, np.ndarray) and base.ndim == 1 and base.flags.c_contiguous:
        return base, address - address_of(base)
    lower, upper = bounds(array)
    ascending = view_of(array, (slice(None, None, -1 if stride < 0 else 1) for stride in array.strides))
    first = np.lib.stride_tricks.as_strided(ascending, (min(array.size, 1),), (array.itemsize,))
    return np.lib.stride_tricks.as_strided(first.view(np.uint8), (upper - lower,), (1,)), address - lower
