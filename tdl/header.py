"""Parameters of a description, their defaults, and number literals: the constant parts of the text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeGuard

from .ast import AttributeParameter, Span, TensorParameter
from .functions import CONSTANTS
from .source import Diagnostic

if TYPE_CHECKING:
    from lark import Token, Tree

    ParseTree = Tree[Token]

MAX_INTEGER = 2**63 - 1
MAX_DIGITS = 64

Scalar = int | float
Default = Scalar | tuple[Scalar, ...] | None


def span_of(part: ParseTree | Token) -> Span:
    """Where a part of the parse tree lies in the text."""
    from lark import Token

    if isinstance(part, Token):
        return Span(part.start_pos or 0, part.end_pos or 0)
    return Span(0, 0) if part.meta.empty else Span(part.meta.start_pos, part.meta.end_pos)


def is_tree(part: ParseTree | Token) -> TypeGuard[ParseTree]:
    """Whether a part of the parse tree is a rule, not a token."""
    return hasattr(part, "data")


def read_number(token: ParseTree | Token, diagnostics: list[Diagnostic]) -> Scalar:
    """A literal's value; 0 after a complaint."""
    text, span = str(token), span_of(token)
    if len(text) > MAX_DIGITS:
        diagnostics.append(
            Diagnostic(
                f"a number of {len(text):,} characters is too long", span, f"the limit is {MAX_DIGITS}"
            )
        )
        return 0
    if "__" in text or text.endswith("_") or "_." in text or "_e" in text.lower():
        diagnostics.append(
            Diagnostic(f"'{text}' is not a number", span, "underscores stand between two digits")
        )
        return 0
    value: Scalar
    if text.replace("_", "").isdigit():
        if text[0] == "0" and text.strip("0_"):
            diagnostics.append(Diagnostic(f"'{text}' has leading zeros", span, f"write {text.lstrip('0_')}"))
            return 0
        value = int(text)
        if value > MAX_INTEGER:
            diagnostics.append(
                Diagnostic(f"{text} does not fit 64 bits", span, f"the largest is {MAX_INTEGER}")
            )
            return 0
        return value
    value = float(text)
    if math.isinf(value):
        diagnostics.append(Diagnostic(f"{text} is too large for a float", span, "write inf for infinity"))
        return 0
    return value


def read_parameters(
    tree: ParseTree, diagnostics: list[Diagnostic]
) -> tuple[tuple[TensorParameter, ...], tuple[AttributeParameter, ...]]:
    """Tensors before the `*`, attributes after it."""
    tensors: list[TensorParameter] = []
    attributes: list[AttributeParameter] = []
    marker: Span | None = None
    for part in filter(is_tree, tree.children):
        span = span_of(part)
        if part.data == "keyword_marker":
            if marker is not None:
                diagnostics.append(Diagnostic("a second '*' among the parameters", span, "one '*' is enough"))
            marker = span
            continue
        name = str(part.children[0])
        default: Default = None
        if part.data == "default_parameter":
            default = _read_default(name, part.children[1], diagnostics)
        if marker is not None:
            attributes.append(AttributeParameter(name, default, span))
            continue
        if part.data == "default_parameter":
            diagnostics.append(
                Diagnostic(
                    f"'{name}' has a default but stands among the tensors",
                    span,
                    f"attributes are keyword-only, write: *, {name}=...",
                )
            )
        tensors.append(TensorParameter(name, span))
    if marker is not None and not attributes:
        diagnostics.append(Diagnostic("no attribute follows '*'", marker, "delete it or name an attribute"))
    return tuple(tensors), tuple(attributes)


def _read_default(name: str, part: ParseTree | Token, diagnostics: list[Diagnostic]) -> Default:
    assert is_tree(part)
    if part.data == "constants":
        return tuple(_read_constants(name, part.children, diagnostics))
    return next(_read_constants(name, [part], diagnostics))


def _read_constants(
    name: str, parts: Iterable[ParseTree | Token], diagnostics: list[Diagnostic]
) -> Iterator[Scalar]:
    for part in parts:
        assert is_tree(part)
        sign = 1
        outer = part
        while part.data in ("negative", "constant_group"):
            sign = -sign if part.data == "negative" else sign
            inner = part.children[0]
            assert is_tree(inner)
            part = inner
        token = part.children[0]
        if part.data == "number":
            yield sign * read_number(token, diagnostics)
        elif token in CONSTANTS:
            value = CONSTANTS[str(token)]
            yield token == "True" if token in ("True", "False") and part is outer else sign * value
        else:
            diagnostics.append(
                Diagnostic(
                    f"'{token}' cannot be the default of '{name}'",
                    span_of(part),
                    "a default is a number, True, False or a tuple of numbers",
                )
            )
            yield 0
