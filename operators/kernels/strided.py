"""Functions of strided arrays, computed on contiguous copies where NumPy gets them wrong.

NumPy has separate loops for many strides, and not all of them are right: from 2.1 to 2.4 `np.negative`
gives the negatives of other elements if these are numbers of 8 bytes, 64 bytes apart, and the processor
has AVX-512. So every loop is tried before it is used. While a kernel is prepared, each of its functions is
tried on a few elements with the kernel's strides. The result is cached by function, types and strides. A
function that fails computes on contiguous copies in the kernel's scratch memory. One that works costs nothing
more when the kernel runs.

Loops on contiguous arrays are the reference. The tests check all functions of the language on these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Protocol

import numpy as np

from ...analyzer.indices.region import Shape
from .kernel import Run
from .loops import DType, Function, Number, Strides, is_right
from .workspace import Array, Workspace, aligned


class Strided(Protocol):
    """An array, or the place of one."""

    @property
    def shape(self) -> Shape: ...

    @property
    def strides(self) -> Strides: ...

    @property
    def dtype(self) -> DType: ...


Operand = Strided | Number
Layout = tuple[Shape, Strides, DType] | tuple[type, Number]
"""How an array lies, or a number and its type."""


def trusted(function: Function, arguments: Sequence[Operand], out: Strided) -> bool:
    """Return whether `function(*arguments, out=out)` is right, element by element, on arrays that lie like
    these.

    A reduction by a ufunc of two arguments is asked for with `out` as its first argument, too, and a length
    of 1 wherever `out` has one element for all of an axis.
    """
    return _trusted(function, tuple([_layout(operand) for operand in (*arguments, out)]))


@lru_cache(maxsize=1 << 14)
def _trusted(function: Function, layouts: tuple[Layout, ...]) -> bool:
    kinds = tuple([layout[-1] if len(layout) == 3 else layout for layout in layouts])
    return all(is_right(function, kinds, strides) for strides in _inner_strides(layouts))


def bound(function: Function, arguments: Sequence[Array | Number], out: Array, workspace: Workspace) -> Run:
    """Return the run that computes a function of these arrays, on copies in the workspace if needed."""
    if trusted(function, arguments, out):
        return partial(function, *arguments, out=out)
    memory = workspace.array((copied_bytes(arguments, out),), np.uint8)
    return partial(on_copies, function, memory, *arguments, out=out)


def copied_bytes(arguments: Sequence[Operand], out: Strided) -> int:
    """Return the bytes of memory that `on_copies` takes."""
    size = prod(_shape((*arguments, out)))
    copies = [size * each.dtype.itemsize for each in arguments if not isinstance(each, Number)]
    return sum(map(aligned, (*copies, prod(out.shape) * out.dtype.itemsize)))


def on_copies(function: Function, memory: Array, *arguments: Array | Number, out: Array) -> None:
    """Compute a function of contiguous copies in `memory`, and copy the result to `out`."""
    shape = _shape((*arguments, out))
    copies: list[Array | Number] = []
    start = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            copy: Array = np.ndarray(shape, argument.dtype, memory, start)
            np.copyto(copy, argument)
            start += aligned(copy.nbytes)
            argument = copy
        copies.append(argument)
    result: Array = np.ndarray(out.shape, out.dtype, memory, start)
    function(*copies, out=result)
    np.copyto(out, result)


def _shape(operands: Sequence[Operand]) -> Shape:
    return np.broadcast_shapes(*[each.shape for each in operands if not isinstance(each, Number)])


def _layout(operand: Operand) -> Layout:
    if isinstance(operand, Number):
        return type(operand), operand
    return operand.shape, operand.strides, operand.dtype


def _inner_strides(layouts: Sequence[Layout]) -> Iterator[Strides]:
    """Yield the strides of all operands along every axis that NumPy may choose for its inner loop.

    Loops over contiguous elements are left out.
    """
    shape = np.broadcast_shapes(*[layout[0] for layout in layouts if len(layout) == 3])
    if 0 in shape:
        return
    axes = [
        tuple([_stride(layout, axis) for layout in layouts])
        for axis, length in enumerate(shape, -len(shape))
        if length > 1
    ]
    sizes = [layout[2].itemsize if len(layout) == 3 else 0 for layout in layouts]
    innermost = [axis for axis in axes if all(axis is other or _inside(axis, other) for other in axes)]
    for strides in innermost or axes:
        if any(stride not in (0, size) for stride, size in zip(strides, sizes, strict=True)):
            yield strides
            if all(stride <= 0 for stride in strides):
                # NumPy reverses such an axis, except in arrays with one dimension
                yield tuple([-stride for stride in strides])


def _inside(fast: Strides, slow: Strides) -> bool:
    """Return whether NumPy runs along one axis inside of another, in whatever order the axes stand."""
    pairs = [(abs(f), abs(s)) for f, s in zip(fast, slow, strict=True) if f and s]
    return bool(pairs) and all(f < s for f, s in pairs)


def _stride(layout: Layout, axis: int) -> int:
    if len(layout) == 2 or -axis > len(layout[0]) or layout[0][axis] == 1:
        return 0
    return layout[1][axis]
