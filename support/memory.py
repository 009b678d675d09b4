"""Refuse what does not fit the memory of this machine, as an error that says what was wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ExecutionError


def physical_bytes() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(nbytes: int, wanted: str) -> None:
    """Raise ExecutionError if something in words takes more bytes than the machine has."""
    if nbytes > (there := physical_bytes()):
        raise ExecutionError(
            f"{wanted} would take {nbytes:,} bytes, and this machine has {there:,} of memory"
        )


@contextmanager
def allocating(wanted: str) -> Iterator[None]:
    """Raise ExecutionError in place of MemoryError; `wanted` says in words what is allocated."""
    try:
        yield
    except MemoryError as error:
        reason = f": {error}" if str(error) else ""
        raise ExecutionError(f"there is no memory for {wanted}{reason}; use smaller shapes") from error
