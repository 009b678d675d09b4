"""How a kernel's arrays lie in memory while it is audited: as they do where kernels run, or in frames.

Frames with guards around them show who reads or writes next to an array. They hide what a kernel does with
arrays that have no gaps, so it runs on those as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, cast

import numpy as np

from ...analyzer.indices.region import Region, Shape
from ..kernels.kernel import Array, view_of

Poison = Callable[[Any], Any]

MARGIN = 2
GUARD = -987654.25


class Memory(Enum):
    """How a kernel's arrays lie in memory."""

    FRAMED = "inside larger arrays, with guards around them"
    OWN = "one element after the other, as a region that was fetched"
    SHARD = "outputs one element after the other, inputs as views of whole tensors"
    IN_PLACE = "one element after the other, outputs over inputs that may be overwritten"


@dataclass(frozen=True, slots=True)
class Setting:
    """The memory that a kernel is run in: the layout of its arrays, and the type of their elements."""

    memory: Memory
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype}, {self.memory.value}"


DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
FRAMED, FRAMED_SINGLE = Setting(Memory.FRAMED, DOUBLE), Setting(Memory.FRAMED, SINGLE)
OWN_SINGLE = Setting(Memory.OWN, SINGLE)
WHOLE_SETTINGS = (
    FRAMED,
    *(Setting(memory, dtype) for dtype in (DOUBLE, SINGLE) for memory in list(Memory)[1:]),
)
"""`compute` is given float64 and float32."""

PART_SETTINGS = (FRAMED, *(Setting(memory, SINGLE) for memory in list(Memory)[1:]))
"""An engine's tensors are float32."""


@dataclass(frozen=True, slots=True)
class GuardedArray:
    """An array of a kernel: `memory` with room around it, and the view of it that the kernel is given."""

    memory: Array
    inside: Callable[[Array], Array]
    """Takes the view of memory of this form."""

    @property
    def view(self) -> Array:
        """The kernel's own array."""
        return self.inside(self.memory)

    @property
    def guarded(self) -> bool:
        """Whether the room around an output is as it was."""
        around = np.ones(self.memory.shape, np.bool_)
        self.inside(around)[...] = False
        return bool(np.asarray(self.memory[around] == GUARD).all())


def placed(tensor: Array, region: Region, setting: Setting, poison: Poison | None) -> GuardedArray:
    """Return a tensor's region as a setting has it; in a frame, with poison around it."""
    place = [slice(*interval) for interval in region]
    part = view_of(tensor, place)
    if setting.memory is Memory.SHARD:
        whole = _alone(tensor.shape, setting.dtype)
        whole.view[...] = tensor
        return GuardedArray(whole.memory, lambda memory: view_of(whole.inside(memory), place))
    if setting.memory is not Memory.FRAMED or not part.ndim:
        alone = _alone(part.shape, setting.dtype)
        alone.view[...] = part
        return alone
    frame = np.pad(part.astype(setting.dtype), MARGIN)
    if poison is not None:
        frame = cast(Array, poison(frame))
        _inner(frame)[...] = part
    return GuardedArray(frame, _inner)


def output(lengths: Shape, setting: Setting) -> GuardedArray:
    """Return an output full of NaN, with guard values around it."""
    if setting.memory is Memory.FRAMED:
        frame: Array = np.full([length + 2 * MARGIN for length in lengths], GUARD, setting.dtype)
        made = GuardedArray(frame, _inner)
    else:
        made = _alone(lengths, setting.dtype)
    made.view[...] = np.nan
    return made


def _alone(lengths: Shape, dtype: np.dtype[Any]) -> GuardedArray:
    """Return elements one after the other, with room for as many before them and behind them."""
    count = prod(lengths)
    room = max(count, MARGIN)

    def middle(memory: Array) -> Array:
        return memory[room : room + count].reshape(lengths)

    return GuardedArray(np.full(count + 2 * room, GUARD, dtype), middle)


def _inner(frame: Array) -> Array:
    """Return the view without margins, of arrays without dimensions too."""
    return view_of(frame, [slice(MARGIN, -MARGIN)] * frame.ndim)


def trespass(before: Mapping[str, Array], after: Mapping[str, GuardedArray], made: list[GuardedArray]) -> str:
    """Return what a kernel changed by mistake: its inputs, or memory next to its outputs."""
    for name, memory in before.items():
        if not np.array_equal(memory, after[name].memory, equal_nan=True):
            return f"changes its input {name}"
    for position, each in enumerate(made):
        if not each.guarded:
            return f"writes next to its output {position}"
    return ""
