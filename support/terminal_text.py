"""Escape the characters in a text that would make a terminal do something, such as move or hide text.

Names come from files of others. Everything that commands print goes through here, and so do their errors.
"""

from __future__ import annotations

import unicodedata

_FORBIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""The categories of controls, formats (bidi marks among them), surrogates, and separators of lines."""


def printable(text: str) -> str:
    """Return a text with controls as escapes, such as `\\\\x1b` for the one that begins terminal commands.

    Newlines and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _FORBIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
