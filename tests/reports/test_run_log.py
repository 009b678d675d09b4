"""A log's lines are whole, whatever happens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tofu.errors import DataError
from tofu.reports.run_log import BLOCK, RunLog
from tofu.reports.training import Start, json_line
from tofu.runtime.progress import Epoch, Progress

START = Start("net", "on arrays", 2, "cpu", 3, 30, 640, 64, 1000, 4_000_000, False)
STEP = Progress(0, 1, 30, {"cross-entropy": 0.5}, 0.1, 64, 0.25, 12)


def _events(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    assert text.endswith("\n")
    return [json.loads(line)["event"] for line in text.splitlines()]


def test_every_event_is_a_line_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunLog(path, resume=False) as log:
        log.start(START)
        assert _events(path) == ["start"]
        log.step(STEP)
        assert _events(path) == ["start", "step"]
        log.epoch(Epoch(0, {"cross-entropy": 0.5}, {}, 1.0), 3)
        log.summary({"final_loss": 0.5})
    assert _events(path) == ["start", "step", "epoch", "summary"]
    step = json.loads(path.read_text("utf-8").splitlines()[1])
    assert step["samples_per_second"] == 256
    assert step["seconds_left"] == 29 * 0.25
    assert (step["epoch"], step["step"], step["steps"]) == (1, 1, 30)


def test_a_log_that_is_there_is_another_run_s(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"event": "start"}\n')
    with pytest.raises(DataError, match="holds lines already; name another file, remove it, or --resume"):
        RunLog(path, resume=False)
    assert path.read_text() == '{"event": "start"}\n'


def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").touch()
    RunLog(tmp_path / "run.jsonl", resume=False).__exit__(None, None, None)


@pytest.mark.parametrize("torn", ["", '{"event": "st', "x" * (2 * BLOCK)])
def test_a_run_that_goes_on_adds_to_whole_lines(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"event": "start"}\n{"event": "step"}\n' + torn)
    with RunLog(path, resume=True) as log:
        log.summary({})
    assert _events(path) == ["start", "step", "summary"]


def test_a_log_that_is_one_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"event": "st')
    with RunLog(path, resume=True) as log:
        log.summary({})
    assert _events(path) == ["summary"]


def test_two_runs_do_not_share_a_log(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with (
        RunLog(path, resume=False),
        pytest.raises(DataError, match="another run writes the log"),
    ):
        RunLog(path, resume=True)


def test_a_file_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(handle: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", without_locks)
    with pytest.raises(DataError, match=r"jsonl cannot be locked.*: Operation not supported; name a file of"):
        RunLog(tmp_path / "run.jsonl", resume=False)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    whole = os.write
    with RunLog(path, resume=False) as log:
        log.start(START)
        monkeypatch.setattr("tofu.reports.run_log.os.write", lambda handle, line: whole(handle, line[:20]))
        with pytest.raises(DataError, match="cannot be written: the disk is full"):
            log.step(STEP)
    assert _events(path) == ["start"]


def test_a_disk_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, line: bytes) -> int:
        raise OSError(28, "No space left on device")

    with RunLog(tmp_path / "run.jsonl", resume=False) as log:
        monkeypatch.setattr("tofu.reports.run_log.os.write", full)
        with pytest.raises(DataError, match="cannot be written: No space left on device"):
            log.start(START)


def test_a_number_that_is_none_is_null() -> None:
    facts = {"loss": float("nan"), "rates": [float("inf"), 1.0], "metrics": {"perplexity": -float("inf")}}
    assert json.loads(json_line(facts)) == {
        "loss": None,
        "rates": [None, 1.0],
        "metrics": {"perplexity": None},
    }
