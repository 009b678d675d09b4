"""NumPy's `.npz`: arrays `data` and `label` by name, or those of Keras, `x_train` and `y_train`."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...support.opened_files import check_expansion, open_regular
from ..split import Samples
from .dataset import Dataset, Reading, refusal
from .held_out import split
from .idx import MOST_PACKED

WHAT = "arrays"
MAGIC = b"PK\x03\x04"
Names = tuple[str, str]
NAMES: tuple[tuple[Names, Names], ...] = (
    (("data", "label"), ("test_data", "test_label")),
    (("x_train", "y_train"), ("x_test", "y_test")),
)
"""Data and labels, those to train on and those held out."""
SAVE = "save it with np.savez(file, data=..., label=...)"
CHANNELS = (1, 3)
SPARSE = 100
MOST_CLASSES_UNSEEN = 1 << 17
"""Class numbers may be this large even if few of them occur, as with a tokenizer."""
MOST_EXTENT = 2**40
_DAMAGED = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,  # the name of a member is not UTF-8, although its flags say so
)
Found = npt.NDArray[np.generic]


def read(path: Path, reading: Reading) -> Dataset:
    """Return arrays `[n, ...]`; `test_data` and `test_label`, if there are such, are held out.

    Images come out as `[n, channels, height, width]`, those of bytes from 0 to 1; if the last extent is 1
    or 3 and the second is not, channels were last. Other numbers are taken as they are. Raises DataError for
    files of another form.
    """
    reading.only(path, WHAT)
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = _chosen(path, set(members))
            arrays = [tuple(_array(path, n, archive, members[n]) for n in names) for names in chosen]
    except _DAMAGED as error:
        raise DataError(f"{path} is not a whole .npz file: {error}; {SAVE}") from error
    parts = [_samples(path, names, *pair) for names, pair in zip(chosen, arrays, strict=True)]
    train, test = parts[0], parts[1] if len(parts) == 2 else None
    if test is not None and (test.data.shape[1:], test.label.shape[1:]) != (
        train.data.shape[1:],
        train.label.shape[1:],
    ):
        raise refusal(
            f"{path}, '{chosen[1][0]}'",
            f"samples {train.data.shape[1:]} with labels {train.label.shape[1:]}",
            f"{test.data.shape[1:]} with {test.label.shape[1:]}",
            f"samples held out must be as those in '{chosen[0][0]}'",
        )
    data, label = arrays[0]
    sequence = data.dtype.kind in "iu" and data.ndim == 2 and data.shape == label.shape
    labels = [part.label for part in parts] + ([part.data for part in parts] if sequence else [])
    classes = _classes(f"{path}, '{chosen[0][1]}'", labels)
    return Dataset(WHAT, split(path, train, test, reading.hold_out), classes, sequence=sequence)


def _chosen(path: Path, members: set[str]) -> list[Names]:
    """Return the names of data and labels, and of those held out, if any."""
    for train, test in NAMES:
        if members.issuperset(train):
            held_out = members.intersection(test)
            if len(held_out) == 1:
                raise refusal(
                    path, f"'{test[0]}' with '{test[1]}'", f"only '{held_out.pop()}'", "add the other"
                )
            return [train, test] if held_out else [train]
    found = ", ".join(repr(name[:40]) for name in sorted(members)[:8]) or "nothing"
    raise refusal(path, "arrays named 'data' and 'label'", found, SAVE)


def _array(path: Path, name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Found:
    """Return one array, whose size is compared with that of its file before anything of that size is made."""
    place = f"{path}, '{name}'"
    with archive.open(info) as stream:
        shape, dtype = _header(place, stream)
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
    check_expansion(info.compress_size, there, place)
    with archive.open(info) as stream:
        array: Found = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _header(place: str, stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return shape and type of an array, whose header may hold any Python literal. Raises DataError."""
    try:
        version = np.lib.format.read_magic(stream)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(stream)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError) as error:
        raise DataError(f"{place} is not a NumPy array: {str(error)[:200]}; {SAVE}") from error
    if any(type(extent) is not int or extent > MOST_EXTENT for extent in shape):
        shown = ", ".join(map(str, shape))
        raise refusal(place, f"integers up to {MOST_EXTENT:,} as extents", f"({shown:.80})", "it is damaged")
    return shape, dtype


def _samples(path: Path, names: Names, data: Found, label: Found) -> Samples:
    if data.ndim < 2 or not data.size:
        raise refusal(f"{path}, '{names[0]}'", "samples [n, ...]", f"an array {data.shape}", SAVE)
    if label.ndim == 0 or len(label) != len(data):
        raise refusal(
            f"{path}, '{names[1]}'",
            f"a label for each of the {len(data)} samples",
            f"an array {label.shape}",
            "save as many of one as of the other",
        )
    if label.ndim == 2 and label.shape[1] == 1 and data.shape != label.shape:
        label = label[:, 0]
    data_place, label_place = (f"{path}, '{name}'" for name in names)
    return Samples(_channels_first(data, data_place), _numbers(label, label_place))


def _numbers(array: Found, place: str) -> npt.NDArray[np.float32]:
    """Return an array as float32. Raises DataError for NaN, infinities, and values too large for float32."""
    with np.errstate(over="ignore"):
        values = array.astype(np.float32)
    if array.dtype.kind == "f" and not np.isfinite(values).all():
        index = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        raise refusal(f"{place}{list(index)}", "finite numbers", f"{array[index]}", "clean the data")
    return values


def _channels_first(data: Found, place: str) -> npt.NDArray[np.float32]:
    values = _numbers(data, place)
    if data.dtype == np.uint8 and data.ndim in (3, 4):
        values /= 255
        values = values[:, None] if data.ndim == 3 else values
    if values.ndim == 4 and values.shape[3] in CHANNELS and values.shape[1] not in CHANNELS:
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    return values


def _classes(place: str, labels: list[npt.NDArray[np.float32]]) -> int | None:
    """Return how many classes there are, None if labels are not class numbers.

    Raises DataError if so few of the classes occur that the numbers must mean something else.
    """
    if any((label < 0).any() or (label != np.floor(label)).any() for label in labels):
        return None
    classes = int(max(label.max() for label in labels)) + 1
    different = len(np.unique(np.concatenate([label.reshape(-1) for label in labels])))
    if classes > max(MOST_CLASSES_UNSEEN, SPARSE * different):
        raise refusal(
            place,
            "class numbers from 0 on, most of which occur",
            f"{different} different ones up to {classes - 1:,}",
            "number the classes 0, 1, ... with np.unique(label, return_inverse=True)",
        )
    return classes
