"""Nothing that a terminal would obey is printed, and everything else is printed as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.support.terminal_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fc1_weight", "fc1_weight"),
        ("größe \u4e2d", "größe \u4e2d"),
        ("a\tb\n", "a\tb\n"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\u202egnp", r"\u202egnp"),
        ("\x9b", r"\x9b"),
        ("\r\x00", r"\r\x00"),
        ("\ud800", r"\ud800"),
        ("\u2028", r"\u2028"),
    ],
)
def test_controls_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_nothing_else_changes(text: str) -> None:
    shown = printable(text)
    assert all(each.isprintable() or each in "\n\t" or each.isspace() or ord(each) > 127 for each in shown)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text
