"""Consoles escape controls in texts and keep their own."""

from __future__ import annotations

import pytest
from rich.table import Table
from rich.text import Text

from tofu.reports.console import wide_console

HOSTILE = "\x1b]0;owned\x07name\u202e"


def test_names_in_lines_and_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("tensor")
    table.add_row(HOSTILE)
    for each in (HOSTILE, Text(HOSTILE), table):
        wide_console().print(each)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert printed.count(r"\x1b]0;owned") == 3


def test_colours_stay(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    wide_console().print(f"[bold]{HOSTILE}[/]")
    printed = capsys.readouterr().out
    assert "\x1b[1m" in printed
    assert "\x1b]" not in printed
