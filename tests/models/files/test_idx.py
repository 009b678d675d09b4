"""MNIST's files, whole and malformed."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tofu.models.files import read

Refuse = Callable[..., str]
Encode = Callable[[np.ndarray], bytes]


def test_a_folder_holds_out_its_test_images(mnist: Path) -> None:
    found = read(mnist)
    assert found.split.train_data.shape == (6, 1, 4, 5)
    assert found.split.test_data.shape == (2, 1, 4, 5)
    assert found.split.train_label.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(found.split.train_data[1, 0, 0], np.arange(20, 25) / 255, rtol=1e-6)
    assert found.classes == 6
    assert found.about == "MNIST idx files"


def test_a_file_of_images_finds_its_labels(mnist: Path) -> None:
    found = read(mnist / "train-images-idx3-ubyte.gz")
    assert len(found.split.train_data) == 5
    assert len(found.split.test_data) == 1


def test_dots_in_names(mnist: Path) -> None:
    (mnist / "train-images-idx3-ubyte.gz").rename(mnist / "train-images.idx3-ubyte.gz")
    (mnist / "train-labels-idx1-ubyte").rename(mnist / "train-labels.idx1-ubyte")
    assert len(read(mnist).split.train_data) == 6


def test_parts_of_emnist(mnist: Path) -> None:
    for path in list(mnist.iterdir()):
        part, _, rest = path.name.partition("-")
        path.rename(mnist / f"emnist-letters-{'test' if part == 't10k' else part}-{rest}")
    split = read(mnist).split
    assert (len(split.train_data), len(split.test_data)) == (6, 2)


def test_images_that_are_there_twice(mnist: Path, refused: Refuse) -> None:
    unpacked = gzip.decompress((mnist / "train-images-idx3-ubyte.gz").read_bytes())
    (mnist / "train-images.idx3-ubyte").write_bytes(unpacked)
    (mnist / "train-labels.idx1-ubyte").write_bytes((mnist / "train-labels-idx1-ubyte").read_bytes())
    (mnist / "more-images-idx3-ubyte").mkdir()
    assert len(read(mnist).split.train_data) == 6
    (mnist / "other-images-idx3-ubyte").write_bytes(unpacked)
    said = refused(mnist)
    assert "found other-images-idx3-ubyte and train-images-idx3-ubyte.gz" in said
    assert said.endswith("move one of them into another folder")


def test_truncated(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-2])
    assert f"{path}: expected 6 = 6 bytes after the header, found 4 bytes; it is truncated" in refused(mnist)


def test_truncated_gzip(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-12])
    assert f"{path} cannot be read" in refused(mnist)


def test_truncated_header(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:6])
    assert "expected 1 sizes of 4 bytes, found 2 bytes" in refused(mnist)


def test_wrong_magic(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-labels-idx1-ubyte"
    path.write_bytes(b"PNG!" + path.read_bytes()[4:])
    assert "expected an idx file, which begins 00 00, found 50 4e 47 21" in refused(mnist)


def test_another_type_than_bytes(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-labels-idx1-ubyte"
    path.write_bytes(b"\0\0\x0d\1" + path.read_bytes()[4:])
    assert "expected bytes (type 08), found type 0d" in refused(mnist)


@pytest.mark.parametrize("packed", [False, True])
def test_sizes_that_are_not_there_are_not_allocated(mnist: Path, refused: Refuse, packed: bool) -> None:
    raw = struct.pack(">BBBB3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(raw) if packed else raw)
    assert "79,228,162,458,924,105,385,300,197,375 bytes after the header, found 0 bytes" in refused(mnist)


def test_more_bytes_than_the_header_says(mnist: Path, refused: Refuse) -> None:
    path = mnist / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes() + b"\0")
    assert "expected 6 = 6 bytes after the header, found more" in refused(mnist)


def test_labels_of_another_number(mnist: Path, refused: Refuse, idx_bytes: Encode) -> None:
    (mnist / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(5)))
    assert "expected a label for each of the 6 images in train-images-idx3-ubyte.gz" in refused(mnist)


def test_labels_that_are_missing(mnist: Path, refused: Refuse) -> None:
    (mnist / "train-labels-idx1-ubyte").unlink()
    assert "expected its labels in train-labels-idx1-ubyte next to it, found no such file" in refused(mnist)


def test_images_under_another_name(mnist: Path, refused: Refuse) -> None:
    path = (mnist / "train-images-idx3-ubyte.gz").rename(mnist / "pictures")
    assert "expected a name such as train-images-idx3-ubyte, with train-labels-idx1-ubyte" in refused(path)


def test_a_test_part_of_another_size(mnist: Path, refused: Refuse, idx_bytes: Encode) -> None:
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(idx_bytes(np.zeros((2, 5, 5))))
    assert "expected images of (4, 5) as in train-images-idx3-ubyte.gz, found (5, 5)" in refused(mnist)


def test_a_test_part_alone(mnist: Path, refused: Refuse) -> None:
    (mnist / "train-images-idx3-ubyte.gz").unlink()
    assert "expected train-images-idx3-ubyte, found t10k-images-idx3-ubyte.gz; add" in refused(mnist)


def test_labels_named_instead_of_images(mnist: Path, refused: Refuse) -> None:
    assert "name the file of the images" in refused(mnist / "train-labels-idx1-ubyte")


def test_no_images_at_all(mnist: Path, refused: Refuse, idx_bytes: Encode) -> None:
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(idx_bytes(np.zeros((0, 4, 5))))
    assert "expected images [n, height, width], found an array (0, 4, 5)" in refused(mnist)
