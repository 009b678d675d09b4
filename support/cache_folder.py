"""The folder in which programs of this user keep what can be made again."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_VARIABLE = "XDG_CACHE_HOME"


def cache_folder(name: str) -> Path:
    """Return the folder of one kind of things, which may not exist yet."""
    given = os.environ.get(FOLDER_VARIABLE, "")
    base = Path(given) if given else Path.home() / ".cache"
    return base / "tofu" / name
