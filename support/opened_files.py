"""Open the files that users name: regular files only, and no more of them than expected.

A pipe would wait for a writer, a device such as /dev/zero never ends, and a small packed file can expand to
more than memory holds. Every reader of files that users name opens them here. All mistakes are OSErrors with
a reason in `strerror`.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

EXPANDED_FREELY = 1 << 30
"""Packed contents of this many bytes are always expanded."""

MOST_EXPANDED = 64
"""Larger contents may have at most this number of bytes for each byte in the file."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes. Never waits. Raises OSError for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a name of a file: {error}", repr(path)) from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file but a pipe, socket or device", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises OSError."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return data


def check_expansion(packed: int, expanded: int, name: str) -> None:
    """Raise OSError if packed bytes would expand to more than a file of data does."""
    if expanded > max(EXPANDED_FREELY, packed * MOST_EXPANDED):
        reason = f"{packed:,} bytes would expand to {expanded:,}; unpack it first if that is right"
        raise OSError(errno.EFBIG, reason, name)
