"""Loops are kept on disk for later processes until something changes that they are made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

OUTER = """
from typing import NamedTuple
from tofu.support.compiled import compiled
from . import places
from .inner import STEP, stepped

class Pair(NamedTuple):
    {fields}

@compiled
def outer(pair: Pair) -> int:
    return 1000 * pair.first + 100 * places.PLACE + stepped(STEP)
"""
INNER = """
from tofu.support.compiled import compiled
STEP = {step}

@compiled
def stepped(value: int) -> int:
    return value + {more}
"""
CALL = """
from tofu.support import compiled
compiled.PATIENCE_SECONDS = -1
from loops.outer import Pair, outer
print(outer(Pair(first=1, second=2)), sum(outer.machine_code().stats.cache_hits.values()))
"""
FIRST = {"fields": "first: int; second: int", "place": 3, "step": 40, "more": 5}


def written(folder: Path, *, fields: str, place: int, step: int, more: int) -> None:
    (folder / "loops").mkdir(exist_ok=True)
    texts = {
        "__init__": "",
        "outer": OUTER.format(fields=fields),
        "inner": INNER.format(step=step, more=more),
        "places": f"PLACE = {place}",
    }
    for name, text in texts.items():
        (folder / "loops" / f"{name}.py").write_text(text, encoding="utf-8")


def called(folder: Path, cache: Path) -> tuple[int, bool]:
    """Return what the outer loop gives in a new process, and whether it was on the disk."""
    found = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",  # Python's own files may be stale within a second
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    result, hits = found.stdout.split()
    return int(result), hits != "0"


def test_loops_are_kept_until_something_changes_that_they_are_made_from(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    written(tmp_path, **FIRST)
    assert called(tmp_path, cache) == (1345, False)
    assert called(tmp_path, cache) == (1345, True)
    for change, result in (
        ({"more": 6}, 1346),
        ({"step": 50}, 1355),
        ({"place": 4}, 1445),
        ({"fields": "second: int; first: int"}, 1345),
    ):
        written(tmp_path, **{**FIRST, **change})
        assert called(tmp_path, cache) == (result, False)


@pytest.mark.parametrize("others_may_write", [False, True])
def test_without_an_own_folder_loops_are_compiled_in_each_process(
    tmp_path: Path, others_may_write: bool
) -> None:
    written(tmp_path, **FIRST)
    cache = tmp_path / "cache"
    if others_may_write:
        cache.mkdir()
        cache.chmod(0o777)
    else:
        cache.write_text("", encoding="utf-8")
    for _ in range(2):
        assert called(tmp_path, cache) == (1345, False)
