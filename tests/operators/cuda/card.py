"""Commands carried out on the CPU, and the memory that they work on."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.operators.cuda import data_type
from tofu.operators.cuda.launch.commands import Command, KernelLaunch, MemoryCopy
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.transfers.transfer_units import Unit, units_source

from .machine import caller, load, start

Array = npt.NDArray[Any]

PREFIX = "tofu"
"""The prefix of kernels' names, and the namespace around them."""


def callers(units: Iterable[Unit]) -> list[str]:
    """For each kernel a function that `start` finds."""
    return [caller(unit.namespace, unit.function(narrow)) for unit in units for narrow in (True, False)]


@dataclass(frozen=True)
class Card:
    """Issues commands: `library` has the kernels of the units, under names that start with `prefix`."""

    library: ctypes.CDLL
    units: tuple[Unit, ...]
    prefix: str = PREFIX

    @classmethod
    def compiled(cls, units: Sequence[Unit], folder: Path) -> Card:
        return cls(load("\n".join([units_source(units), *callers(units)]), folder), tuple(units))

    @cached_property
    def sources(self) -> dict[str, str]:
        return {unit.function(narrow): unit.source for unit in self.units for narrow in (True, False)}

    def run(self, commands: Iterable[Command], wide: bool = False) -> None:
        """Carry them out in their order; with 64-bit indices even where 32 bits do, if `wide`."""
        for command in commands:
            match command:
                case MemoryCopy(target=target, source=source, nbytes=nbytes):
                    ctypes.memmove(target, source, nbytes)
                case KernelLaunch(function=name):
                    assert command.source == self.sources[name]
                    name = name.replace("_i32", "_i64") if wide else name
                    start(
                        self.library,
                        name.replace(PREFIX, self.prefix, 1),
                        command.struct,
                        command.blocks,
                        command.threads,
                        False,
                    )
                case _:
                    raise AssertionError(f"{command} moves no data")


@dataclass(frozen=True)
class Memory:
    """A NumPy view as a device would know it, in bytes that nothing else lies in."""

    array: Array
    bytes: Array
    view: DeviceView


def dense(values: Array, type: str) -> Memory:
    """The elements in their order, without guards: a sanitizer sees an access next to them."""
    array = np.array(values, data_type(type).numpy, order="C")
    return Memory(array, array.reshape(-1).view(np.uint8), view_of(array, type))


def strided(
    values: Array,
    type: str,
    rng: np.random.Generator,
    align: int | None = None,
    repeated: bool = False,
    turned: bool = True,
) -> Memory:
    """The elements with axes in random order and direction, with gaps, between guards of random bytes.

    The address is a multiple of `align` bytes, of the element's size where None. With `repeated` axes along
    which the elements are equal may have the stride 0.
    """
    values = np.asarray(values, data_type(type).numpy)
    size = values.itemsize
    align = size if align is None else align
    strides, step = [0] * values.ndim, size
    for axis in rng.permutation(values.ndim).tolist():
        equal = repeated and values.size and (values == values.take([0], axis)).all()
        if equal and rng.random() < 0.7:
            continue
        strides[axis] = step
        step *= values.shape[axis]
        if rng.random() < 0.5:
            step += int(rng.integers(0, 5)) * (size if align % size == 0 else align)
    guard = 64
    place = guard + int(rng.integers(0, 16)) * align
    memory = _at_sixteen(step + 2 * guard + 16 * align + 16)
    memory[:] = rng.integers(0, 256, memory.size)
    array: Array = np.ndarray(values.shape, values.dtype, memory, place, strides)
    if turned:
        turns = (slice(None, None, -1 if rng.random() < 0.25 else 1) for _ in values.shape)
        array = array[(..., *turns)]
    array[...] = values
    return Memory(array, memory, view_of(array, type))


def _at_sixteen(count: int) -> Array:
    """Bytes whose address is a multiple of sixteen."""
    memory = np.empty(count + 16, np.uint8)
    start = -memory.ctypes.data % 16
    return memory[start : start + count]


def view_of(array: Array, type: str) -> DeviceView:
    return DeviceView(array.ctypes.data, array.shape, array.strides, type)
