"""Files of every format, small."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.models.files import Reading, read

Refuse = Callable[..., str]


@pytest.fixture
def idx_bytes() -> Callable[[np.ndarray], bytes]:
    """An array of bytes as an idx file has it."""

    def encoded(array: np.ndarray) -> bytes:
        header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        return header + array.astype("u1").tobytes()

    return encoded


@pytest.fixture
def cifar_pixels() -> Callable[[int], np.ndarray]:
    """That many images as a batch has them; the red plane of image n is n."""

    def pixels(count: int) -> np.ndarray:
        made = np.zeros((count, 3072), np.uint8)
        made[:, :1024] = np.arange(count)[:, None]
        return made

    return pixels


@pytest.fixture
def refused() -> Refuse:
    """`refused(path)` is the message of the DataError that reading it raises."""

    def message(path: Path, **reading: Any) -> str:
        with pytest.raises(DataError) as caught:
            read(path, Reading(**reading))
        return str(caught.value)

    return message


@pytest.fixture
def cifar(tmp_path: Path, cifar_pixels: Callable[[int], np.ndarray]) -> Path:
    """Two batches of four images, the second one brighter by one, and a test batch of two."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for number, (name, count) in enumerate((("data_batch_1", 4), ("data_batch_2", 4), ("test_batch", 2))):
        batch = {
            b"batch_label": b"a batch",
            b"labels": list(range(count)),
            b"data": cifar_pixels(count) + np.uint8(number),
            b"filenames": [b"a.png"] * count,
        }
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    names = {b"label_names": [f"class {n}".encode() for n in range(10)], b"num_vis": 3072}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return folder


@pytest.fixture
def mnist(tmp_path: Path, idx_bytes: Callable[[np.ndarray], bytes]) -> Path:
    """Six images of 4 x 5 to train on, gzipped, and two to test."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, count in (("train", 6), ("t10k", 2)):
        images = np.arange(count * 20).reshape(count, 4, 5)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(count)))
    return folder
