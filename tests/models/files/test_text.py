"""Texts, by characters and words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tofu.errors import DataError
from tofu.models.files import Reading, read

Refuse = Callable[..., str]


def _text(folder: Path, content: str | bytes) -> Path:
    path = folder / "tale.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_characters_predict_the_next(tmp_path: Path) -> None:
    found = read(_text(tmp_path, "abcd" * 10), Reading(steps=4, hold_out=0.25))
    assert found.names == ("<unknown>", "a", "b", "c", "d")
    assert found.split.train_data.tolist() == [[1, 2, 3, 4]] * 7
    assert found.split.train_label.tolist() == [[2, 3, 4, 1]] * 7
    assert len(found.split.test_data) == 2
    assert found.sequence
    assert found.classes == 5


def test_the_end_is_held_out_and_its_own_characters_are_unknown(tmp_path: Path) -> None:
    found = read(_text(tmp_path, "ab" * 20 + "zzzzz"), Reading(steps=4))
    assert found.names == ("<unknown>", "a", "b")
    assert found.split.test_data.tolist() == [[0, 0, 0, 0]]


def test_words_marks_and_line_ends(tmp_path: Path) -> None:
    found = read(_text(tmp_path, "Ein Tag, ein Tag.\n" * 8), Reading(steps=3, level="word", hold_out=0))
    assert found.names == ("<unknown>", "\n", ",", ".", "Ein", "Tag", "ein")
    assert found.split.train_data[0].tolist() == [4, 5, 2]


def test_the_most_frequent_have_classes(tmp_path: Path) -> None:
    found = read(_text(tmp_path, "aaabbc" * 10), Reading(steps=3, vocabulary=2, hold_out=0))
    assert found.names == ("<unknown>", "a", "b")
    assert found.split.train_data[:2].tolist() == [[1, 1, 1], [2, 2, 0]]


def test_a_mark_of_byte_order_is_no_character(tmp_path: Path) -> None:
    path = _text(tmp_path, b"\xef\xbb\xbf" + b"ab" * 50)
    assert read(path).names == ("<unknown>", "a", "b")


def test_characters_beyond_the_basic_plane(tmp_path: Path) -> None:
    assert read(_text(tmp_path, "é😀" * 50)).names == ("<unknown>", "é", "😀")


def test_not_utf_8(tmp_path: Path, refused: Refuse) -> None:
    said = refused(_text(tmp_path, b"one\ntwo\ncaf\xe9 " * 20))
    assert f"{tmp_path / 'tale.txt'}, byte 11 in line 3: expected UTF-8, found byte e9; convert it" in said


def test_utf_16(tmp_path: Path, refused: Refuse) -> None:
    assert "expected UTF-8, found UTF-16; convert it, for example with iconv -f UTF-16" in refused(
        _text(tmp_path, ("ab" * 50).encode("utf-16"))
    )


def test_too_short(tmp_path: Path, refused: Refuse) -> None:
    said = refused(_text(tmp_path, "hello"))
    assert "expected at least 65 characters, two windows of 32, found 5" in said
    assert "--steps" in said


def test_an_unknown_level(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--level must be character or word, not 'sentence'"):
        read(_text(tmp_path, "ab" * 50), Reading(level="sentence"))
