"""The launches for one box: the functions and their geometry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ....analyzer.indices.region import Interval
from ....tdl import ast
from ....tdl.traverse import reads_elements, walk
from ...emit.entry_functions import BLOCK_THREADS, EntryFunction
from ...emit.indices import INT32, magnitude
from ...emit.kernel import CudaKernel
from ...emit.packing import strides
from ...emit.parameters import ParameterStruct
from ...kernels.kernel import Array, KernelCall

LONG_REDUCTION = 32
"""Reductions of fewer elements are left to one thread each."""

FEW_OUTPUTS = 1 << 15
"""The number of threads that keep a card busy: with more outputs each has a separate thread."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch, along the first dimension of grid and block."""

    function: str
    """The function's name."""

    blocks: int
    """The number of blocks."""

    threads: int
    """The number of threads of each block."""

    together: bool
    """Whether the threads of a block wait for each other."""


def launches(kernel: CudaKernel, call: KernelCall) -> tuple[Launch, ...]:
    """Return the launches that compute the call's box, to be made in this order; none for empty outputs.

    Which entry is chosen depends on the lengths of the box alone, so equal calls give equal bits.
    """
    narrow = fits_32_bits(kernel.parameters, call)
    lengths = {name: max(upper - lower, 0) for name, (lower, upper) in call.box.items()}
    chosen = (_choose(group, lengths) for group in kernel.groups)
    return tuple(_launch(entry, lengths, narrow) for entry in chosen if _count(entry.variables, lengths))


def launch_of(entry: EntryFunction, box: Mapping[str, Interval], narrow: bool) -> Launch:
    """Return the launch of one particular entry for a box whose outputs are not empty."""
    return _launch(entry, {name: max(upper - lower, 0) for name, (lower, upper) in box.items()}, narrow)


def _choose(group: tuple[EntryFunction, ...], lengths: Mapping[str, int]) -> EntryFunction:
    for entry in group:
        longest = max((_count(names, lengths) for names in entry.cooperative), default=0)
        few = entry.inner or _count(entry.variables, lengths) <= FEW_OUTPUTS
        if longest >= LONG_REDUCTION and few:
            return entry
    return group[0]


def _launch(entry: EntryFunction, lengths: Mapping[str, int], narrow: bool) -> Launch:
    outer = _count(entry.outer, lengths)
    if not entry.cooperative:
        return Launch(entry.function(narrow), -(-outer // BLOCK_THREADS), BLOCK_THREADS, together=False)
    work = max(_count(names, lengths) for names in (entry.inner, *entry.cooperative))
    threads = min(max(1 << (work - 1).bit_length() if work else 1, 32), BLOCK_THREADS)
    return Launch(entry.function(narrow), outer, threads, together=True)


def _count(names: tuple[str, ...], lengths: Mapping[str, int]) -> int:
    return prod(lengths[name] for name in names)


def fits_32_bits(parameters: ParameterStruct, call: KernelCall) -> bool:
    """Return whether no position, index or offset of the call needs more than 32 bits."""
    largest = {name: max(abs(lower), abs(upper)) for name, (lower, upper) in call.box.items()}
    largest |= {
        parameters.extent(tensor, axis): call.bound.shapes[tensor][axis]
        for tensor, axis in parameters.extents
    }
    sizes = list(largest.values())
    for node in walk(parameters.description):
        if isinstance(node, ast.Lambda | ast.ReducerCall):
            intervals = (call.box[binder.name] for binder in node.variables)
            sizes.append(prod(upper - lower for lower, upper in intervals) + BLOCK_THREADS)
    for name, _ in parameters.inputs:
        array, region = call.inputs[name], call.regions[name]
        sizes += [upper for _, upper in region]
        sizes.append(sum(map(abs, strides(name, array))) + _span(name, array))
    sizes += [_span(f"output {number}", array) for number, array in enumerate(call.outputs)]
    for node in walk(parameters.description):
        if isinstance(node, ast.Element):
            affine = [index for index in node.indices if not reads_elements(index)]
            sizes += [magnitude(parameters, index, largest) for index in affine]
    return max(sizes) < INT32


def _span(name: str, array: Array) -> int:
    """Return the largest offset between two elements."""
    return sum(
        abs(stride) * max(length - 1, 0)
        for stride, length in zip(strides(name, array), array.shape, strict=True)
    )
