"""Run a function of a test module with compiled loops and in plain Python, which must give the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CALL = """
import sys
from importlib import import_module
how, module, function, *arguments = sys.argv[1:]
if how == "plain":
    sys.modules["numba"] = None
from tofu.support import compiled
compiled.PATIENCE_SECONDS = -1
result = getattr(import_module(module), function)(*map(int, arguments))
print(compiled.COMPILED, result)
"""


def same_in_plain_python(function: Callable[..., str], *arguments: int) -> str:
    """Return what a function of a module returns, in a new process, with compiled loops and without."""
    pytest.importorskip("numba")
    called = function.__module__, function.__name__, *map(str, arguments)
    compiled, plain = (
        subprocess.run(
            [sys.executable, "-c", CALL, how, *called],
            cwd=Path(__file__).parents[1],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for how in ("compiled", "plain")
    )
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[1] == plain[1]
    return compiled[1]
