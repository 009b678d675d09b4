"""Entries of documents know their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tofu.errors import PlanError
from tofu.support.placed_documents import read_placed
from tofu.support.strict_documents import YAML_LIMIT_BYTES, expect_keys


def test_entries_are_where_their_keys_are(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "first: 1\nnamed:\n  'a b':\n    - x\n    - {deep: 2,\n       low: 3}\n", encoding="utf-8"
    )
    value, place = read_placed(path, "file")
    assert value == {"first": 1, "named": {"a b": ["x", {"deep": 2, "low": 3}]}}
    inner = place.key("named").item("a b")
    assert str(place) == "line 1: the file"
    assert str(place.key("named")) == "line 2: named"
    assert str(inner) == "line 3: named['a b']"
    assert str(inner.item(1).key("low")) == "line 6: named['a b'][1].low"
    assert str(inner.item(1).at("low")) == "line 6: named['a b'][1]"
    assert str(inner.key("missing")) == "line 3: named['a b'].missing"


def test_an_unknown_key_is_named_with_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("good: 1\n\nbad: 2\n", encoding="utf-8")
    value, place = read_placed(path, "file")
    assert isinstance(value, dict)
    with pytest.raises(PlanError, match="line 3: the file has an unknown key 'bad'; its keys are good"):
        expect_keys(value, ("good",), place)


@pytest.mark.parametrize("text", ["", "5", "[1]"])
def test_any_document_has_a_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    assert str(read_placed(path, "file")[1]) == "line 1: the file"


def test_json_has_lines_unless_it_is_large(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n"a": 1}', encoding="utf-8")
    assert str(read_placed(path, "file")[1].key("a")) == "line 2: a"
    path.write_text('{\n"a": 1}' + " " * YAML_LIMIT_BYTES, encoding="utf-8")
    assert str(read_placed(path, "file")[1].key("a")) == "a"
