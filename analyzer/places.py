"""Errors that point into a description's text."""

from __future__ import annotations

from ..errors import DescriptionError
from ..tdl.ast import Description, Span
from ..tdl.source import Diagnostic, Source, SourceError


def error_at(description: Description, span: Span, message: str, hint: str = "") -> DescriptionError:
    """An error with line and caret, or only the operator's name where the description has no text."""
    if not description.source:
        return DescriptionError(f"{description.name}: {message}" + (f"; {hint}" if hint else ""))
    return SourceError(Source(description.source, description.name), [Diagnostic(message, span, hint)])
