"""What is launched for one box: the functions, their geometry, and the struct that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.affine import reads_elements
from ...analyzer.region import Interval
from ...errors import DataError, OperatorError
from ...tdl import ast
from ...tdl.traverse import walk
from ..kernel import Array, KernelCall
from .datatypes import DataType
from .entries import Entry
from .indices import INT32, magnitude
from .kernel import CudaKernel
from .parameters import Parameters

BLOCK_THREADS = 256
"""`tofu::block_threads` of the prelude."""

LONG_REDUCTION = 32
"""Reductions of fewer elements are left to one thread each."""

FEW_OUTPUTS = 1 << 15
"""So many threads keep a card busy: with more outputs each has a thread of its own."""

Struct = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch, along the first dimension only; `threads` are those of one block."""

    function: str
    blocks: int
    threads: int


def launches(kernel: CudaKernel, call: KernelCall) -> tuple[Launch, ...]:
    """The launches that compute the call's box, to be made in this order; none for empty outputs.

    Which entry is chosen depends on the lengths of the box alone, so equal calls give equal bits.
    """
    narrow = fits_32_bits(kernel.parameters, call)
    lengths = {name: max(upper - lower, 0) for name, (lower, upper) in call.box.items()}
    chosen = (_choose(group, lengths) for group in kernel.groups)
    return tuple(_launch(entry, lengths, narrow) for entry in chosen if _count(entry.variables, lengths))


def launch_of(entry: Entry, box: Mapping[str, Interval], narrow: bool) -> Launch:
    """The launch of one particular entry for a box whose outputs are not empty."""
    return _launch(entry, {name: max(upper - lower, 0) for name, (lower, upper) in box.items()}, narrow)


def _choose(group: tuple[Entry, ...], lengths: Mapping[str, int]) -> Entry:
    for entry in group:
        longest = max((_count(names, lengths) for names in entry.cooperative), default=0)
        few = entry.inner or _count(entry.variables, lengths) <= FEW_OUTPUTS
        if longest >= LONG_REDUCTION and few:
            return entry
    return group[0]


def _launch(entry: Entry, lengths: Mapping[str, int], narrow: bool) -> Launch:
    outer = _count(entry.outer, lengths)
    if not entry.cooperative:
        return Launch(entry.function(narrow), -(-outer // BLOCK_THREADS), BLOCK_THREADS)
    work = max(_count(names, lengths) for names in (entry.inner, *entry.cooperative))
    threads = min(max(1 << (work - 1).bit_length() if work else 1, 32), BLOCK_THREADS)
    return Launch(entry.function(narrow), outer, threads)


def _count(names: tuple[str, ...], lengths: Mapping[str, int]) -> int:
    return prod(lengths[name] for name in names)


def fits_32_bits(parameters: Parameters, call: KernelCall) -> bool:
    """Whether no position, index or offset of the call needs more than 32 bits."""
    largest = {name: max(abs(lower), abs(upper)) for name, (lower, upper) in call.box.items()}
    largest |= {
        parameters.extent(tensor, axis): call.bound.shapes[tensor][axis] for tensor, axis in parameters.extents
    }
    positions = prod(max(upper - lower, 1) for lower, upper in call.box.values()) + BLOCK_THREADS
    sizes = [positions, *largest.values()]
    for name, _ in parameters.inputs:
        array, region = call.inputs[name], call.regions[name]
        sizes += [upper for _, upper in region]
        sizes.append(sum(map(abs, _strides(name, array))) + _span(name, array))
    sizes += [_span(f"output {number}", array) for number, array in enumerate(call.outputs)]
    for node in walk(parameters.description):
        if isinstance(node, ast.Element):
            affine = [index for index in node.indices if not reads_elements(index)]
            sizes += [magnitude(parameters, index, largest) for index in affine]
    return max(sizes) < INT32


def pack(kernel: CudaKernel, call: KernelCall, faults: int = 0) -> Struct:
    """The struct for the call, an array of one element to hand to the launch by value.

    Arrays are NumPy's or anything with `__cuda_array_interface__`. `faults` is the address of
    `len(parameters.gathers)` 32-bit integers, zeroed before: the kernel sets those whose index, computed
    from data, is no whole number or leaves its tensor. Raises DataError for an array of another type or
    with strides that are not whole elements, OperatorError for one that does not hold what the box reads.
    """
    parameters = kernel.parameters
    struct = np.zeros(1, parameters.dtype)
    _check_regions(parameters, call)
    for name, entry in parameters.inputs:
        array, region, member = call.inputs[name], call.regions[name], struct[f"in_{name}"]
        member["data"] = _address(name, array, entry)
        if region:
            member["lower"] = [lower for lower, _ in region]
            member["length"] = [upper - lower for lower, upper in region]
            member["stride"] = _strides(name, array)
    for number, (entry, array) in enumerate(zip(parameters.outputs, call.outputs, strict=True)):
        member = struct[f"out_{number}"]
        member["data"] = _address(f"output {number}", array, entry)
        if array.ndim:
            member["stride"] = _strides(f"output {number}", array)
    for name in parameters.variables:
        struct[f"box_{name}"] = call.box[name]
    for tensor, axis in parameters.extents:
        struct[f"extent_{tensor}_{axis}"] = call.bound.shapes[tensor][axis]
    if parameters.gathers:
        if not faults:
            raise DataError(
                f"{parameters.operator} computes indices from data: give the address of "
                f"{len(parameters.gathers)} flags for those that leave their tensor"
            )
        struct["faults"] = faults
    return struct


def _check_regions(parameters: Parameters, call: KernelCall) -> None:
    """Raise OperatorError where a box reads elements that its input does not hold."""
    box = np.array([[call.box[name] for name in call.bound.variables]], np.int64).reshape(1, -1, 2)
    needed = call.bound.input_regions(box)
    for name, _ in parameters.inputs:
        wanted, held = needed[name][0].tolist(), call.regions[name]
        for axis, ((lower, upper), (first, last)) in enumerate(zip(wanted, held, strict=True)):
            if lower < upper and (lower < first or upper > last):
                raise OperatorError(
                    f"{parameters.operator}: the box reads [{lower}, {upper}) of dimension {axis} of {name}, but its "
                    f"input holds [{first}, {last}); hand the kernel the region of the analysis"
                )
        if call.inputs[name].shape != tuple(last - first for first, last in held):
            raise DataError(
                f"{parameters.operator}: the input for {name} has shape {call.inputs[name].shape}, its region "
                f"is {held}"
            )


def _address(name: str, array: Array, entry: DataType) -> int:
    if array.dtype != entry.numpy:
        raise DataError(f"{name} holds {array.dtype}, the kernel was generated for {entry.name} ({entry.numpy})")
    interface: Any = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])


def _strides(name: str, array: Array) -> list[int]:
    """In elements. Raises DataError where one is not whole."""
    if any(stride % array.itemsize for stride in array.strides):
        raise DataError(
            f"{name} has strides of {array.strides} bytes, which are not whole elements of {array.itemsize}; "
            "copy it first"
        )
    return [stride // array.itemsize for stride in array.strides]


def _span(name: str, array: Array) -> int:
    """The largest offset between two elements."""
    return sum(
        abs(stride) * max(length - 1, 0)
        for stride, length in zip(_strides(name, array), array.shape, strict=True)
    )
