"""The pace of a run."""

from __future__ import annotations

import pytest

from tofu.reports.pace import LATEST, Pace
from tofu.reports.units import format_duration
from tofu.runtime.progress import Progress


def _step(number: int, seconds: float) -> Progress:
    return Progress(0, number, 100, {"cross-entropy": 1.0}, 0.1, 10, seconds, 0)


def test_nothing_is_known_before_the_first_iteration() -> None:
    assert (Pace().samples_per_second, Pace().seconds_left) == (0.0, 0.0)


def test_samples_and_time_left() -> None:
    pace = Pace()
    for number in (1, 2):
        pace.add(_step(number, 0.5))
    assert pace.samples_per_second == 20
    assert pace.seconds_left == 49


def test_only_the_latest_count() -> None:
    pace = Pace()
    pace.add(_step(1, 1000.0))
    for number in range(LATEST):
        pace.add(_step(2 + number, 1.0))
    assert pace.samples_per_second == 10


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (63, "1:03"), (3723, "1:02:03")]
)
def test_times_as_people_read_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
