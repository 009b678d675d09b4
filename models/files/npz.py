"""NumPy's `.npz`: arrays `data` and `label` by name, or those of Keras, `x_train` and `y_train`."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ..split import Samples
from .dataset import Dataset, Reading, refusal
from .held_out import split
from .idx import MOST_PACKED

WHAT = "arrays"
MAGIC = b"PK\x03\x04"
NAMES = (("data", "label", "test_data", "test_label"), ("x_train", "y_train", "x_test", "y_test"))
SAVE = "save it with np.savez(file, data=..., label=...)"
CHANNELS = (1, 3)
Found = npt.NDArray[np.generic]
Item = TypeVar("Item")


def read(path: Path, reading: Reading) -> Dataset:
    """Arrays `[n, ...]`; `test_data` and `test_label`, where there are such, are held out.

    Images come out as `[n, channels, height, width]`, those of bytes from 0 to 1; where the last extent is 1
    or 3 and the second is not, channels were last. Other numbers are taken as they are. Raises DataError for
    files of another form.
    """
    reading.only(path, WHAT)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = _chosen(path, set(members))
            arrays = [_array(path, name, archive, members[name]) for name in chosen]
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is no whole .npz file: {error}; {SAVE}") from error
    parts = [_samples(path, names, *pair) for names, pair in zip(_pairs(chosen), _pairs(arrays), strict=True)]
    train, test = parts[0], parts[1] if len(parts) == 2 else None
    if test is not None and (test.data.shape[1:], test.label.shape[1:]) != (
        train.data.shape[1:],
        train.label.shape[1:],
    ):
        raise refusal(
            f"{path}, '{chosen[2]}'",
            f"samples {train.data.shape[1:]} with labels {train.label.shape[1:]}",
            f"{test.data.shape[1:]} with {test.label.shape[1:]}",
            f"samples held out must be as those in '{chosen[0]}'",
        )
    sequence = arrays[0].dtype.kind in "iu" and arrays[0].ndim == 2 and arrays[0].shape == arrays[1].shape
    classes = _classes([part.label for part in parts])
    if sequence and classes is not None:
        classes = max(classes, _classes([part.data for part in parts]) or 0)
    return Dataset(WHAT, split(path, train, test, reading.hold_out), classes, sequence=sequence)


def _pairs(values: list[Item]) -> list[tuple[Item, Item]]:
    return list(zip(values[::2], values[1::2], strict=True))


def _chosen(path: Path, members: set[str]) -> list[str]:
    """The names of data and labels, and of those held out where there are such."""
    for data, label, test_data, test_label in NAMES:
        if {data, label} <= members:
            held_out = {test_data, test_label} & members
            if len(held_out) == 1:
                raise refusal(
                    path, f"'{test_data}' with '{test_label}'", f"only '{held_out.pop()}'", "add the other"
                )
            return [data, label, *([test_data, test_label] if held_out else [])]
    found = ", ".join(repr(name[:40]) for name in sorted(members)[:8]) or "nothing"
    raise refusal(path, "arrays named 'data' and 'label'", found, SAVE)


def _array(path: Path, name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Found:
    """One array, whose size is compared with that of its file before anything of that size is made."""
    place = f"{path}, '{name}'"
    with archive.open(info) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = header(stream)
        except ValueError as error:
            raise DataError(f"{place} is no array of NumPy: {error}; {SAVE}") from error
        if dtype.hasobject:
            raise refusal(place, "numbers", "pickled objects", "make it an array of numbers")
        if dtype.kind not in "buif":
            raise refusal(place, "numbers", f"{dtype}", "convert it with astype")
        stated, there = math.prod(shape) * dtype.itemsize, info.file_size - stream.tell()
        if min(shape, default=0) < 0 or stated != there or there > info.compress_size * MOST_PACKED:
            raise refusal(
                place,
                f"{shape} of {dtype} = {stated:,} bytes",
                f"{there:,} bytes",
                "it is damaged, save it again",
            )
    with archive.open(info) as stream:
        array: Found = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _samples(path: Path, names: tuple[str, str], data: Found, label: Found) -> Samples:
    if data.ndim < 2 or not data.size:
        raise refusal(f"{path}, '{names[0]}'", "samples [n, ...]", f"an array {data.shape}", SAVE)
    if label.ndim == 0 or len(label) != len(data):
        raise refusal(
            f"{path}, '{names[1]}'",
            f"a label for each of the {len(data)} samples",
            f"an array {label.shape}",
            "save as many of one as of the other",
        )
    for name, array in zip(names, (data, label), strict=True):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = np.argwhere(~np.isfinite(array))[0]
            raise refusal(
                f"{path}, '{name}'{place.tolist()}", "finite numbers", f"{array[tuple(place)]}", "clean it"
            )
    if label.ndim == 2 and label.shape[1] == 1 and data.shape != label.shape:
        label = label[:, 0]
    return Samples(_channels_first(data), label.astype(np.float32))


def _channels_first(data: Found) -> npt.NDArray[np.float32]:
    values = data.astype(np.float32)
    if data.dtype == np.uint8 and data.ndim in (3, 4):
        values /= 255
        values = values[:, None] if data.ndim == 3 else values
    if values.ndim == 4 and values.shape[3] in CHANNELS and values.shape[1] not in CHANNELS:
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    return values


def _classes(labels: list[npt.NDArray[np.float32]]) -> int | None:
    """How many classes there are, None where labels are no class numbers."""
    if any((label < 0).any() or (label != np.floor(label)).any() for label in labels):
        return None
    return int(max(label.max() for label in labels)) + 1
