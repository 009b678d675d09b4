"""The step that reduces an array along some of its axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....analyzer.indices.region import Shape
from ...kernels.kernel import Array
from ..nodes.ir import Scalar
from .steps import DType


@dataclass(frozen=True, slots=True)
class Fold:
    """The step that reduces an array along some axes, which stay with length 1."""

    ufunc: np.ufunc
    """The function that combines two elements."""

    axes: tuple[int, ...]
    """The axes that are reduced."""

    dtype: DType
    """The type in which elements are combined."""

    shape: Shape | None = None
    """The shape to which the array is repeated first; None if it is not."""

    def __call__(self, body: Array | Scalar, out: Array) -> None:
        """Write the reduction of `body` to `out`."""
        whole = body if self.shape is None else np.broadcast_to(body, self.shape)
        self.ufunc.reduce(whole, axis=self.axes, keepdims=True, dtype=self.dtype, out=out)
