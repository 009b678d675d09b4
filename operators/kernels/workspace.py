"""Scratch memory of kernels, shared by all kernels of one worker.

A worker runs one kernel at a time, so the scratch of every kernel may start at the same place. A worker needs
as much as its largest kernel, not the sum of all. The contents of the scratch are undefined when a kernel
starts, because other kernels have used it. Workers that take turns on one thread have their scratch in the
same memory, which then stays in the processor's caches.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

ALIGNMENT_BYTES = 64
"""A cache line, where every array starts."""


def aligned(nbytes: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def aligned_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Return new memory that starts on a cache line. Its contents are undefined."""
    memory = np.empty(nbytes + ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[start : start + nbytes]


class Scratch:
    """Memory for workspaces whose kernels never run at the same time. All start at its start."""

    def __init__(self) -> None:
        self._block = aligned_bytes(0)

    def block(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the first bytes; those of new memory if there were fewer."""
        if nbytes > self._block.nbytes:
            self._block = aligned_bytes(nbytes)
        return self._block[:nbytes]


class Workspace:
    """`nbytes` of memory that kernels get while they are prepared, each from its start after `restart`.

    An array that does not fit is allocated separately. So a workspace of no bytes serves a single kernel, and
    its `used_bytes` is the size that a shared workspace must have. Before and after each array there are at
    least `band_bytes` that no array of the same part of a kernel has. The memory is that of `scratch`, or new
    memory if there is none.
    """

    def __init__(self, nbytes: int = 0, band_bytes: int = 0, scratch: Scratch | None = None) -> None:
        self._block = (scratch or Scratch()).block(nbytes)
        self._band_bytes = aligned(band_bytes)
        self._kept: dict[int, Array] = {}
        self._taken: list[tuple[int, int]] = []
        self._first = self._next = self._band_bytes
        self.used_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """Bytes of what kernels keep between runs, each array counted once."""
        return sum(array.nbytes for array in self._kept.values())

    @property
    def kept(self) -> tuple[Array, ...]:
        """Arrays that kernels keep between runs: values known at preparation."""
        return tuple(self._kept.values())

    @property
    def block(self) -> npt.NDArray[np.uint8]:
        """The shared memory."""
        return self._block

    def restart(self) -> None:
        """Begin another kernel."""
        self._taken.clear()
        self._first = self._next = self._band_bytes
        self.used_bytes = 0

    def hold(self) -> None:
        """Keep what was taken so far from the parts of the kernel: `rewind` goes back to here."""
        self._first = self._next

    def rewind(self) -> None:
        """Begin a part of the same kernel that runs after the parts before it, in the same scratch."""
        self._next = self._first

    def array(self, shape: Iterable[int], dtype: npt.DTypeLike) -> Array:
        """Return scratch for the kernel being prepared; it does not outlast a run."""
        lengths, kind = tuple(shape), np.dtype(dtype)
        nbytes = prod(lengths) * kind.itemsize
        start = self._next
        self._next += aligned(nbytes) + self._band_bytes
        self.used_bytes = max(self.used_bytes, self._next)
        if start + nbytes <= self._block.nbytes:
            self._taken.append((start, start + nbytes))
            memory = self._block[start : start + nbytes]
        else:
            memory = aligned_bytes(nbytes)
        array: Array = memory.view(kind).reshape(lengths)
        return array

    def bands(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Return the memory before, between and after the arrays of this kernel, which none of them has."""
        begin, found = 0, []
        for start, end in sorted(self._taken):
            if start > begin:
                found.append(self._block[begin:start])
            begin = max(begin, end)
        return (*found, self._block[begin : self.used_bytes])

    def keep(self, arrays: Iterable[Array]) -> None:
        """Count arrays that a kernel holds as long as it lives. Nothing writes them between runs."""
        self._kept.update((id(array), array) for array in arrays)
