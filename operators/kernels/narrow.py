"""Kernels on tensors of 16 bits: arithmetic is wider, and results are rounded once, when they are stored.

A kernel computes in the type of its arrays. So it gets wide copies of those that are narrow: in float64 if an
array of the call is, else in float32. CUDA kernels round in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from .kernel import Array, KernelCall, Run

NARROW = frozenset(("float16", "bfloat16"))
"""The names of types of 16 bits."""

NARROW_BYTES = 2


def is_narrow(call: KernelCall) -> bool:
    """Tell whether a call has arrays of 16 bits."""
    return any(has_narrow_type(array) for array in (*call.inputs.values(), *call.outputs))


def has_narrow_type(array: Array) -> bool:
    """Tell whether an array is of 16 bits. NumPy takes long to name a type."""
    return array.itemsize == NARROW_BYTES and array.dtype.name in NARROW


def wide_type(arrays: Iterable[Array]) -> np.dtype[np.generic]:
    """Return the type in which arithmetic on these arrays is done."""
    is_double = any(array.dtype == np.float64 for array in arrays)
    return np.dtype(np.float64 if is_double else np.float32)


def widened(call: KernelCall, prepare: Callable[[KernelCall], Run]) -> Run:
    """Return the function that runs a call on wide copies of its narrow arrays.

    `prepare` prepares a call without narrow arrays. The copies are scratch, and each is made once.
    """
    wide = wide_type((*call.inputs.values(), *call.outputs))
    copies: dict[int, Array] = {}

    def copy(array: Array) -> Array:
        if not has_narrow_type(array):
            return array
        if id(array) not in copies:
            copies[id(array)] = call.workspace.array(array.shape, wide)
        return copies[id(array)]

    inputs = {name: copy(array) for name, array in call.inputs.items()}
    read = [(array, inputs[name]) for name, array in call.inputs.items() if inputs[name] is not array]
    outputs = tuple(map(copy, call.outputs))
    written = [pair for pair in zip(call.outputs, outputs, strict=True) if pair[0] is not pair[1]]
    call.workspace.hold()
    compute = prepare(replace(call, inputs=inputs, outputs=outputs))

    def run() -> None:
        for source, target in read:
            np.copyto(target, source)
        compute()
        with np.errstate(over="ignore"):
            for target, source in written:
                np.copyto(target, source, casting="same_kind")

    return run
