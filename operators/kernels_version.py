"""The version of the kernels, so that measured times are not used for other kernels."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

NUMPY_ROOMS = ("kernels", "derive", "emit", "native", "stages", "library")
ROOMS = {
    "numpy": NUMPY_ROOMS,
    "processes": NUMPY_ROOMS,
    "cuda": ("cuda", "derive", "emit", "stages", "library"),
}
"""The folders that decide which code runs on each engine, and how fast."""

KINDS = ("*.py", "*.h")
"""The files of a folder that are source."""


@cache
def kernels_version(engine: str) -> str:
    """Return a digest of the source of all kernels of an engine and of what derives them."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    source = (path for room in ROOMS[engine] for kind in KINDS for path in (here / room).rglob(kind))
    for path in sorted(source):
        digest.update(path.relative_to(here).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
