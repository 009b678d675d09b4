"""Texts of protocol buffers are read with their lines, and others are refused."""

from __future__ import annotations

import pytest

from tofu.errors import PlanError
from tofu.support.protobuf_text import ProtobufMessage, parse_protobuf_text


def test_fields_have_lines() -> None:
    text = """
    # a comment
    name: "a" 'b'; count: -3
    on: true, kind: RING
    inner { name: "c" }
    inner: < list: [1, 2] >
    """
    assert parse_protobuf_text(text) == ProtobufMessage(
        "the file",
        1,
        (
            ("name", 3, "ab"),
            ("count", 3, -3),
            ("on", 4, True),
            ("kind", 4, "RING"),
            ("inner", 5, ProtobufMessage("inner", 5, (("name", 5, "c"),))),
            ("inner", 6, ProtobufMessage("inner", 6, (("list", 6, 1), ("list", 6, 2)))),
        ),
    )


def test_an_empty_text_has_no_fields() -> None:
    assert parse_protobuf_text("  # nothing\n").fields == ()


def test_kinds_and_repetitions_are_checked() -> None:
    message = parse_protobuf_text("a: 1\na: 2\nb: true")
    message.expect({"a": int, "b": bool}, repeated=("a",))
    assert message.all("a") == [(1, 1), (2, 2)]
    with pytest.raises(PlanError, match="line 2: a stands in line 1 already"):
        message.expect({"a": int, "b": bool})
    with pytest.raises(PlanError, match="line 3: b is True; it must be a whole number"):
        message.expect({"a": int, "b": int}, repeated=("a",))
    with pytest.raises(PlanError, match="line 3: the file has an unknown field 'b'; its fields are a"):
        message.expect({"a": int}, repeated=("a",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a", "line 1: the end of the text"),
        ("a\n{", "line 2: the end of the text"),
        ("a: [1\n,]", "line 2: ']'"),
        ("a: 1 }", "line 1: '}'"),
        ("\n\na: \x00", "line 3: "),
        ("a {" * 17 + "}" * 17, "line 1: a is nested too deeply"),
        ("\na: " + "9" * 19, "line 2: 9+ is not a whole number"),
    ],
)
def test_other_texts_are_refused(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_protobuf_text(text)
