"""`.npz` files, whole and malformed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.models.files import read

Refuse = Callable[..., str]

DATA = np.arange(10 * 3 * 4 * 5, dtype=np.float32).reshape(10, 3, 4, 5)
LABEL = np.arange(10) % 4


def _saved(folder: Path, **arrays: Any) -> Path:
    path = folder / "arrays.npz"
    np.savez_compressed(path, **arrays)
    return path


def test_a_tenth_is_held_out_whatever_the_order(tmp_path: Path) -> None:
    found = read(_saved(tmp_path, data=DATA, label=LABEL))
    assert found.split.train_data.shape == (9, 3, 4, 5)
    assert found.split.test_data.shape == (1, 3, 4, 5)
    assert found.classes == 4
    together = np.concatenate([found.split.train_data, found.split.test_data])
    assert sorted(together[:, 0, 0, 0]) == DATA[:, 0, 0, 0].tolist()
    again = read(_saved(tmp_path, data=DATA, label=LABEL))
    np.testing.assert_array_equal(again.split.test_data, found.split.test_data)


@pytest.mark.parametrize(
    "names", [("data", "label", "test_data", "test_label"), ("x_train", "y_train", "x_test", "y_test")]
)
def test_parts_set_apart_are_held_out(tmp_path: Path, names: tuple[str, ...]) -> None:
    arrays = dict(zip(names, (DATA, LABEL, DATA[:2], LABEL[:2]), strict=True))
    found = read(_saved(tmp_path, **arrays))
    assert (len(found.split.train_data), len(found.split.test_data)) == (10, 2)


def test_images_of_bytes_with_channels_last(tmp_path: Path) -> None:
    images = np.arange(10 * 6 * 5 * 3, dtype=np.uint8).reshape(10, 6, 5, 3)
    found = read(
        _saved(tmp_path, data=images, label=LABEL[:, None], test_data=images, test_label=LABEL[:, None])
    )
    assert found.sample == (3, 6, 5)
    assert found.target == ()
    np.testing.assert_allclose(found.split.train_data[4, 2], images[4, :, :, 2] / 255, rtol=1e-6)


def test_grey_images_of_bytes(tmp_path: Path) -> None:
    assert read(_saved(tmp_path, data=np.zeros((10, 6, 5), "u1"), label=LABEL)).sample == (1, 6, 5)


def test_class_numbers_in_sequences(tmp_path: Path) -> None:
    tokens = np.arange(40).reshape(10, 4)
    found = read(_saved(tmp_path, data=tokens, label=tokens + 1))
    assert found.sequence
    assert found.classes == 41
    assert found.target == (4,)


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    assert read(_saved(tmp_path, data=DATA, label=LABEL + 0.5)).classes is None


@pytest.mark.parametrize("identifier", [10**6, 2**33, 2**61])
def test_labels_that_are_identifiers(tmp_path: Path, refused: Refuse, identifier: int) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL * identifier)
    assert f"{path}, 'label': expected class numbers from 0 on, most of which occur, found 4" in refused(path)


def test_object_arrays(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=np.array([[1], [1, 2]], dtype=object), label=LABEL[:2])
    assert f"{path}, 'data': expected numbers, found pickled objects" in refused(path)


def test_text(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA[:2], label=np.array(["cat", "dog"]))
    assert f"{path}, 'label': expected numbers, found <U3" in refused(path)


def test_other_names(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, images=DATA, classes=LABEL)
    assert "expected arrays named 'data' and 'label', found 'classes', 'images'; save" in refused(path)


def test_test_data_without_labels(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL, test_data=DATA)
    assert "expected 'test_data' with 'test_label', found only 'test_data'" in refused(path)


def test_a_label_too_few(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL[:-1])
    assert "'label': expected a label for each of the 10 samples, found an array (9,)" in refused(path)


def test_a_single_label(tmp_path: Path, refused: Refuse) -> None:
    assert "found an array ()" in refused(_saved(tmp_path, data=DATA, label=np.float32(3)))


def test_no_samples(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA[:0], label=LABEL[:0])
    assert "'data': expected samples [n, ...], found an array (0, 3, 4, 5)" in refused(path)


def test_held_out_samples_of_another_shape(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL, test_data=DATA[..., 1:], test_label=LABEL)
    assert "'test_data': expected samples (3, 4, 5) with labels (), found (3, 4, 4) with ()" in refused(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_numbers_that_are_none(tmp_path: Path, refused: Refuse, value: float) -> None:
    data = DATA.astype(np.float64)
    data[3, 2, 1, 0] = value
    assert f"'data'[3, 2, 1, 0]: expected finite numbers, found {value}" in refused(
        _saved(tmp_path, data=data, label=LABEL)
    )


@pytest.mark.parametrize("kept", [30, 200, -30])
def test_truncated(tmp_path: Path, refused: Refuse, kept: int) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL)
    path.write_bytes(path.read_bytes()[:kept])
    assert f"{path} is not a whole .npz file" in refused(path)


def test_a_flipped_byte(tmp_path: Path, refused: Refuse) -> None:
    path = _saved(tmp_path, data=DATA, label=LABEL)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 0xFF
    path.write_bytes(raw)
    assert f"{path} is not a whole .npz file" in refused(path)


def test_no_archive_for_all_its_name(tmp_path: Path, refused: Refuse) -> None:
    path = tmp_path / "arrays.npz"
    path.write_text("hello")
    assert "is not a whole .npz file" in refused(path)


@pytest.mark.parametrize("shape", [(2**40, 2**20), (-2, -2), (3, 5)])
def test_sizes_that_are_not_there_are_not_allocated(
    tmp_path: Path, refused: Refuse, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "arrays.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.npy", header.getvalue() + b"abcd")
        archive.writestr("label.npy", header.getvalue() + b"abcd")
    assert f"'data': expected {shape} of uint8" in refused(path)


def test_members_that_are_no_arrays(tmp_path: Path, refused: Refuse) -> None:
    path = tmp_path / "arrays.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../data.npy", b"outside")
        archive.writestr("data.npy", b"nothing")
        archive.writestr("label.npy", b"nothing")
    assert "'data' is not a NumPy array" in refused(path)


@pytest.mark.parametrize(
    "header",
    [
        "(" * 9000,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 0), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 0), }",
        "{'descr': [], 'fortran_order': False, 'shape': 5, }",
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, header: str) -> None:
    body = header.encode() + b" " * (-len(header) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body + bytes(16)
    path = tmp_path / "arrays.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.npy", array)
        archive.writestr("label.npy", array)
    with pytest.raises(DataError, match="'data'"):
        read(path)


def test_a_member_whose_name_is_not_text(tmp_path: Path, refused: Refuse) -> None:
    """Its flags say that the name is UTF-8."""
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("d\u00e4ta.npy", b"")
    path.write_bytes(path.read_bytes().replace("\u00e4".encode(), b"\xf5\xff"))
    assert "is not a whole .npz file: 'utf-8' codec" in refused(path)
