"""The few operations on files that checkpoints are written with, so that tests can make each of them fail."""

from __future__ import annotations

import os
from pathlib import Path


class Files:
    """The file system. What `write` wrote is safe after `sync`, and a `rename` after `sync_folder`."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a new file, or write an existing one anew."""
        path.write_bytes(data)

    def sync(self, path: Path) -> None:
        """Wait until the file's contents are on the disk."""
        _sync(path, os.O_RDWR)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name at once, in place of the file that had it."""
        os.replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the folder's names are on the disk."""
        _sync(folder, os.O_RDONLY)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
