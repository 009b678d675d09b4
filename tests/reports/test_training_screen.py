"""The display of a training run, on a terminal and elsewhere."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from tofu.reports.training import Start
from tofu.reports.training_screen import PLAIN_SECONDS, Screen
from tofu.runtime.progress import Epoch, Progress

START = Start("net [red]x", "on arrays", 2, "cpu", 3, 30, 640, 64, 1000, 4_000_000, False)
SUMMARY = {
    "parameters": 1000,
    "metric": {"accuracy": 0.5},
    "planned_bytes_per_step": 12,
    "fetched_bytes_per_step": 12,
    "peak_bytes_per_worker": 4_000_000,
    "single_device_peak_bytes": 8_000_000,
    "workspace_bytes_per_worker": 1,
    "single_device_workspace_bytes": 2,
    "samples_per_second": 640.0,
    "seconds_per_step": 0.1,
    "simulated_seconds_per_step": None,
}


LINKS = {
    "links": [
        {"from": "a", "to": "a", "planned_bytes": 1000, "sent_bytes": 1000},
        {"from": "a", "to": "b", "planned_bytes": 20, "sent_bytes": 20},
        {"from": "b", "to": "a", "planned_bytes": 3, "sent_bytes": 4},
        {"from": "b", "to": "b", "planned_bytes": 0, "sent_bytes": 0},
    ],
    "checkpoint_writers": 3,
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _step(number: int) -> Progress:
    return Progress((number - 1) // 10, number, 30, {"cross-entropy": 1 / number}, 0.1, 64, 0.1, 12)


def _console(file: io.StringIO) -> Console:
    return Console(file=file, width=120, highlight=False, legacy_windows=False)


def _run(screen: Screen, clock: _Clock, seconds: float, **changes: Any) -> None:
    with screen, screen.preparing():
        pass
    with screen:
        screen.start(START)
        for number in range(1, 21):
            clock.now += seconds
            screen.step(_step(number))
            if number % 10 == 0:
                epoch = number // 10 - 1
                screen.epoch(Epoch(epoch, {"cross-entropy": 0.5}, {"cross-entropy": 0.75}, 1.0), 3)
        screen.summary({**SUMMARY, **changes})


def test_plain_lines_say_where_the_run_stands_now_and_then() -> None:
    file, clock = io.StringIO(), _Clock()
    _run(Screen(_console(file), clock), clock, PLAIN_SECONDS / 4)
    lines = file.getvalue().splitlines()
    assert lines[0] == "net [red]x, on arrays, over 2 workers"
    assert lines[1] == "640 samples to train on, 64 held out; 4.00 MB of memory per worker"
    assert lines[2:4] == [
        "step 4/30: cross-entropy 0.2500, 640 samples/s, 3 s left, 4.00 MB/worker",
        "step 8/30: cross-entropy 0.1250, 640 samples/s, 2 s left, 4.00 MB/worker",
    ]
    assert lines[4] == (
        "epoch 1/3: cross-entropy 0.5000; held out: cross-entropy 0.7500; 1.0 s, 640 samples/s, 2 s left"
    )
    assert [line.split(":")[0] for line in lines[5:8]] == ["step 14/30", "step 18/30", "epoch 2/3"]
    assert "\x1b" not in file.getvalue()
    assert "\r" not in file.getvalue()


def test_a_fast_run_has_a_line_for_every_epoch_alone() -> None:
    file, clock = io.StringIO(), _Clock()
    _run(Screen(_console(file), clock), clock, 0.01)
    assert "step " not in file.getvalue()
    assert file.getvalue().count("epoch ") == 2


def test_a_terminal_has_a_bar_that_is_gone_in_the_end() -> None:
    file, clock = _Terminal(), _Clock()
    _run(Screen(_console(file), clock), clock, 100.0)
    shown = file.getvalue()
    assert "640 samples/s, 1 s left, 4.00 MB/worker" in shown
    assert "20/30" in shown
    assert "step 20/30:" not in shown
    assert "searching for a plan" in shown
    assert "\x1b[2K" in shown


def test_nothing_held_out_is_said_and_left_out_of_the_summary() -> None:
    file, clock = io.StringIO(), _Clock()
    screen = Screen(_console(file), clock)
    with screen:
        screen.start(Start("net", "on arrays", 1, "cpu", 1, 1, 5, 0, 1, 1, False))
        screen.step(_step(1))
        screen.epoch(Epoch(0, {"cross-entropy": 0.5}, {}, 1.0), 1)
        screen.summary({**SUMMARY, "metric": {}})
    shown = file.getvalue()
    assert "over 1 worker\n" in shown
    assert "5 samples to train on, none held out" in shown
    assert "held out:" not in shown
    assert "│ held out" not in shown


def test_simulated_time_stands_next_to_the_measured_one() -> None:
    file = io.StringIO()
    with Screen(_console(file), _Clock()) as screen:
        screen.start(Start("net", "on arrays", 1, "cpu", 1, 1, 5, 0, 1, 1, False))
        screen.step(_step(1))
        screen.epoch(Epoch(0, {"cross-entropy": 0.5}, {}, 1.0), 1)
        screen.summary({**SUMMARY, "metric": {}, "simulated_seconds_per_step": 0.08})
    lines = [line.replace(" ", "") for line in file.getvalue().splitlines()]
    simulated = next(n for n, line in enumerate(lines) if "aniteration,simulated│80.00ms" in line)
    assert "aniteration,measured│100.00ms" in lines[simulated + 1]


def test_processes_report_their_links_and_who_writes() -> None:
    file = io.StringIO()
    Screen(_console(file)).summary({**SUMMARY, **LINKS})
    assert "of these between machines, planned and measured" in file.getvalue()
    assert "23, 24" in file.getvalue()
    assert "1,000, 1,000" in file.getvalue()
    assert "written by 3 processes" in file.getvalue()
