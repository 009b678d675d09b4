"""Read a checked description from text. No part of the text is ever executed.

Text is scanned for size, characters and brackets, parsed by lark's LALR(1) parser with the grammar in
`grammar.lark`, built into a syntax tree and checked. Each phase reports everything that it finds. A later
phase runs only on text that the earlier ones accept.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ...support.gc_pause import gc_paused
from ..advice import CHARACTERS, COMPARISONS, syntax_hint
from ..ast import Description, Expression, Lambda, Span
from ..checks.checker import check
from ..printer import format
from ..source import Diagnostic, SourceError, SourceText
from ..traverse import levels
from .builder import TreeBuilder
from .calls import NO_CALLABLES, Callee
from .header import is_tree, name_of, span_of
from .layout import MAX_NESTING, MAX_TOKENS, StatementEnds, check_text, nested_too_deeply, words

if TYPE_CHECKING:
    from lark import Lark, Token, Tree, UnexpectedToken

    ParseTree = Tree[Token]

MAX_DEPTH = 2 * MAX_NESTING
"""Levels of the syntax tree: what brackets enclose, and the operators of a chain such as `a + b + c`."""


def parse(
    text: str,
    origin: str = "<string>",
    first_line: int = 1,
    *,
    bounded: bool = True,
    callables: Mapping[str, Callee] = NO_CALLABLES,
) -> Description:
    """Return the description that a text holds, checked; of several the last one.

    `origin` and `first_line` say where the text came from, for messages. Text that the library writes, such
    as an unrolled network, may be of any length: it is not `bounded`. A description may call those above it
    and the `callables`, by name. Raises `DescriptionError` with every complaint: line, column, a caret under
    the place, what was expected and what was found.
    """
    return parse_all(text, origin, first_line, bounded=bounded, callables=callables)[-1]


@gc_paused()
def parse_all(
    text: str,
    origin: str = "<string>",
    first_line: int = 1,
    *,
    bounded: bool = True,
    callables: Mapping[str, Callee] = NO_CALLABLES,
) -> tuple[Description, ...]:
    """Return all descriptions that a text holds, one or more, in its order. Takes what `parse` takes."""
    source = SourceText(text, origin, first_line)
    found: dict[str, Description] = {}
    above: dict[str, Callee] = {}
    known = ChainMap(above, callables)  # type: ignore[arg-type]  # only the first one is written to
    complaints: list[Diagnostic] = []
    written_out = 0
    broken: set[str] = set()  # a description that may call a wrong one cannot be written out
    for tree in _parse_tree(source, "descriptions", bounded=bounded).children:
        assert is_tree(tree)
        if broken and not broken.isdisjoint(_tokens(tree)):
            broken.add(name_of(tree))
            continue
        description, wrong = _checked(source, tree, known, bounded=bounded)
        if description.name in found:
            hint = "rename one of them"
            wrong = [
                *wrong,
                Diagnostic(f"two descriptions are called '{description.name}'", span_of(tree), hint),
            ]
        if bounded and not wrong:
            written_out += words(format(description))
            if written_out > MAX_TOKENS:
                complaints.append(_too_much(written_out, tree))
                break
        complaints += wrong
        if wrong:
            broken.add(description.name)
        found[description.name] = above[description.name] = description
    if complaints:
        raise SourceError(source, complaints)
    return tuple(found.values())


def _too_much(written_out: int, tree: ParseTree) -> Diagnostic:
    """Return a complaint about descriptions that, calls written out, are too long together."""
    message = (
        f"with calls written out, all descriptions up to this one have {written_out:,} words and symbols"
    )
    name = next(child for child in tree.children if not is_tree(child))
    hint = f"the limit is {MAX_TOKENS:,}; call fewer descriptions that call others, or use several texts"
    return Diagnostic(message, span_of(name), hint)


def _tokens(tree: ParseTree) -> Iterator[str]:
    """Yield every token of a tree."""
    for part in tree.iter_subtrees():
        yield from (str(child) for child in part.children if not is_tree(child))


def _checked(
    source: SourceText, tree: ParseTree, callables: Mapping[str, Callee], *, bounded: bool
) -> tuple[Description, list[Diagnostic]]:
    """Return one description and all complaints about it."""
    builder = TreeBuilder(source.text, callables)
    description = builder.description(tree)
    bodies = [reducer.body for reducer in builder.reducers.values()]
    bodies += [constant.value for constant in builder.constants.named.values()]
    for value in (*bodies, *(stage.value for stage in description.stages), *description.outputs):
        _limit_depth(source, value)
    complaints = [
        *builder.diagnostics,
        *check(
            description,
            builder.opaques,
            builder.reducers,
            builder.constants,
            complete=not builder.diagnostics,
        ),
    ]
    return description, complaints or (_check_canonical(description) if bounded else [])


def parse_expression(text: str, origin: str = "<expression>") -> Expression:
    """Return one expression, where every name stands for a variable. Names are not checked."""
    source = SourceText(text, origin)
    builder = TreeBuilder(text)
    expression = builder.expression(_parse_tree(source, "test"))
    _limit_depth(source, expression)
    if builder.diagnostics:
        raise SourceError(source, builder.diagnostics)
    return expression


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    from lark import Lark

    return Lark(
        files(__package__).joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="basic",
        start=["descriptions", "test"],
        postlex=StatementEnds(),
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _parse_tree(source: SourceText, start: str, *, bounded: bool = True) -> ParseTree:
    from lark import UnexpectedCharacters, UnexpectedToken

    complaints = check_text(source, bounded=bounded)
    if complaints:
        raise SourceError(source, complaints)
    try:
        return _grammar().parse(source.text, start=start)
    except UnexpectedToken as error:
        raise SourceError(source, [_unexpected_token(source.text, error)]) from None
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise SourceError(source, [_unexpected_character(source.text, at)]) from None


def _limit_depth(source: SourceText, node: Lambda | Expression) -> None:
    for inner, level in levels(node):
        if level > MAX_DEPTH and not isinstance(inner, Description):
            raise SourceError(source, [nested_too_deeply(inner.span, MAX_DEPTH)])


def _check_canonical(description: Description) -> list[Diagnostic]:
    """Return complaints if the canonical text, which spells sugar out, would itself exceed a limit."""
    return [
        Diagnostic(f"in canonical text, {found.message}", description.outputs[0].span, found.hint)
        for found in check_text(SourceText(format(description)))
    ]


_EXPRESSION_STARTS = frozenset({"NAME", "NUMBER", "LPAR", "MINUS", "PLUS"})
_OPERATORS = frozenset(
    ("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "POWER", "FLOOR_DIVIDE", "AND", "OR", "IF", "DOT", "LPAR")
)
_FOUND = {"_NEWLINE": "the end of the line", "STRING": "a string"}
_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a docstring",
    "_NEWLINE": "the end of the line",
    "$END": "the end of the description",
}


def _unexpected_token(text: str, error: UnexpectedToken) -> Diagnostic:
    token = error.token
    accepted = error.accepts or error.expected
    if token.type == "$END":
        end = len(text.rstrip())
        return Diagnostic(f"expected {_expected(accepted)}, found the end of the text", Span(end, end))
    span = Span(token.start_pos or 0, token.end_pos or 0)
    found = _FOUND.get(token.type) or f"'{token}'"
    if token.type == "_NEWLINE":
        span = Span(span.start, span.start)
    return Diagnostic(
        f"expected {_expected(accepted)}, found {found}", span, syntax_hint(text, token, accepted)
    )


def _expected(accepted: set[str]) -> str:
    """Return terminals as words; those that start, or continue, an expression share one."""
    left = set(accepted)
    words = []
    if left >= _EXPRESSION_STARTS:
        words.append("an expression")
        left -= _EXPRESSION_STARTS | {"NOT", "STRING"}
    elif left >= _OPERATORS:
        words.append("an operator")
        left -= _OPERATORS | COMPARISONS | {"LSQB"}
    patterns = {terminal.name: terminal.pattern.value for terminal in _grammar().terminals}
    left -= {"SEMICOLON"} if "_NEWLINE" in left else {"AT"}
    left -= {"DEF"} if "$END" in left else set()
    words += sorted(_WORDS.get(name) or f"'{patterns[name]}'" for name in left)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _unexpected_character(text: str, at: int) -> Diagnostic:
    character = text[at]
    if character in "\"'":
        return Diagnostic("a string is never closed", Span(at, at + 1), "close it with the same quotes")
    hint = CHARACTERS.get(character, "delete it")
    return Diagnostic(f"unexpected character '{character}'", Span(at, at + 1), hint)
