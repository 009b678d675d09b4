"""Check a text before it is parsed, and keep only the line ends that end statements.

Everything here is a flat scan: however long or deep a hostile text is, it costs one pass.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..ast import Span
from ..source import Diagnostic, SourceText

if TYPE_CHECKING:
    from lark import Token

MAX_BYTES = 64 * 1024
MAX_TOKENS = 16_384
MAX_NESTING = 64

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_STRING = (
    r'"""(?:[^\\]|\\.)*?"""|' r"'''(?:[^\\]|\\.)*?'''|" r'"(?:[^"\\\r\n]|\\.)*"|' r"'(?:[^'\\\r\n]|\\.)*'"
)
_LANDMARK = re.compile(rf"#[^\r\n]*|{_STRING}|[()\[\]]|[^\x00-\x7f]", re.DOTALL)
_TOKEN = re.compile(rf"#[^\r\n]*|{_STRING}|\w+|[^\w\s]", re.DOTALL)
_CLOSES = {")": "(", "]": "["}


def check_text(source: SourceText, *, bounded: bool = True) -> list[Diagnostic]:
    """Return complaints about size, characters and brackets, found before any parsing."""
    text = source.text
    if not bounded:
        return _check_characters(text) or _check_brackets(text)
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        message = f"a description of {len(text):,} characters is too long"
        return [Diagnostic(message, Span(0, 1), f"the limit is {MAX_BYTES // 1024} KiB")]
    if not text.strip():
        hint = "write def name(tensors): return lambda ...: ..."
        return [Diagnostic("the description is empty", Span(0, 0), hint)]
    return _check_characters(text) or _check_brackets(text) or _check_tokens(text)


def words(text: str) -> int:
    """Return the number of words and symbols of a text."""
    return sum(1 for _ in _TOKEN.finditer(text))


def _check_tokens(text: str) -> list[Diagnostic]:
    """Limit the time that parsing takes, whatever the text: a chain of 20,000 additions is refused here."""
    count = words(text)
    if count <= MAX_TOKENS:
        return []
    message = f"the description is too long or too deeply nested: {count:,} words and symbols"
    return [Diagnostic(message, Span(0, 1), f"the limit is {MAX_TOKENS:,}")]


def _check_characters(text: str) -> list[Diagnostic]:
    found = [
        Diagnostic(f"{_describe(match[0])} cannot appear in a description", Span(*match.span()), "delete it")
        for match in _INVISIBLE.finditer(text)
    ]
    if found:
        return found
    for match in _LANDMARK.finditer(text):
        if match[0].isascii() or len(match[0]) > 1:
            continue
        plain = unicodedata.normalize("NFKC", match[0])
        hint = f"write {plain!r}" if plain.isascii() else "outside comments, write ASCII characters only"
        found.append(Diagnostic(f"unexpected character {_describe(match[0])}", Span(*match.span()), hint))
    return found


def _describe(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def _check_brackets(text: str) -> list[Diagnostic]:
    """Unbalanced brackets, or brackets nested beyond the limit."""
    open_at: list[int] = []
    for match in _LANDMARK.finditer(text):
        bracket, at = match[0], match.start()
        if bracket in ("(", "["):
            open_at.append(at)
            if len(open_at) > MAX_NESTING:
                return [nested_too_deeply(Span(at, at + 1), MAX_NESTING)]
        elif bracket in _CLOSES:
            if not open_at:
                return [
                    Diagnostic(
                        f"'{bracket}' closes nothing", Span(at, at + 1), "delete it, or open one before it"
                    )
                ]
            opener = open_at.pop()
            if text[opener] != _CLOSES[bracket]:
                return [
                    Diagnostic(
                        f"'{bracket}' cannot close '{text[opener]}' opened in column "
                        f"{SourceText(text).position(opener)[1]}",
                        Span(at, at + 1),
                        "brackets close in the order they were opened",
                    )
                ]
    return [Diagnostic(f"'{text[at]}' is never closed", Span(at, at + 1), "close it") for at in open_at]


def nested_too_deeply(span: Span, limit: int) -> Diagnostic:
    """Return the complaint about nesting, for brackets and for expression trees."""
    return Diagnostic(
        "the description is nested too deeply",
        span,
        f"the limit is {limit} levels; make a part of it a stage: part = lambda ...: ...",
    )


class StatementEnds:
    """Lark's hook between lexer and parser: keeps only the line ends that separate statements.

    Dropped are those inside brackets, blank lines, and those after `:` or `;`, so that a lambda's body may
    start on the next line as in the paper's Figure 3.
    """

    always_accept = ("_NEWLINE",)
    _SILENT_AFTER = frozenset({None, "COLON", "SEMICOLON", "_NEWLINE"})

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens without the line ends that mean nothing."""
        depth = 0
        previous: str | None = None
        for token in stream:
            if token.type in ("LPAR", "LSQB"):
                depth += 1
            elif token.type in ("RPAR", "RSQB"):
                depth -= 1
            elif token.type == "_NEWLINE" and (depth or previous in self._SILENT_AFTER):
                continue
            previous = token.type
            yield token
