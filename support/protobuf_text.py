"""Read protocol buffers in text form: names, values and messages, with their lines.

    node_config { var_name: "w"  AllReduceSynchronizer { group: 1 } }

What fields mean is not decided here. `protobuf_text.lark` is the grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from .checked_argument import require

if TYPE_CHECKING:
    from lark import Lark

DEPTH_LIMIT = 16
"""The deepest nesting of messages."""

Scalar = str | int | bool
"""A value: a string, a whole number, or a word. `true` and `false` are booleans."""


@dataclass(frozen=True, slots=True)
class ProtobufMessage:
    """The fields of a message."""

    name: str
    """The field that holds it."""

    line: int
    """The line at which it begins."""

    fields: tuple[tuple[str, int, Scalar | ProtobufMessage], ...]
    """The name, the line and the value of every field; one that is repeated has several."""

    @property
    def place(self) -> str:
        """Return how errors call it."""
        return f"line {self.line}: {self.name}"

    def expect(self, kinds: Mapping[str, type], repeated: Sequence[str] = ()) -> None:
        """Raise PlanError for an unknown field, one of another kind, or a single one that is given twice."""
        seen: dict[str, int] = {}
        for name, line, value in self.fields:
            if name not in kinds:
                raise PlanError(
                    f"line {line}: {self.name} has an unknown field {name!r}; its fields are "
                    f"{', '.join(kinds)}"
                )
            if not isinstance(value, kinds[name]) or (kinds[name] is int and isinstance(value, bool)):
                raise PlanError(f"line {line}: {name} is {_shown(value)}; it must be {_KINDS[kinds[name]]}")
            if name in seen and name not in repeated:
                raise PlanError(f"line {line}: {name} stands in line {seen[name]} already; leave out one")
            seen[name] = line

    def all(self, name: str) -> list[tuple[int, Scalar | ProtobufMessage]]:
        """Return the lines and values of a field."""
        return [(line, value) for each, line, value in self.fields if each == name]


_KINDS = {str: "text", int: "a whole number", bool: "true or false", ProtobufMessage: "a message in braces"}


def parse_protobuf_text(text: str) -> ProtobufMessage:
    """Return the fields of a text. Raises PlanError naming the line of what is wrong."""
    require(isinstance(text, str), text, "text", "a text", PlanError)
    from lark import UnexpectedInput

    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        ends = token is not None and token.type == "$END"
        line = text.count("\n") + 1 if ends else error.line
        found = repr(str(token or text[error.pos_in_stream or 0 :][:1])[:40])
        raise PlanError(
            f"line {line}: {'the end of the text' if ends else found} is not expected there; write fields "
            "such as `name: value` and `name { ... }`"
        ) from None
    return _message(tree, "the file", 1, 0)


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    from lark import Lark

    text = files(__package__).joinpath("protobuf_text.lark").read_text("utf-8")
    return Lark(text, parser="lalr", start="message", maybe_placeholders=False)


def _message(tree: Any, name: str, line: int, depth: int) -> ProtobufMessage:
    """Return the message of a tree, which is at most `DEPTH_LIMIT` deep."""
    if depth > DEPTH_LIMIT:
        raise PlanError(f"line {line}: {name} is nested too deeply; there are {DEPTH_LIMIT} levels at most")
    fields: list[tuple[str, int, Scalar | ProtobufMessage]] = []
    for field in tree.children:
        key, value = field.children
        if value.data == "block":
            fields.append((str(key), key.line, _message(value.children[0], str(key), key.line, depth + 1)))
            continue
        for each in value.children if value.data == "list" else [value]:
            fields.append((str(key), key.line, _scalar(each, key.line)))
    return ProtobufMessage(name, line, tuple(fields))


def _scalar(tree: Any, line: int) -> Scalar:
    texts = [str(token) for token in tree.children]
    if tree.data == "text":
        joined = "".join(text[1:-1] for text in texts)
        if "\\" in joined:
            raise PlanError(f"line {line}: {joined[:40]!r} has a backslash; write the characters themselves")
        return joined
    if tree.data == "number":
        if "." in texts[0] or len(texts[0]) > 18:
            raise PlanError(f"line {line}: {texts[0][:40]} is not a whole number of up to 18 digits")
        return int(texts[0])
    return {"true": True, "false": False}.get(texts[0], texts[0])


def _shown(value: object) -> str:
    return "a message" if isinstance(value, ProtobufMessage) else repr(value)[:60]
