"""Source text and the diagnostics that point into it.

Every complaint about a description is a `Diagnostic`: a message, the span it is about and what to do.
One run collects all of them and raises one `SourceError`, which shows each with its line and a caret.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import DescriptionError
from .ast import Span

LINE_END = re.compile(r"\r\n|\r|\n")
MAX_SHOWN = 20
MAX_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A fault, its place, and the remedy."""

    message: str
    span: Span
    hint: str = ""


class SourceError(DescriptionError):
    """A description error that keeps the places it is about."""

    def __init__(self, source: SourceText, diagnostics: Iterable[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = tuple(sorted(set(diagnostics), key=lambda found: (found.span, found.message)))
        shown = [source.render(diagnostic) for diagnostic in self.diagnostics[:MAX_SHOWN]]
        if len(self.diagnostics) > MAX_SHOWN:
            shown.append(f"and {len(self.diagnostics) - MAX_SHOWN} more errors")
        super().__init__("\n".join(shown))

    def saying(self, text: str) -> DescriptionError:
        return DescriptionError(text)


@dataclass(frozen=True)
class SourceText:
    """A text, its origin, and the number of its first line there."""

    text: str = field(repr=False)
    origin: str = "<string>"
    first_line: int = 1

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset of the first character of every line."""
        return (0, *(match.end() for match in LINE_END.finditer(self.text)))

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character offset, both counted from 1."""
        line = bisect_right(self.line_starts, offset) - 1
        return line + self.first_line, offset - self.line_starts[line] + 1

    def render(self, diagnostic: Diagnostic) -> str:
        """`origin:line:column: message`, the line, carets under the span's part of it, and the hint."""
        start, end = diagnostic.span
        line, column = self.position(start)
        line_start = self.line_starts[line - self.first_line]
        match = LINE_END.search(self.text, line_start)
        line_end = match.start() if match else len(self.text)
        text, carets = _excerpt(self.text[line_start:line_end], start - line_start, end - line_start)
        lines = [f"{self.origin}:{line}:{column}: {diagnostic.message}", f"    {text}", f"    {carets}"]
        if diagnostic.hint:
            lines.append(f"    hint: {diagnostic.hint}")
        return "\n".join(lines)


def _excerpt(line: str, start: int, end: int) -> tuple[str, str]:
    """Return one line and the carets below it; a long line is cut to a window around the span."""
    end = min(max(end, start + 1), len(line) + 1)
    first = max(0, min(start - MAX_WIDTH // 2, len(line) - MAX_WIDTH))
    last = min(len(line), first + MAX_WIDTH)
    before, after = "..." * (first > 0), "..." * (last < len(line))
    text = before + "".join(map(visible, line[first:last])) + after
    indent = len(before) + sum(map(_width, line[first:start]))
    carets = sum(map(_width, line[start : min(end, last)])) + (end > len(line))
    return text.rstrip(), " " * indent + "^" * max(1, carets)


def visible(character: str) -> str:
    """Return a character as a terminal can show it: controls and marks that reorder text as escapes."""
    if character == "\t":
        return "    "
    return character if character.isprintable() else ascii(character)[1:-1]


def _width(character: str) -> int:
    """Return terminal columns that `visible(character)` takes."""
    shown = visible(character)
    if len(shown) > 1:
        return len(shown)
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
