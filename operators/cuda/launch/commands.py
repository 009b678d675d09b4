"""The commands of a worker's stream: launches, copies and calls of vendor libraries, with their addresses.

Commands are made once, before the first iteration, and issued every iteration. Making one touches neither
a device nor its memory, so whatever a plan would do on cards can be looked at, and tried, without them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...emit.packing import Struct
from ...kernels.convolution.library_form import Pass, WindowGeometry
from .view import DeviceView


@dataclass(frozen=True, slots=True, eq=False)
class KernelLaunch:
    """A launch of a kernel, along the first dimension of grid and block."""

    source: str
    """The translation unit."""

    function: str
    """The function's name in it."""

    blocks: int
    """The number of blocks."""

    threads: int
    """The number of threads of each block."""

    together: bool
    """Whether the threads of a block wait for each other."""

    struct: Struct
    """The argument, laid out as the unit's `Parameters`."""


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """`nbytes` from one address to another, within a device or between two."""

    target: int
    source: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """A batch of matrices. Steps count elements."""

    address: int
    """The address of the first element."""

    rows: int
    """The number of rows of each matrix."""

    columns: int
    """The number of columns of each matrix."""

    row_step: int
    """The distance from a row to the next one; 1 if columns lie without gaps."""

    column_step: int
    """The distance from a column to the next one; 1 if rows lie without gaps."""

    batch: int
    """The number of matrices."""

    batch_step: int
    """The distance from a matrix to the next one."""

    type: str
    """The element type, one of `DATA_TYPES`."""


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """`result = scale * left @ right` for every matrix of a batch. Sums of float64 are float64, all others
    float32."""

    left: Matrix
    """The left factors, `[batch, rows, summed]`."""

    right: Matrix
    """The right factors, `[batch, summed, columns]`."""

    result: Matrix
    """The products, `[batch, rows, columns]`."""

    scale: float = 1.0
    """The number that every product is multiplied by."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """`output[n, f, o] = sum over c, t of data[n, c, row(o, t)] * weight[f, c, t]`, or one of its gradients.

    The axes of all views are in this order, whatever the order of their strides.
    """

    computes: Pass
    """Which of the three views is written, from the other two."""

    data: DeviceView
    """The images, `[image, channel, *row]`."""

    weight: DeviceView
    """The filters, `[filter, channel, *tap]`."""

    output: DeviceView
    """The results, `[image, filter, *place]`."""

    geometry: WindowGeometry
    """Which row a place and a tap meet."""

    workspace: int = 0
    """The address of the library's scratch; 0 if there is none."""

    workspace_bytes: int = 0
    """The size of the scratch."""


@dataclass(frozen=True, slots=True)
class CardMessage:
    """Contiguous memory of this process's card, and the process that gets or gives its contents."""

    process: int
    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages between the cards of processes, which cross at the same time.

    Those to one process arrive in the order in which they are listed.
    """

    sent: tuple[CardMessage, ...]
    received: tuple[CardMessage, ...]


Command = KernelLaunch | MemoryCopy | MatrixProduct | Convolution | Exchange
