"""Literals are values, and everything else is one error."""

from __future__ import annotations

import pytest

from tofu.support.literals import MAX_CHARACTERS, literal


@pytest.mark.parametrize("value", [3, -2.5, (3, 3), "relu", None, True, (None, 2), 2 * 10**50])
def test_a_literal_is_its_value(value: object) -> None:
    assert literal(repr(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "relu", "(3,", "print()", "1 .__class__", "2 ** 9", "\0", "\ud800", "{[]: 1}", "{{}}"),
        *("(" * 400, "-" * 900 + "1", "9" * (MAX_CHARACTERS + 1)),
    ],
)
def test_other_text_is_one_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"literal|malformed|surrogates|null"):
        literal(text)
