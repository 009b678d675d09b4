"""Consoles escape controls in texts and keep their own."""

from __future__ import annotations

import pytest
from rich.table import Table
from rich.text import Text

from tofu.reports.console import wide_console
from tofu.reports.tables import table

HOSTILE = "\x1b]0;owned\x07name\u202e"


def test_names_in_lines_and_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Table("tensor")
    shown.add_row(HOSTILE)
    for each in (HOSTILE, Text(HOSTILE), shown):
        wide_console().print(each)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert printed.count(r"\x1b]0;owned") == 3


def test_colours_stay(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    wide_console().print(Text(HOSTILE, "bold"))
    printed = capsys.readouterr().out
    assert "\x1b[1m" in printed
    assert "\x1b]" not in printed


def test_brackets_and_colons_in_names_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[red]fc[/x]:x:"
    found = table("tensor", title=name)
    found.add_row(name)
    for each in (name, found):
        wide_console().print(each)
    assert capsys.readouterr().out.count(name) == 3
