"""Errors that point into a description's text."""

from __future__ import annotations

from ..errors import DescriptionError
from ..tdl.ast import Description, Span
from ..tdl.source import Diagnostic, SourceError, SourceText


def shown(description: Description, span: Span, what: str) -> str:
    """Return the text with a caret under a place, to end a message with; empty if there is no text."""
    if not description.source:
        return ""
    return "\n" + SourceText(description.source, description.name).render(Diagnostic(what, span))


def error_at(description: Description, span: Span, message: str, hint: str = "") -> DescriptionError:
    """Return an error with line and caret, or only the operator's name if the description has no text."""
    if not description.source:
        return DescriptionError(f"{description.name}: {message}" + (f"; {hint}" if hint else ""))
    return SourceError(SourceText(description.source, description.name), [Diagnostic(message, span, hint)])
