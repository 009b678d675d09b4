"""Positions and rendering of diagnostics."""

from __future__ import annotations

import pytest

from tofu.errors import DescriptionError
from tofu.tdl import Diagnostic, SourceError, SourceText
from tofu.tdl.ast import Span


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("", 0, (1, 1)),
        ("ab\ncd", 0, (1, 1)),
        ("ab\ncd", 2, (1, 3)),
        ("ab\ncd", 3, (2, 1)),
        ("ab\r\ncd", 4, (2, 1)),
        ("ab\rcd", 4, (2, 2)),
        ("ab\n", 3, (2, 1)),
        ("a\u2028b", 2, (1, 3)),
    ],
)
def test_positions(text: str, offset: int, position: tuple[int, int]) -> None:
    assert SourceText(text).position(offset) == position


def test_first_line_shifts_lines() -> None:
    assert SourceText("ab\ncd", first_line=40).position(4) == (41, 2)


def test_a_span_over_several_lines_is_underlined_on_its_first() -> None:
    rendered = SourceText("one two\nthree", "f.tdl").render(Diagnostic("wrong", Span(4, 13), "right"))
    assert rendered == "f.tdl:1:5: wrong\n    one two\n        ^^^^\n    hint: right"


def test_the_end_of_the_text_has_a_caret_too() -> None:
    assert (
        SourceText("one", "f.tdl").render(Diagnostic("more", Span(3, 3)))
        == "f.tdl:1:4: more\n    one\n       ^"
    )


def test_combining_marks_take_no_column() -> None:
    _, line, carets = SourceText("e\u0301 x").render(Diagnostic("wrong", Span(3, 4))).split("\n")
    assert (line, carets) == ("    e\u0301 x", "      ^")


def test_an_error_shows_its_diagnostics_in_the_order_of_the_text_and_once() -> None:
    late, early = Diagnostic("late", Span(2, 3)), Diagnostic("early", Span(0, 1))
    error = SourceError(SourceText("a b"), [late, early, late])
    assert isinstance(error, DescriptionError)
    assert error.diagnostics == (early, late)
    assert str(error) == "<string>:1:1: early\n    a b\n    ^\n<string>:1:3: late\n    a b\n      ^"
