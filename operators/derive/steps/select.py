"""Choose between values by their bits: an order of magnitude faster than a branch per element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.kernel import Array
from ..nodes.ir import Scalar


def spread_bits(condition: Array, out: Array) -> None:
    """Set all bits where a truth value holds, none elsewhere. `out` is of a signed integer type."""
    np.negative(condition.view(np.int8), out=out, dtype=out.dtype, casting="unsafe")


def select(mask: Array, x: Array | Scalar, y: Array | Scalar, out: Array) -> None:
    """`x` where the bits of `mask` are set, else `y`; all have one item size. `out` is a separate array."""
    bits = out.view(mask.dtype)
    a, b = _bits(x, out, mask), _bits(y, out, mask)
    if isinstance(b, np.integer) and b == 0:
        np.bitwise_and(mask, a, out=bits)
    else:
        np.bitwise_xor(a, b, out=bits)
        np.bitwise_and(bits, mask, out=bits)
        np.bitwise_xor(bits, b, out=bits)


def _bits(value: Array | Scalar, out: Array, mask: Array) -> Any:
    return (value if isinstance(value, np.ndarray) else out.dtype.type(value)).view(mask.dtype)
