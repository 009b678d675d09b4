"""CIFAR-10's batches, whole and malformed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.models.files import read

Refuse = Callable[..., str]
Write = Callable[..., None]


@pytest.fixture
def write(cifar: Path, cifar_pixels: Callable[[int], np.ndarray]) -> Write:
    """Write the first batch with changes; values of None are left out."""

    def changed(**changes: Any) -> None:
        batch = {"data": cifar_pixels(4), "labels": [0, 1, 2, 3], **changes}
        kept = {key: value for key, value in batch.items() if value is not None}
        (cifar / "data_batch_1").write_bytes(pickle.dumps(kept))

    return changed


def test_a_folder_holds_out_its_test_batch(cifar: Path) -> None:
    found = read(cifar)
    assert found.split.train_data.shape == (8, 3, 32, 32)
    assert found.split.train_label.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    np.testing.assert_allclose(found.split.train_data[3, 0], 3 / 255, rtol=1e-6)
    np.testing.assert_allclose(found.split.train_data[4, 1], 1 / 255, rtol=1e-6)
    assert found.split.test_label.tolist() == [0, 1]
    assert found.classes == 10
    assert found.names[3] == "class 3"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_one_batch_in_every_protocol(
    tmp_path: Path, protocol: int, cifar_pixels: Callable[[int], np.ndarray]
) -> None:
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({b"data": cifar_pixels(4), b"labels": [0, 1, 2, 3]}, protocol))
    found = read(path, None)
    assert len(found.split.train_data) == 3
    assert len(found.split.test_data) == 1


def test_truncated(cifar: Path, refused: Refuse) -> None:
    path = cifar / "data_batch_2"
    path.write_bytes(path.read_bytes()[:-100])
    assert refused(cifar).startswith(f"{path} is not a pickle that is safe to read: it ")


def test_no_pickle(cifar: Path, refused: Refuse) -> None:
    (cifar / "data_batch_2").write_bytes(b"hello")
    assert "is not a pickle that is safe to read" in refused(cifar)


def test_without_labels(cifar: Path, refused: Refuse, write: Write) -> None:
    write(labels=None, fine_labels=[1])
    assert "expected the keys 'data' and 'labels', found 'data', 'fine_labels'" in refused(cifar)


def test_pixels_of_another_size(cifar: Path, refused: Refuse, write: Write) -> None:
    write(data=np.zeros((4, 784), np.uint8))
    assert "'data': expected bytes [n, 3072], found an array (4, 784)" in refused(cifar)


def test_pixels_that_are_no_array(cifar: Path, refused: Refuse, write: Write) -> None:
    write(data=[[0] * 3072])
    assert "'data': expected bytes [n, 3072], found list" in refused(cifar)


def test_labels_may_be_an_array(cifar: Path, write: Write) -> None:
    write(labels=np.array([3, 1, 0, 9], np.uint8))
    assert read(cifar).split.train_label[:4].tolist() == [3, 1, 0, 9]


@pytest.mark.parametrize("labels", [[0, 1, 2], [], 7])
def test_labels_of_another_number(cifar: Path, refused: Refuse, labels: object, write: Write) -> None:
    write(labels=labels)
    assert "'labels': expected a label for each of 4 images" in refused(cifar)


@pytest.mark.parametrize("label", [10, -1, 0.5, True, "cat", None])
def test_labels_that_are_no_classes(cifar: Path, refused: Refuse, label: object, write: Write) -> None:
    write(labels=[0, 1, label, 3])
    assert "label 2: expected a class from 0 to 9" in refused(cifar)


def test_something_else_than_a_dictionary(cifar: Path, refused: Refuse) -> None:
    (cifar / "data_batch_1").write_bytes(pickle.dumps([1, 2]))
    assert "expected a dictionary with 'data' and 'labels', found list" in refused(cifar)


def test_names_of_another_number(cifar: Path, refused: Refuse) -> None:
    (cifar / "batches.meta").write_bytes(pickle.dumps({"label_names": ["cat"]}))
    assert "'label_names': expected 10 names, found 1 names" in refused(cifar)


def test_a_test_batch_alone(cifar: Path, refused: Refuse) -> None:
    for path in cifar.glob("data_batch*"):
        path.unlink()
    assert "expected data_batch_1 and the like, found test_batch alone" in refused(cifar)
