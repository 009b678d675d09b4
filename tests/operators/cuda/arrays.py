"""Arrays as a kernel meets them: strided views, between guard bands that must neither be used nor written."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.analyzer.indices.region import Shape, to_region
from tofu.operators.cuda import data_type
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator

Array = npt.NDArray[Any]

GUARD = 4096
"""Elements before and after the array; one element lies next to each row, column, and so on."""

POISON = -10000
"""The value of the guards of inputs that cannot hold NaN."""

UNWRITTEN = 99
"""The initial value of outputs and their guards: a number, so that a NaN from a guard that was read shows."""


@dataclass(frozen=True)
class Placed:
    """A view, and the memory around it with what it held when the view was made."""

    view: Array
    memory: Array
    before: Array
    inside: Array

    def intact(self) -> bool:
        """Whether nothing outside of the view has changed, by bits."""
        now, then = (array.view(np.uint8).reshape(array.size, -1) for array in (self.memory, self.before))
        return bool(((now == then).all(axis=1) | self.inside).all())


def place(values: Array, guard: Any, rng: np.random.Generator | None) -> Placed:
    """The values between guards, dimensions in random order and direction.

    Without `rng` they lie dense and alone, so an address sanitizer sees an access next to them.
    """
    shape = values.shape
    if not values.size:
        return _unreadable(values)
    if rng is None:
        memory = np.ascontiguousarray(values).reshape(-1).copy()
        view = memory.reshape(shape)
        view[...] = values
        return Placed(view, memory, memory.copy(), np.ones(memory.size, bool))
    order = rng.permutation(len(shape))
    turned = tuple(slice(None, None, -1 if rng.random() < 0.3 else 1) for _ in shape)
    room = [shape[axis] + 2 for axis in order]
    size = int(np.prod(room, dtype=int))

    def within(flat: Array) -> Array:
        box = flat[GUARD : GUARD + size].reshape(room)
        inner = box[(..., *(slice(1, -1),) * len(shape))]
        return inner.transpose(np.argsort(order))[(..., *turned)]

    memory = np.full(size + 2 * GUARD, guard, values.dtype)
    inside = np.zeros(memory.size, bool)
    within(inside)[...] = True
    within(memory)[...] = values
    return Placed(within(memory), memory, memory.copy(), inside)


def _unreadable(values: Array) -> Placed:
    """An empty array in memory that may not even be read."""
    memory: Array = np.empty(0, values.dtype)
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=0)
    return Placed(np.ndarray(values.shape, values.dtype, page), memory, memory, np.ones(0, bool))


def poison(dtype: np.dtype[Any]) -> Any:
    """Return values that no kernel may use. The 16-bit integers hold the bits of bfloat16."""
    if dtype.kind == "f":
        return np.nan
    return 0x7FC0 if dtype == np.uint16 else POISON


def encode(values: Array, dtype: str) -> Array:
    """Values as the bits that a tensor of this type holds."""
    if dtype != "bfloat16":
        return np.asarray(values).astype(data_type(dtype).numpy)
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(bits: Array, dtype: str) -> Array:
    """The values that a tensor of this type holds."""
    if dtype != "bfloat16":
        return bits
    return (bits.astype(np.uint32) << 16).view(np.float32)


def held(tensors: Mapping[str, Array], dtypes: Mapping[str, str]) -> dict[str, Array]:
    """The tensors, rounded to what their types hold."""
    rounded = {name: decode(encode(tensors[name], dtype), dtype) for name, dtype in dtypes.items()}
    return {
        name: array if data_type(dtypes[name]).integer else array.astype(float)
        for name, array in rounded.items()
    }


@dataclass(frozen=True)
class Guarded:
    """A call, and the memory that its arrays lie in."""

    call: KernelCall
    outputs: tuple[Placed, ...]
    inputs: tuple[Placed, ...]

    def reset(self) -> None:
        for output in self.outputs:
            output.view[...] = UNWRITTEN

    def intact(self) -> bool:
        """Whether the inputs, and everything around inputs and outputs, are as they were."""
        read_only = all(np.array_equal(_bits(one.memory), _bits(one.before)) for one in self.inputs)
        return read_only and all(output.intact() for output in self.outputs)


def _bits(array: Array) -> Array:
    return array.view(np.uint8)


def guarded_call(
    bound: BoundOperator,
    box: Array,
    tensors: Mapping[str, Array],
    dtypes: Mapping[str, str],
    outputs: Sequence[str],
    rng: np.random.Generator | None,
) -> Guarded:
    """A call with the regions that the analysis gives, or with `rng` perhaps some more of the tensors."""
    inputs, regions = {}, {}
    for name, boxes in bound.input_regions(box[None]).items():
        if name in bound.reads:
            regions[name] = _widened(to_region(boxes[0]), bound.shapes[name], rng)
            part = tensors[name][tuple(slice(*interval) for interval in regions[name])]
            values = encode(part, dtypes[name])
            inputs[name] = place(values, poison(values.dtype), rng)
    made = []
    for dtype, boxes in zip(outputs, bound.output_regions(box[None]), strict=True):
        shape = tuple(int(upper - lower) for lower, upper in boxes[0])
        made.append(place(np.full(shape, UNWRITTEN, data_type(dtype).numpy), UNWRITTEN, rng))
    intervals = dict(zip(bound.variables, to_region(box), strict=True))
    views = {name: placed.view for name, placed in inputs.items()}
    call = KernelCall(bound, intervals, views, regions, tuple(placed.view for placed in made))
    return Guarded(call, tuple(made), tuple(inputs.values()))


def _widened(region: Any, shape: Shape, rng: np.random.Generator | None) -> Any:
    """Half of the time the region, else more of the tensor where the region is not empty."""
    if rng is None or rng.random() < 0.5 or any(lower >= upper for lower, upper in region):
        return region
    return tuple(
        (int(rng.integers(0, lower + 1)), int(rng.integers(upper, extent + 1)))
        for (lower, upper), extent in zip(region, shape, strict=True)
    )


def random_box(bound: BoundOperator, rng: np.random.Generator) -> Array:
    """A box cut at random along any index variables."""
    box = bound.full_box.copy()
    for axis, extent in enumerate(bound.extents.values()):
        if extent > 1 and rng.random() < 0.6:
            first = int(rng.integers(0, extent))
            box[axis] = first, int(rng.integers(first + 1, extent + 1))
    return box
