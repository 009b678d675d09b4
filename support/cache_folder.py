"""The folder of a user for code that can be made again.

Code is only loaded from a folder to which nobody else can write.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import ExecutionError

FOLDER_VARIABLE = "XDG_CACHE_HOME"
"""The environment variable that names the folder of all programs."""


def cache_folder(name: str) -> Path:
    """Return the folder of one kind of code, which may not exist yet."""
    given = os.environ.get(FOLDER_VARIABLE, "")
    base = Path(given) if given else Path.home() / ".cache"
    return base / "tofu" / name


def own_folder(folder: Path) -> Path:
    """Return a folder that only this user can write to, with its real path; it is made if it is missing.

    Raises ExecutionError if another user could write to it, or rename it or a folder that holds it.
    """
    try:
        for place in reversed((folder, *folder.parents)):
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
        if os.name == "posix":  # others have no owners and modes of this kind
            for place in (real, *real.parents):
                _check_own(place, place.stat(), real)
    except (OSError, RuntimeError) as error:
        raise ExecutionError(
            f"code cannot be kept in {folder}: {error}; name a folder of your own in {FOLDER_VARIABLE}"
        ) from error
    return real


def _check_own(place: Path, found: os.stat_result, folder: Path) -> None:
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    kept = found.st_mode & stat.S_ISVTX and place != folder  # others cannot rename what is in it
    owner = found.st_uid in ((os.getuid(),) if place == folder else (os.getuid(), 0))
    if not owner or (others and not kept):
        raise ExecutionError(
            f"code is not loaded from {folder}, because other users can change {place} "
            f"(owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):o}); name a folder of your own in "
            f"{FOLDER_VARIABLE}, or take the rights away: chmod go-w {place}"
        )
