"""The version of the kernels, so that measured times are not used for other kernels."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOMS = {
    "numpy": ("kernels", "derive", "stages", "library"),
    "cuda": ("cuda", "derive", "stages", "library"),
}
"""The folders that decide which code runs on each engine, and how fast."""


@cache
def kernels_version(engine: str) -> str:
    """Return a digest of the source of all kernels of an engine and of what derives them."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(path for room in ROOMS[engine] for path in (here / room).rglob("*.py")):
        digest.update(path.relative_to(here).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
