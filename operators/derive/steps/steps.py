"""The steps of a kernel, the values that they pass on, and the memory that they share.

A kernel is a list of steps without branches. A value lives in fixed memory (an input, an output, a
constant) or in a register; registers whose lifetimes do not overlap share memory, so a kernel's
temporaries stay few and, if its blocks are small, in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ....analyzer.indices.region import Shape
from ...kernels.kernel import Array
from ...kernels.workspace import aligned
from ..nodes.ir import Scalar

DType = np.dtype[np.generic]
Span = tuple[int, int]
"""First byte in the kernel's scratch, and number of bytes."""


@dataclass(slots=True, eq=False)
class Register:
    """Memory for one temporary."""

    nbytes: int
    """Its size."""

    writes: int = 0
    """The number of steps that write it."""

    free_from: int = 0
    """The number of the first step that may write `target`; no later one reads inputs that lie there."""

    uniform: Value | None = None
    """The value as which every step sees it; None if steps see it with different shapes or strides."""

    first: int = -1
    """The number of the first step that uses it; -1 as long as it is unknown."""

    last: int = -1
    """The number of the last step that uses it; -1 as long as it is unknown."""

    target: Array | None = None
    """The output that is written directly instead; None if there is none."""

    memory: Span | None = None
    """Its place in the kernel's scratch; None if it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A strided view of fixed memory, or of a register from its start."""

    shape: Shape
    """The number of elements along each axis."""

    strides: tuple[int, ...]
    """The distance of neighbours along each axis, in bytes."""

    dtype: DType
    """The element type."""

    home: Array | Register
    """The memory: an array, or a register."""

    def viewed(self, shape: Shape, strides: tuple[int, ...]) -> Value:
        """Return the same memory with another shape."""
        if isinstance(self.home, Register):
            return Value(shape, strides, self.dtype, self.home)
        return fixed(np.lib.stride_tricks.as_strided(self.home, shape, strides))


Operand = Value | Scalar


@dataclass(frozen=True, slots=True, eq=False)
class ArrayStep:
    """A call `run(*arguments, out=out)`."""

    run: Callable[..., object]
    """The function."""

    arguments: tuple[Operand, ...]
    """The values and numbers that it takes."""

    out: Value
    """The value that it writes."""

    inplace: bool
    """Whether `out` may be the memory of an argument."""


def fixed(array: Array) -> Value:
    return Value(array.shape, array.strides, array.dtype, array)


def register(shape: Shape, dtype: DType, order: tuple[int, ...] | None = None) -> Value:
    """Return a temporary whose axes lie in memory in the given order, slowest first."""
    strides = [0] * len(shape)
    step = dtype.itemsize
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return Value(shape, tuple(strides), dtype, Register(step))


def copy(source: Array, out: Array) -> None:
    """Copy values without converting their type."""
    np.copyto(out, source, casting="same_kind")


def convert(source: Array | Scalar, out: Array) -> None:
    """Copy values and convert their type."""
    np.copyto(out, source, casting="unsafe")


@dataclass(slots=True, eq=False)
class Steps:
    """A kernel being written. `scratch` are temporaries that live for the whole run."""

    items: list[ArrayStep] = field(default_factory=list)
    scratch: list[Array] = field(default_factory=list)

    def whole(self, shape: Shape, dtype: DType) -> Array:
        """Return a temporary that lives for the whole run."""
        array: Array = np.empty(shape, dtype)
        self.scratch.append(array)
        return array

    def include(self, other: Steps) -> None:
        """Append steps that were written apart, with their temporaries."""
        self.items += other.items
        self.scratch += other.scratch

    def add(
        self, run: Callable[..., object], arguments: Iterable[Operand], out: Value, *, inplace: bool
    ) -> Value:
        self.items.append(ArrayStep(run, tuple(arguments), out, inplace))
        if isinstance(out.home, Register):
            out.home.writes += 1
        return out


def assign_memory(steps: list[ArrayStep]) -> int:
    """Assign memory by linear scan: the smallest free piece of scratch that holds a register.

    Return the bytes.
    """
    _find_lifetimes(steps)
    _extend_targets(steps)
    free: list[Span] = []
    total = 0
    for index, step in enumerate(steps):
        out = step.out.home
        used = dict.fromkeys(_registers(step.arguments))
        dying = [home for home in used if home.last == index and home is not out]
        if isinstance(out, Register) and out.first == index and out.target is None:
            heir = next((home for home in dying if step.inplace and _same_layout(step, home)), None)
            if heir is not None:
                dying.remove(heir)
                out.memory = heir.memory
            else:
                out.memory = _take(free, out.nbytes) or (total, aligned(out.nbytes))
                total = max(total, sum(out.memory))
        if isinstance(out, Register) and out.last == index:
            dying.append(out)
        free.extend(home.memory for home in dying if home.memory is not None)
    return total


def _find_lifetimes(steps: list[ArrayStep]) -> None:
    for index, step in enumerate(steps):
        for value in (*step.arguments, step.out):
            if not isinstance(value, Value) or not isinstance(value.home, Register):
                continue
            home = value.home
            if home.first < 0:
                home.first, home.uniform = index, value
            elif home.uniform and (home.uniform.shape, home.uniform.strides) != (value.shape, value.strides):
                home.uniform = None
            home.last = index


def _extend_targets(steps: list[ArrayStep]) -> None:
    """Compute a chain of steps that ends in an output in the output's memory, where possible."""
    for index in reversed(range(len(steps))):
        step, out = steps[index], steps[index].out.home
        if not (isinstance(out, Register) and out.target is not None and out.first == index and step.inplace):
            continue
        for home in _registers(step.arguments):
            fits = home.uniform is not None and home.uniform.dtype == step.out.dtype
            free = home.last == index and home.first >= out.free_from
            if fits and free and _same_layout(step, home):
                home.target, home.free_from = out.target, out.free_from
                break


def _registers(operands: Iterable[Operand]) -> list[Register]:
    return [
        operand.home
        for operand in operands
        if isinstance(operand, Value) and isinstance(operand.home, Register)
    ]


def _same_layout(step: ArrayStep, home: Register) -> bool:
    """Return whether every use of a register by a step covers exactly the elements the step writes."""
    uses = [value for value in step.arguments if isinstance(value, Value) and value.home is home]
    return home.target is None and all(
        value.shape == step.out.shape
        and value.strides == step.out.strides
        and value.dtype.itemsize == step.out.dtype.itemsize
        for value in uses
    )


def _take(free: list[Span], nbytes: int) -> Span | None:
    fitting = [index for index, (_, size) in enumerate(free) if size >= nbytes]
    return free.pop(min(fitting, key=lambda index: free[index][1])) if fitting else None
