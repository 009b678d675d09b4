"""The commands of a worker's stream: launches, copies and calls of vendor libraries, with their addresses.

Commands are made once, before the first iteration, and issued every iteration. Making one touches neither
a device nor its memory, so whatever a plan would do on cards can be looked at, and tried, without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from .view import DeviceView

Struct = npt.NDArray[np.void]
"""The one argument of a launch, passed by value: an array with one element."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelLaunch:
    """`function` of the translation unit `source`, along the first dimension of grid and block.

    `together` says that threads of a block wait for each other. `struct` is laid out as the unit's
    `Parameters`.
    """

    source: str
    function: str
    blocks: int
    threads: int
    together: bool
    struct: Struct


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """`nbytes` from one address to another, within a device or between two."""

    target: int
    source: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """`batch` matrices of `rows` x `columns` elements; steps count elements, that of rows or columns is 1."""

    address: int
    rows: int
    columns: int
    row_step: int
    column_step: int
    batch: int
    batch_step: int
    type: str


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """`result = scale * left @ right` for every matrix; sums are float32, those of float64 are float64."""

    left: Matrix
    right: Matrix
    result: Matrix
    scale: float = 1.0


class Pass(StrEnum):
    """Which of a convolution's three tensors is computed from the other two."""

    FORWARD = "forward"
    DATA_GRADIENT = "data gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True, slots=True)
class WindowGeometry:
    """Per spatial dimension: row = place * stride + tap * dilate - before; zeros outside of the data.

    `after` is how many rows of zeros the last window reads behind the data; negative if it ends before.
    """

    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Convolution:
    """`output[n, f, o] = sum over c, t of data[n, c, row(o, t)] * weight[f, c, t]`, or one of its gradients.

    All views are in this order of axes, whatever the order of their strides. The workspace is the
    library's scratch.
    """

    computes: Pass
    data: DeviceView
    weight: DeviceView
    output: DeviceView
    geometry: WindowGeometry
    workspace: int = 0
    workspace_bytes: int = 0


Command = KernelLaunch | MemoryCopy | MatrixProduct | Convolution
