"""Element types of a graph's tensors: how many bytes an element takes, and what the host holds it as."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..errors import ExecutionError, GraphError

UNIFORM = ("float32", "float64")
"""Types that all tensors of a graph may have."""

MIXED = ("float16", "bfloat16")
"""Types that intermediate tensors may have among others in float32; see `precision` and `rewrites`."""


@cache
def itemsize(dtype: str) -> int:
    """Return the bytes of one element."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


@cache
def host_type(dtype: str) -> np.dtype[Any]:
    """Return the type as which whole tensors are read: float32 for 16-bit types."""
    return np.dtype(np.float32) if dtype in MIXED else np.dtype(dtype)


@cache
def storage_type(dtype: str) -> np.dtype[Any]:
    """Return the type as which the processor stores elements. Raises ExecutionError if it lacks one."""
    if dtype != "bfloat16":
        return np.dtype(dtype)
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise ExecutionError(
            "NumPy has no bfloat16, and the package ml_dtypes, which adds it, is not installed; run "
            "pip install 'tofu[bfloat16]', or use float16"
        ) from None
    found: np.dtype[Any] = np.dtype(bfloat16)
    return found


def checked_type(dtype: str) -> str:
    """Return the type, if a graph may be computed in it. Raises GraphError."""
    known = (*UNIFORM, *MIXED)
    if dtype not in known:
        raise GraphError(f"a graph cannot be computed in {dtype!r}; use one of {', '.join(known)}")
    return dtype
