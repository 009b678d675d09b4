"""Files of users are read strictly."""

from __future__ import annotations

import pytest

from tofu.errors import PlanError
from tofu.support.strict_documents import YAML_LIMIT_BYTES, parse_yaml, read_document


def test_yaml_gives_plain_values():
    text = b"a: [1, 2.5, null]\nb: {c: yes, d: 'text'}\n"
    assert parse_yaml(text) == {"a": [1, 2.5, None], "b": {"c": True, "d": "text"}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a: 1\na: 2\n", "'a' occurs twice"),
        (b"a: {b: 1, b: 2}\n", "'b' occurs twice"),
        (b"a: .nan\n", "not a number"),
        (b"a: -.inf\n", "not a number"),
        (b"a: &x [1]\nb: *x\n", "line 2 has an alias"),
        (b"<<: {a: 1}\n", "'<<'|YAML"),
        (b"1: 2\n", "the key 1 is not a string"),
        (b"a: !!python/object/apply:os.system [echo]\n", "not valid YAML"),
        (b"a: [1\n", "not valid YAML"),
        (b"\xff\xfe\xff", "YAML"),
        (b"[" * 20_000, "nested too deeply|YAML"),
    ],
)
def test_broken_yaml_is_refused(text, says):
    with pytest.raises(PlanError, match=says):
        parse_yaml(text)


@pytest.mark.parametrize("name", ["own.json", "own.yaml"])
def test_a_byte_order_mark_is_passed_over(name, tmp_path):
    path = tmp_path / name
    path.write_text('{"a": 1}', encoding="utf-8-sig")
    assert read_document(path, "layout file") == {"a": 1}


def test_files_name_themselves(tmp_path):
    large, broken = tmp_path / "large.yaml", tmp_path / "broken.json"
    large.write_bytes(b"#" * (YAML_LIMIT_BYTES + 1))
    broken.write_bytes(b'{"a": NaN}')
    for path, says in (
        (large, "larger than 65536 bytes"),
        (broken, "NaN"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(PlanError, match=says) as raised:
            read_document(path, "layout file")
        assert f"layout file {str(path)!r}" in str(raised.value)
