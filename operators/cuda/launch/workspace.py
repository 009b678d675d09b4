"""Scratch and flags for the commands of one worker, as addresses."""

from __future__ import annotations

from ...kernels.workspace import aligned

FLAG_BYTES = 4

NOWHERE = 1 << 12
"""The address of memory that is not there yet: aligned, and not zero."""


class DeviceWorkspace:
    """Scratch from `address` on, shared by a lane's commands; from `flags` on what kernels find wrong.

    Nothing is allocated: `used_bytes` and `flag_count` tell how much the commands that were made since
    `restart`, and all that were made, take. Addresses are valid only in memory of at least that size.
    """

    def __init__(self, address: int = NOWHERE, flags: int = NOWHERE) -> None:
        self._address = address
        self._flags = flags
        self.used_bytes = 0
        self.flag_count = 0

    def restart(self, address: int) -> None:
        """Begin another instruction, whose scratch is from `address` on and undefined."""
        self._address = address
        self.used_bytes = 0

    def take(self, nbytes: int) -> int:
        """Return the address of scratch for the instruction being prepared."""
        start = self.used_bytes
        self.used_bytes += aligned(nbytes)
        return self._address + start

    def flags(self, count: int) -> int:
        """Return the address of `count` 32-bit flags that are zero before the first iteration."""
        start = self.flag_count
        self.flag_count += count
        return self._flags + start * FLAG_BYTES
