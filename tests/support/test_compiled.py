"""Loops are compiled once that pays, and give the same before and after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.support import compiled as support
from tofu.support.compiled import Loop

numba = pytest.importorskip("numba")


def doubled(values: Any) -> int:
    total = 0
    for value in values:
        total += added(value, value)
    return total


@Loop
def added(one: Any, other: Any) -> Any:
    return one + other


def is_compiled(loop: Loop[..., Any]) -> bool:
    return loop._machine_code is not None


def test_short_loops_run_as_they_are() -> None:
    loop = Loop(doubled)
    assert loop(np.arange(10)) == 90
    assert not is_compiled(loop)


def test_loops_over_many_numbers_are_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "SHORT", 9)
    loop = Loop(doubled)
    assert loop(np.arange(9)) == 72
    assert not is_compiled(loop)
    assert loop(np.arange(10)) == 90
    assert is_compiled(loop)


def test_loops_that_have_run_for_a_while_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(doubled)
    loop(np.arange(10))
    monkeypatch.setattr(support, "PATIENCE_SECONDS", 0)
    assert loop(np.arange(10)) == 90
    assert is_compiled(loop)


def test_what_a_plain_loop_calls_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that loops share would otherwise be copied both ways."""
    inner = Loop(added.source)
    inner.machine_code()
    seen: list[type] = []

    @Loop
    def outer() -> None:
        seen.append(type(inner(np.int32(1), 2.5)))

    monkeypatch.setattr(inner, "_machine_code", None)
    outer()
    monkeypatch.undo()
    monkeypatch.setattr(inner, "_machine_code", lambda *_: pytest.fail("a plain loop called a compiled one"))
    outer()
    assert len(seen) == 2


def test_numbers_are_counted_in_tuples_as_well() -> None:
    assert support._count((np.zeros((2, 3)), (np.zeros(4), (np.zeros(1), 7)), 5)) == 11


def test_loops_stay_plain_if_numba_refuses_to_be_imported() -> None:
    script = """
import sys
from tofu.support import compiled
sys.modules["numba"] = None  # importing it raises ImportError, as a version of NumPy that is too new does
compiled.PATIENCE_SECONDS = -1
assert compiled.COMPILED
assert compiled.compiler() is None
assert compiled.zeros(3).tolist() == [0, 0, 0]
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True)


def test_short_loops_do_not_import_numba() -> None:
    script = """
import sys
import numpy as np
from tofu.support.compiled import zeros
assert zeros(3).tolist() == [0, 0, 0]
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True)
