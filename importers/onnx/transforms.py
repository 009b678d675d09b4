"""ONNX's discrete Fourier transform, as a product with the roots of one.

Complex numbers are pairs in the last dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import GraphError
from .compose import described
from .folding import MOST_FOLDED
from .node import Adapter, OnnxNode
from .operand import Array, OnnxOperand, UnsupportedNodeError, constant


def transformed(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, inverse, half = node[0], bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    axis = node.axis(1) if node.opset < 20 else int(node.value(2).reshape(())) if node.has(2) else -2
    axis %= data.ndim
    if data.shape[-1] > 2 or axis == data.ndim - 1:
        raise UnsupportedNodeError(f"DFT along dimension {axis} of {data.shape}, whose last one is for pairs")
    if inverse and half:
        raise UnsupportedNodeError("DFT with inverse and onesided")
    length = int(node.value(1).reshape(())) if node.has(1) else data.shape[axis]
    read = min(length, data.shape[axis])
    made = length // 2 + 1 if half else length
    if 4 * read * made > MOST_FOLDED:
        raise GraphError(f"a DFT of length {length:,} takes more than {MOST_FOLDED:,} roots of one")
    names = [f"n{d}" for d in range(data.ndim)]
    result = [f"k={made}" if d == axis else name for d, name in enumerate(names[:-1])]
    summed = f"{names[axis]}={read}, {names[-1]}"
    product = f"a[{', '.join(names)}] * roots[{names[axis]}, {names[-1]}, k, part]"
    roots = constant(_roots(read, made, length, inverse)[:, : data.shape[-1]])
    text = f"def dft(a, roots):\n    return lambda {', '.join(result)}, part: Sum(lambda {summed}: {product})"
    return [described(text, data, roots)]


def _roots(read: int, made: int, length: int, inverse: bool) -> Array:
    """Return the factors of real and imaginary parts read, for real and imaginary parts made."""
    turns = np.outer(np.arange(read), np.arange(made)) % length
    angles = 2 * np.pi / length * turns * (1 if inverse else -1)
    cosine, sine = np.cos(angles), np.sin(angles)
    found = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], 1)
    return found / length if inverse else found


ADAPTERS: Mapping[str, Adapter] = {"DFT": transformed}
