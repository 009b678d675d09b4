"""Pickles that would run something, or claim to be large, are read as far as they are data and no further."""

from __future__ import annotations

import builtins
import contextlib
import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.models.files.pickles import read_pickle

HARMLESS = pickle.dumps({"data": np.zeros((2, 3), np.uint8), "labels": [0, 1]}, 2)


class _Runs:
    def __init__(self, function: object, *arguments: object) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self._call


def test_values_and_arrays_come_back() -> None:
    found = read_pickle(pickle.dumps({"a": np.arange(6, dtype="u1").reshape(2, 3), "b": [1, b"x", "y"]}))
    assert isinstance(found, dict)
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["b"] == [1, b"x", "y"]


def test_text_of_python_2_is_bytes() -> None:
    assert read_pickle(b"(dp0\nS'labels'\np1\n(lp2\nI3\nas.") == {b"labels": [3]}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    raw = pickle.dumps({"data": _Runs(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(pickle.UnpicklingError, match=r"it asks for .*system'"):
        read_pickle(raw)
    assert not mark.exists()


@pytest.mark.parametrize(
    "wanted", [builtins.eval, builtins.getattr, pickle.loads, np.load, np.frombuffer, OrderedDict, object]
)
def test_no_other_name_is_known(wanted: object) -> None:
    with pytest.raises(pickle.UnpicklingError, match="which data does not need"):
        read_pickle(pickle.dumps({"data": _Runs(wanted)}))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, np.float32),
        np.array([object()], dtype=object),
        np.array([b"a"]),
        np.zeros(2, [("a", "u1")]),
        np.asfortranarray(np.zeros((2, 3), np.uint8)),
    ],
)
def test_arrays_of_anything_but_bytes_are_refused(array: np.ndarray) -> None:
    with pytest.raises(pickle.UnpicklingError, match="it "):
        read_pickle(pickle.dumps({"data": array}, 2))


def test_stand_ins_cannot_be_changed() -> None:
    program = b"cnumpy\nndarray\n}(S'__call__'\nI1\nub."
    with pytest.raises(pickle.UnpicklingError, match="it sets the state of an object"):
        read_pickle(program)


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02r" + struct.pack("<I", 2**31 - 1) + b".",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"abc.",
        b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.",
        b"",
        b"\x80",
        b"\x80\xff.",
        b"0.",
        b"\x80\x02Q.",
        b"\x82\x01.",
    ],
)
def test_malformed_programs_end_in_one_error(program: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="it "):
        read_pickle(program)


def test_one_text_does_not_become_many() -> None:
    text = pickle.dumps("x" * 10_000, 0)[:-1]
    again = b"c_codecs\nencode\n(g0\nVlatin1\ntRa"
    program = b"(lp1\n" + text + b"0" + again * 50 + b"."
    with pytest.raises(pickle.UnpicklingError, match="it makes more bytes than it has"):
        read_pickle(program)


def test_deep_nesting_is_data() -> None:
    found = read_pickle(b"]" * 100_000 + b"a" * 99_999 + b".")
    assert isinstance(found, list)
    assert len(found) == 1


@given(st.integers(0, len(HARMLESS) - 1), st.integers(0, 255))
def test_one_changed_byte_is_data_or_an_error(place: int, value: int) -> None:
    changed = HARMLESS[:place] + bytes([value]) + HARMLESS[place + 1 :]
    with contextlib.suppress(pickle.UnpicklingError):
        read_pickle(changed)


@given(st.binary(max_size=60))
def test_any_bytes_are_data_or_an_error(raw: bytes) -> None:
    with contextlib.suppress(pickle.UnpicklingError):
        read_pickle(raw)
