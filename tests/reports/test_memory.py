"""The drawing of live bytes."""

from __future__ import annotations

import numpy as np

from tofu.reports.memory import COLUMNS, ROWS, chart


def test_peak_has_full_height_and_nothing_is_blank() -> None:
    lines = chart(np.array([0, 10, 80, 40]))
    assert len(lines) == ROWS
    assert [line[len(" 80 B") :] for line in lines] == [
        "  █",
        "  █",
        "  █",
        "  █",
        "  ██",
        "  ██",
        "  ██",
        " ███",
    ]
    assert lines[0].startswith("80 B")
    assert lines[-1].startswith("   0")


def test_a_short_peak_is_seen_in_a_long_iteration() -> None:
    live = np.ones(10_000, np.int64)
    live[5_000] = 100
    top = chart(live)[0]
    assert top.count("█") == 1
    assert len(top) <= len("100 B ") + COLUMNS


def test_nothing_live() -> None:
    assert chart(np.zeros(3, np.int64)) == []
