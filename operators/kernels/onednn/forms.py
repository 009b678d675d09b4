"""How arrays lie in memory, and the library's descriptions of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..strided import Strided
from .handle import Handle
from .library import Library, numbers

FLOAT32, ANY = 3, 1
ITEM_BYTES = 4


@dataclass(frozen=True, slots=True)
class Form:
    """The shape of an array of float32, and the distance of neighbours along each axis, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


def form_of(array: Strided) -> Form | None:
    """Return the form of an array; None if the library does not take it.

    It takes float32 whose elements lie whole elements apart, in rising order and none twice.
    """
    if array.dtype != np.float32 or 0 in array.shape:
        return None
    strides, step = [], 1
    for length, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if length == 1:  # its stride says nothing, so equal forms get equal strides
            stride = step * ITEM_BYTES
        if stride <= 0 or stride % ITEM_BYTES:
            return None
        strides.append(stride // ITEM_BYTES)
        step = length * strides[-1]
    return Form(tuple(array.shape), tuple(reversed(strides)))


def described(library: Library, form: Form) -> Handle:
    """Return the library's description of a form."""
    return library.make(
        "dnnl_memory_desc_create_with_strides",
        "dnnl_memory_desc_destroy",
        len(form.shape),
        numbers(form.shape),
        FLOAT32,
        numbers(form.strides),
    )


def undecided(library: Library, shape: Sequence[int]) -> Handle:
    """Return a description that lets the library choose how an array lies."""
    return library.make(
        "dnnl_memory_desc_create_with_tag",
        "dnnl_memory_desc_destroy",
        len(shape),
        numbers(tuple(shape)),
        FLOAT32,
        ANY,
    )
