"""A clock that goes back changes no figure and stops nothing: durations are of clocks that never do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from click.testing import Result


def test_training_while_the_clock_goes_back(
    tofu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = count()
    monkeypatch.setattr(time, "time", lambda: 1e9 - 3600.0 * next(hours))
    monkeypatch.setattr(time, "time_ns", lambda: 10**18 - 3600 * 10**9 * next(hours))
    log = tmp_path / "run.jsonl"
    arguments = ("--epochs", "2", "--checkpoint", str(tmp_path / "run"), "--log", str(log))
    done = tofu("train", "mlp", "--workers", "2", *arguments)
    assert done.exit_code == 0, done.output
    events = [json.loads(line) for line in log.read_text().splitlines()]
    seconds = [event["seconds"] for event in events if "seconds" in event]
    rates = [event["samples_per_second"] for event in events if "samples_per_second" in event]
    assert seconds
    assert rates
    assert all(0 < each < 600 for each in seconds)
    assert all(each > 0 for each in rates)
