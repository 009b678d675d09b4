"""Check before the work that the files of its results can be written."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import TofuError


def check_writable(path: Path) -> None:
    """Raise TofuError if no file can be written at `path`; nothing is made."""
    folder = path.parent
    if path.is_dir():
        raise TofuError(f"cannot write {str(path)!r}: it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise TofuError(f"cannot write {str(path)!r}: it is not a file")
    if not folder.is_dir():
        raise TofuError(f"cannot write {str(path)!r}: there is no folder {str(folder)!r}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TofuError(f"cannot write {str(path)!r}: the folder {str(folder)!r} is not writable")


def check_folder(path: Path) -> None:
    """Raise TofuError if `path` cannot be a folder that files are written to; nothing is made."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        raise TofuError(f"cannot write to {str(path)!r}: {str(there)!r} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise TofuError(f"cannot write to {str(path)!r}: the folder {str(there)!r} is not writable")
