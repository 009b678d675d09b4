"""A limit on the size of files, which fails as a full disk does: part of a write, then none."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Let this process write no file beyond a number of bytes (Python ignores the signal of the limit)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
