"""Formats are recognised by contents and names."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tofu.models.files import Reading, read

Refuse = Callable[..., str]


def test_formats_are_told_apart_by_contents(tmp_path: Path, cifar: Path, mnist: Path) -> None:
    np.savez(tmp_path / "arrays", data=np.zeros((4, 2)), label=np.zeros(4))
    (tmp_path / "arrays.npz").rename(tmp_path / "arrays")
    (tmp_path / "notes").write_text("abc " * 40)
    (cifar / "data_batch_1").rename(tmp_path / "pixels")
    paths = (tmp_path / "arrays", tmp_path / "notes", tmp_path / "pixels", cifar, mnist)
    assert [read(path).about for path in paths] == [
        "arrays",
        "text by characters",
        "CIFAR-10 batches",
        "CIFAR-10 batches",
        "MNIST idx files",
    ]


def test_nothing_there(tmp_path: Path, refused: Refuse) -> None:
    assert refused(tmp_path / "none") == (
        f"there is no file or folder {tmp_path / 'none'}; name the one that holds the data"
    )


def test_a_device(refused: Refuse) -> None:
    assert refused(Path("/dev/null")) == (
        "/dev/null cannot be read: not a regular file but a pipe, socket or device"
    )


def test_an_empty_folder(tmp_path: Path, refused: Refuse) -> None:
    said = refused(tmp_path)
    assert said.startswith(f"{tmp_path}: expected an .npz file with data and label, CIFAR-10 batches")
    assert "found an empty folder" in said


def test_a_folder_of_other_files(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    assert "found data.csv; name the file or folder that holds the data" in refused(tmp_path)


def test_the_folder_around_one(cifar: Path, mnist: Path, refused: Refuse) -> None:
    assert f"found a folder around {cifar.name}; name {cifar}" in refused(cifar.parent)
    cifar.rename(mnist / "more")
    assert f"found a folder around mnist; name {mnist}" in refused(mnist.parent)


def test_an_empty_file(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "none.npz").write_bytes(b"")
    assert "found an empty file" in refused(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (b"\x89PNG\r\n", "a single image"),
        (b"\x93NUMPY\1\0", "one array"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"%PDF-1.7", "a PDF"),
        (b"\1\2\0\4\5\6\7\x08", "a file that begins 01 02 00 04 05 06 07 08"),
    ],
)
def test_other_formats(tmp_path: Path, refused: Refuse, start: bytes, found: str) -> None:
    (tmp_path / "data").write_bytes(start)
    assert f"found {found}; " in refused(tmp_path / "data")


def test_a_pickle_of_one_byte(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "data").write_bytes(b"\x80")
    assert "is not a pickle that is safe to read: it is malformed" in refused(tmp_path / "data")


def test_an_archive_is_to_be_unpacked(tmp_path: Path, cifar: Path, refused: Refuse) -> None:
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(cifar, cifar.name)
    assert "found an archive; unpack it with tar xf cifar-10-python.tar.gz" in refused(path)


def test_another_gzipped_file(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "tale.txt.gz").write_bytes(gzip.compress(b"once upon a time"))
    assert "found another gzipped file; unpack it with gunzip" in refused(tmp_path / "tale.txt.gz")


def test_a_gzipped_file_that_ends_early(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "data").write_bytes(gzip.compress(bytes(4))[:12])
    assert "cannot be read: Compressed file ended before" in refused(tmp_path / "data")


@pytest.mark.parametrize("option", ["steps", "level", "vocabulary", "resize"])
def test_options_of_another_format_are_refused(cifar: Path, refused: Refuse, option: str) -> None:
    said = refused(cifar, **{option: 3})
    assert said == f"{cifar} holds CIFAR-10 batches, to which --{option} does not apply; leave it out"


def test_a_fraction_beside_samples_set_apart(cifar: Path, refused: Refuse) -> None:
    assert f"{cifar} already holds out 2 samples" in refused(cifar, hold_out=0.5)


def test_too_few_samples_to_hold_one_out(tmp_path: Path, refused: Refuse) -> None:
    path = tmp_path / "one.npz"
    np.savez(path, data=np.zeros((1, 2)), label=np.zeros(1))
    assert "expected at least one sample to train on besides 1 held out, found one sample" in refused(path)
    assert len(read(path, Reading(hold_out=0)).split.train_data) == 1


def test_a_fraction_that_is_none(tmp_path: Path, refused: Refuse) -> None:
    path = tmp_path / "one.npz"
    np.savez(path, data=np.zeros((4, 2)), label=np.zeros(4))
    assert "--hold-out must be a fraction of the samples from 0 to below 1" in refused(path, hold_out=1.0)


def test_a_file_that_may_not_be_read(
    tmp_path: Path, refused: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tale.txt"
    path.write_text("secret " * 40)

    def denied(path: Path, limit: int) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("tofu.models.files.text.read_regular", denied)
    assert refused(path) == f"{path} cannot be read: Permission denied"


def test_data_larger_than_memory(tmp_path: Path, refused: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tale.txt"
    path.write_text("large " * 40)

    def full(path: Path, limit: int) -> bytes:
        raise MemoryError

    monkeypatch.setattr("tofu.models.files.text.read_regular", full)
    assert f"{path} does not fit into memory" in refused(path)
