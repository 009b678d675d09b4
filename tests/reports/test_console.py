"""Colours and widths, as the environment has them."""

from __future__ import annotations

import re
import threading

import pytest
from rich.table import Table
from rich.text import Text

from tofu.reports.console import PLAIN_WIDTH, on_terminal, waiting, wide_console


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def _printed(capsys: pytest.CaptureFixture[str]) -> str:
    wide_console().print(Text("loss", "red"), Table("a column", expand=True))
    return capsys.readouterr().out


def _width(printed: str) -> int:
    """The characters of the longest line that show."""
    return max(len(line) for line in re.sub(r"\x1b\[[\d;]*m", "", printed).splitlines())


def test_pipes_have_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in _printed(capsys)


def test_colours_can_be_forced_and_nobody_watches_for_all_that(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in _printed(capsys)
    assert not on_terminal(wide_console())


def test_no_color_is_stronger(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in _printed(capsys)


@pytest.mark.parametrize("forced", ["", "1"])
def test_tables_in_pipes_are_wide_unless_columns_says_otherwise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, forced: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)
    monkeypatch.setenv("NO_COLOR", "1")
    assert _width(_printed(capsys)) == PLAIN_WIDTH
    monkeypatch.setenv("COLUMNS", "60")
    assert _width(_printed(capsys)) == 60


def test_what_is_waited_for_is_said_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("comparing"), waiting("nothing", quiet=True):
        pass
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "comparing\n")


def test_a_terminal_shows_what_is_waited_for_without_a_thread(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one, no calls would be made in forks."""
    monkeypatch.setattr("tofu.reports.console.on_terminal", lambda console: True)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    threads = threading.active_count()
    with waiting("comparing"):
        assert threading.active_count() == threads
        assert "comparing" in capsys.readouterr().err
