"""Arrays of the host, with what lies around them, in a machine's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.operators.cuda.launch.commands import Command
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.launch.workspace import FLAG_BYTES, DeviceWorkspace
from tofu.runtime.cuda.machine import CudaMachine

Array = npt.NDArray[Any]
ALIGNMENT_BYTES = 256
UNREADABLE = 4096
"""Where arrays without elements are said to lie."""

MOST_FLAGS = 64


@dataclass(frozen=True)
class Moved:
    """An array of the host and where its bytes lie in the machine's memory."""

    memory: Array
    address: int

    def view(self, array: Array, type: str) -> DeviceView:
        """A view of the array, there."""
        if not array.size:
            return DeviceView(UNREADABLE, array.shape, array.strides, type)
        place = self.address + array.ctypes.data - self.memory.ctypes.data
        return DeviceView(place, array.shape, array.strides, type)


class Slab:
    """Memory of a machine's first worker: room for arrays, scratch, and flags."""

    def __init__(self, machine: CudaMachine, nbytes: int = 1 << 26, scratch_bytes: int = 1 << 26) -> None:
        self.machine = machine
        self._start = machine.allocate(0, nbytes)
        self._nbytes = nbytes
        self._scratch = machine.allocate(0, scratch_bytes)
        self._scratch_bytes = scratch_bytes
        self._flags = machine.allocate(0, MOST_FLAGS * FLAG_BYTES)

    def workspace(self) -> DeviceWorkspace:
        return DeviceWorkspace(self._scratch, self._flags)

    def fits(self, workspace: DeviceWorkspace) -> bool:
        return workspace.used_bytes <= self._scratch_bytes and workspace.flag_count <= MOST_FLAGS

    def placed(self, memories: Iterable[Array]) -> list[Moved]:
        """Places for arrays, one behind the other, from the slab's start; nothing is copied yet."""
        found, at = [], self._start
        for memory in memories:
            at += (memory.ctypes.data - at) % ALIGNMENT_BYTES  # as misaligned as it is on the host
            found.append(Moved(memory, at))
            at += memory.nbytes + ALIGNMENT_BYTES
        assert at <= self._start + self._nbytes, "the slab is too small"
        return found

    def run(self, commands: Sequence[Command], given: Sequence[Moved], results: Sequence[Moved]) -> list[int]:
        """Copy what is given and what the results hold before; run; copy the results back. The flags."""
        for moved in (*given, *results):
            if moved.memory.size:
                self.machine.write(0, moved.address, _bytes(moved.memory))
        self.machine.write(0, self._flags, np.zeros(MOST_FLAGS * FLAG_BYTES, np.uint8))
        for command in commands:
            self.machine.issue(0, command)
        self.machine.synchronize()
        for moved in results:
            if moved.memory.size:
                _bytes(moved.memory)[...] = self.machine.read(0, moved.address, moved.memory.nbytes)
        flags: list[int] = self.machine.read(0, self._flags, MOST_FLAGS * FLAG_BYTES).view(np.int32).tolist()
        return flags


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
