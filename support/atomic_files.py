"""Files that are complete or not there, by few operations, so that tests can make each of them fail."""

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

    def write_whole(self, path: Path, temporary: Path, data: bytes) -> None:
        """Write a file under another name in the same folder first: once this returns it is safe."""
        self.write(temporary, data)
        self.sync(temporary)
        self.rename(temporary, path)
        self.sync_folder(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole, or leave the one before as it is. Raises OSError."""
    files = Files()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.temporary")
    try:
        files.write_whole(path, temporary, data)
    finally:
        files.remove(temporary)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
