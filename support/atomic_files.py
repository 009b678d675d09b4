"""Write files that are either complete or absent, by a few operations that tests can make fail."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


class Files:
    """The file system. Written data is safe after `sync`, and a new name is safe after `sync_folder`."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a new file, or replace the contents of an existing one."""
        path.write_bytes(data)

    def sync(self, path: Path) -> None:
        """Wait until the file's contents are on the disk."""
        _sync(path, os.O_RDWR)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file in one step, replacing any file that has the new name."""
        os.replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the folder's names are on the disk."""
        _sync(folder, os.O_RDONLY)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def write_whole(self, path: Path, temporary: Path, data: bytes) -> None:
        """Write a file under a temporary name, then rename it; afterwards it is on the disk.

        If that fails, the temporary file is removed, because it may fill the disk.
        """
        try:
            self.write(temporary, data)
            self.sync(temporary)
            self.rename(temporary, path)
            self.sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise


def write_whole(path: Path, data: bytes) -> None:
    """Write a whole file, or leave the previous one unchanged.

    Raises OSError, also for an impossible name, and for a pipe or a device, which is not replaced.
    """
    try:
        replaced = path.stat().st_mode
    except FileNotFoundError:
        replaced = stat.S_IFREG
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a name of a file: {error}", repr(str(path))) from None
    if stat.S_ISDIR(replaced):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(replaced):
        raise OSError(errno.EINVAL, "not a regular file but a pipe, socket or device", str(path))
    Files().write_whole(path, path.with_name(f".{path.name}.{os.getpid()}.temporary"), data)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
