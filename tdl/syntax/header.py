"""Read a description's parameters, their defaults, and number literals: the constant parts of the text."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeGuard

from ..ast import AttributeParameter, Span, TensorParameter
from ..functions import CONSTANTS
from ..source import Diagnostic

if TYPE_CHECKING:
    from lark import Token, Tree

    ParseTree = Tree[Token]

MAX_INTEGER = 2**63 - 1
MAX_DIGITS = 64

_WORD = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)

Scalar = int | float
Default = Scalar | str | tuple[Scalar, ...] | None


def span_of(part: ParseTree | Token) -> Span:
    """Return where a part of the parse tree lies in the text."""
    from lark import Token

    if isinstance(part, Token):
        return Span(part.start_pos or 0, part.end_pos or 0)
    return Span(0, 0) if part.meta.empty else Span(part.meta.start_pos, part.meta.end_pos)


def is_tree(part: ParseTree | Token) -> TypeGuard[ParseTree]:
    """Return whether a part of the parse tree is a rule, not a token."""
    return hasattr(part, "data")


def name_of(tree: ParseTree) -> str:
    """Return the name of the description of a `description` tree."""
    return str(next(child for child in tree.children if not is_tree(child)))


def read_number(token: ParseTree | Token, diagnostics: list[Diagnostic]) -> Scalar:
    """Return a literal's value; 0 after a complaint."""
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
            Diagnostic(f"'{text}' is not a number", span, "put underscores between two digits only")
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
    """Return tensors before the `*`, attributes after it."""
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
                    f"'{name}' has a default but is among the tensors",
                    span,
                    f"attributes are keyword-only, write: *, {name}=...",
                )
            )
        tensors.append(TensorParameter(name, span))
    if marker is not None and not attributes:
        diagnostics.append(Diagnostic("no attribute follows '*'", marker, "delete it or name an attribute"))
    return tuple(tensors), tuple(attributes)


def read_word(token: ParseTree | Token, diagnostics: list[Diagnostic]) -> str:
    """Return the word in a string; an empty one after a complaint."""
    text = str(token).lstrip("rRuU")
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    word = text[quotes:-quotes]
    if not _WORD.fullmatch(word):
        hint = "use letters, digits, '_' and '-'"
        diagnostics.append(Diagnostic(f"{str(token)[:MAX_DIGITS]} is not a word", span_of(token), hint))
        return ""
    return word


def _read_default(name: str, part: ParseTree | Token, diagnostics: list[Diagnostic]) -> Default:
    assert is_tree(part)
    if part.data == "string":
        return read_word(part.children[0], diagnostics)
    if part.data == "constants":
        return tuple(_read_constant(name, constant, diagnostics) for constant in part.children)
    return _read_constant(name, part, diagnostics)


def _read_constant(name: str, outer: ParseTree | Token, diagnostics: list[Diagnostic]) -> Scalar:
    """Return a constant's value; 0 after a complaint.

    `True` is a truth value, `-True` and `(True)` are numbers.
    """
    sign, part = 1, outer
    assert is_tree(part)
    while part.data in ("negative", "constant_group"):
        sign = -sign if part.data == "negative" else sign
        part = part.children[0]
        assert is_tree(part)
    token = part.children[0]
    if part.data == "number":
        return sign * read_number(token, diagnostics)
    if token in ("True", "False") and part is outer:
        return bool(token == "True")
    if token in CONSTANTS:
        return sign * CONSTANTS[str(token)]
    message = f"'{token}' cannot be the default of '{name}'"
    hint = "a default is a number, True, False, a string or a tuple of numbers"
    diagnostics.append(Diagnostic(message, span_of(part), hint))
    return 0
