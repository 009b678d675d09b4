"""Campaigns of hostile input run, repeat any trial from its number, and go on where they ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.hostile.totals import added

PARTS = """
import json
from benchmarks.hostile.files import files
from benchmarks.hostile.nesting import nesting
from benchmarks.hostile.plans import plans
from benchmarks.hostile.texts import texts

def result(part, first, end):
    return part(range(first, end), 1, 60.0).result()

results = {
    "texts": result(texts, 0, 30), "texts before": result(texts, 0, 12), "texts after": result(texts, 12, 30),
    "nesting": result(nesting, 0, 2), "plans": result(plans, 0, 3), "files": result(files, 0, 2),
}
print(json.dumps(results))
"""


def run(*arguments: object) -> Any:
    """Run a process of its own, since campaigns watch the interpreter, and return what it prints."""
    command = [sys.executable, *map(str, arguments)]
    folder = Path(__file__).parents[2]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_every_part_runs_and_trials_follow_from_their_numbers() -> None:
    found = run("-c", PARTS)
    for name, result in found.items():
        assert result["failures"] == [], name
    kinds = ("written", "tokens", "bytes", "nested")
    assert sum(found["texts"].get(kind, 0) for kind in kinds) == 30
    both = added(found["texts before"], found["texts after"])
    for name, value in found["texts"].items():
        if isinstance(value, int):
            assert both.get(name, 0) == value, name
    assert found["nesting"]["pairs"] == 2
    assert sum(value for name, value in found["files"].items() if name.endswith("plan.json")) == 2


def test_a_campaign_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    for count in (2, 5):
        run("-m", "benchmarks.hostile", "kills", "--count", count, "--limit", 60, "--save", path, "--resume")
    found = json.loads(path.read_text(encoding="utf-8"))["kills"]
    assert (found["count"], found["kills"], found["failures"]) == (5, 5, [])


def test_runs_are_added_up() -> None:
    one = {"seed": 1, "count": 3, "hangs": 0, "slowest_seconds": {"a": 0.3}, "slowest": {"a": "x"}}
    other = {"seed": 1, "count": 2, "torn": 1, "slowest_seconds": {"a": 0.2, "b": 0.1}}
    other |= {"slowest": {"a": "y", "b": "z"}, "failures": [{"why": "torn"}]}
    assert added(one, other) == {
        "seed": 1,
        "count": 5,
        "hangs": 0,
        "torn": 1,
        "slowest_seconds": {"a": 0.3, "b": 0.1},
        "slowest": {"a": "x", "b": "z"},
        "failures": [{"why": "torn"}],
    }
