"""The batches of CIFAR-10 for Python: pickled dictionaries of pixels `[n, 3072]` and labels."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ...support.opened_files import read_regular
from ..split import Samples
from .dataset import Dataset, Reading, refusal
from .held_out import split
from .pickles import read_pickle

WHAT = "CIFAR-10 batches"
IMAGE = (3, 32, 32)
PIXELS = 3072
MOST_BYTES = 1 << 30
CLASSES = 10
TEST = "test_batch"
NAMES = "batches.meta"
AGAIN = "is it a batch of CIFAR-10 for Python? Copy or download it again"


def is_folder(folder: Path) -> bool:
    """Return whether a folder has files named as CIFAR-10's."""
    return bool(_batches(folder)) or (folder / TEST).is_file()


def is_named(path: Path) -> bool:
    """Return whether a file has the name of a batch."""
    return path.name == TEST or path.name.startswith("data_batch")


def read(path: Path, reading: Reading) -> Dataset:
    """Return a folder of batches, with `test_batch` held out, or one batch.

    Images are `[n, 3, 32, 32]`, red, green, blue, from 0 to 1. Raises DataError for files of another form.
    """
    reading.only(path, WHAT)
    if not path.is_dir():
        return Dataset(WHAT, split(path, _batch(path), None, reading.hold_out), CLASSES)
    files = _batches(path)
    if not files:
        raise refusal(path, "data_batch_1 and the like", f"{TEST} alone", "add the batches to train on")
    parts = [_batch(each) for each in files]
    train = Samples(np.concatenate([p.data for p in parts]), np.concatenate([p.label for p in parts]))
    test = _batch(path / TEST) if (path / TEST).is_file() else None
    return Dataset(WHAT, split(path, train, test, reading.hold_out), CLASSES, _names(path / NAMES))


def _batches(folder: Path) -> list[Path]:
    """Return the batches to train on, in order."""
    found = (each for each in folder.iterdir() if each.is_file() and is_named(each))
    return sorted(each for each in found if each.name != TEST)


def _batch(path: Path) -> Samples:
    found = _dictionary(path)
    if b"data" not in found or b"labels" not in found:
        keys = ", ".join(sorted(repr(key.decode("latin1")) for key in found)[:8]) or "none"
        raise refusal(path, "the keys 'data' and 'labels'", keys, AGAIN)
    data, labels = found[b"data"], found[b"labels"]
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != PIXELS:
        shape = f"an array {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise refusal(f"{path}, 'data'", f"bytes [n, {PIXELS}]", shape, AGAIN)
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    if not isinstance(labels, list) or len(labels) != len(data) or not labels:
        count = f"{len(labels)} of them" if isinstance(labels, list) else type(labels).__name__
        raise refusal(f"{path}, 'labels'", f"a label for each of {len(data)} images", count, AGAIN)
    for place, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < CLASSES:
            shown = label if type(label) is int and abs(label) < 10**9 else type(label).__name__
            raise refusal(f"{path}, label {place}", f"a class from 0 to {CLASSES - 1}", f"{shown}", AGAIN)
    images = data.reshape(-1, *IMAGE).astype(np.float32)
    images /= 255
    return Samples(images, np.array(labels, np.float32))


def _dictionary(path: Path) -> Mapping[bytes, Any]:
    """Return the dictionary in a pickle, by keys as Python 2 wrote them."""
    try:
        found = read_pickle(read_regular(path, MOST_BYTES))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path} is not a pickle that is safe to read: {error}; only numbers, text and arrays of "
            "bytes are read, and nothing is run"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(key, str | bytes) for key in found):
        raise refusal(path, "a dictionary with 'data' and 'labels'", type(found).__name__, AGAIN)
    return {key.encode() if isinstance(key, str) else key: value for key, value in found.items()}


def _names(path: Path) -> tuple[str, ...]:
    """Return what the classes stand for, if the file that says so is there."""
    if not path.is_file():
        return ()
    names = _dictionary(path).get(b"label_names")
    if not isinstance(names, list) or len(names) != CLASSES:
        found = f"{len(names)} names" if isinstance(names, list) else type(names).__name__
        raise refusal(f"{path}, 'label_names'", f"{CLASSES} names", found, AGAIN)
    return tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names)
