"""Whether kernels in C are asked for: by `--native`, or by the environment of the process.

The environment is inherited by the processes of a run, so all of them compute with the same code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import ExecutionError
from .compiler import required

VARIABLE = "TOFU_NATIVE"
"""The environment variable that asks for kernels in C if it is 1."""


def is_asked(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether kernels in C are asked for. Raises ExecutionError for a value that means nothing."""
    value = environment.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        raise ExecutionError(f"the environment variable {VARIABLE} is {value!r}; set it to 1 or 0")
    return value == "1"


@contextmanager
def asking() -> Iterator[None]:
    """Ask for kernels in C in this process and in those that it starts, until the end of the block.

    Raises ExecutionError if there is no compiler.
    """
    required()
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
