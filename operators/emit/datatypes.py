"""Element types that tensors may have on a device, and what kernels compute them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ...errors import OperatorError


@dataclass(frozen=True, slots=True)
class DataType:
    """An element type that tensors may have on a device."""

    name: str
    """The name that users give it, as in `float16`."""

    storage: str
    """The C++ type of an element."""

    numpy: np.dtype[np.generic]
    """The type that holds its bits on the host."""

    integer: bool = False
    """Whether values are integers."""

    macro: str = ""
    """The macro that makes the prelude include the header of `storage`; empty if none is needed."""


_TABLE = (
    DataType("float16", "__half", np.dtype(np.float16), macro="TOFU_FLOAT16"),
    DataType("bfloat16", "__nv_bfloat16", np.dtype(np.uint16), macro="TOFU_BFLOAT16"),
    DataType("float32", "float", np.dtype(np.float32)),
    DataType("float64", "double", np.dtype(np.float64)),
    DataType("int32", "int", np.dtype(np.int32), integer=True),
    DataType("int64", "long long", np.dtype(np.int64), integer=True),
)

DATA_TYPES: Mapping[str, DataType] = MappingProxyType({entry.name: entry for entry in _TABLE})


def data_type(name: str) -> DataType:
    """Return the type of this name. Raises OperatorError if kernels do not support it."""
    found = DATA_TYPES.get(name)
    if found is None:
        raise OperatorError(
            f"no CUDA kernel for elements of type {name!r}; use one of {', '.join(DATA_TYPES)}"
        )
    return found


def computed_in(names: Iterable[str]) -> str:
    """Return the C++ type of arithmetic on tensors of these types.

    float32 for float16, bfloat16 and float32; float64 as soon as one is float64, or if all are integers.
    """
    floating = {name for name in names if not data_type(name).integer}
    return "double" if "float64" in floating or not floating else "float"


def encoded(values: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.generic]:
    """Return values as a type stores them: those of bfloat16 as the upper halves of float32,
    rounded to even.
    """
    if name != "bfloat16":
        return values.astype(data_type(name).numpy, copy=False)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values.astype(np.float32)), np.uint32(0x7FFF), rounded).astype(np.uint16)


def decoded(stored: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.generic]:
    """Return the values of stored elements; those of bfloat16 as float32."""
    if name != "bfloat16":
        return stored
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
