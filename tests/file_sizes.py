"""A limit on the size of files, which fails as a full disk does: part of a write, then none."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Let this process write no file beyond a number of bytes (Python ignores the signal of the limit).

    No bytecode is written meanwhile: Python would keep the part of it that fits, and fail to read it later.
    """
    writes_none = sys.dont_write_bytecode
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes_none
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
