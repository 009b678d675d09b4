"""MNIST's idx files: a header of big-endian sizes, then bytes; gzipped or not."""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...support.opened_files import check_expansion, open_regular
from ..split import Samples
from .dataset import Dataset, Reading, refusal
from .held_out import split

GZIP = b"\x1f\x8b"
BYTES = 0x08
MOST_PACKED = 1032
"""The most bytes that one byte of a deflate stream expands to."""
WHAT = "MNIST idx files"
TRUNCATED = "it is truncated, copy or download it again"
WRONG_SIZES = "the sizes in its header are wrong, or it is not an idx file"
_IMAGES = re.compile(r"(?P<part>.*?)images(?P<mark>[-.]idx)3(?P<rest>.*)")


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the array of bytes in an idx file. Raises DataError for one that is missing or malformed."""
    try:
        with open_regular(path) as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            if not packed:
                return _read(path, file, size, size)
            with gzip.open(file) as stream:
                return _read(path, stream, size, size * MOST_PACKED)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _read(path: Path, stream: Any, size: int, most: int) -> npt.NDArray[np.uint8]:
    """Return the array in a file of `size` bytes.

    `most` bounds the bytes in the stream, so that no false size is believed.
    """
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or not magic[3]:
        raise refusal(
            path, "an idx file, which begins 00 00", magic.hex(" ") or "nothing", "name an idx file"
        )
    if magic[2] != BYTES:
        raise refusal(path, "bytes (type 08)", f"type {magic[2]:02x}", "write its values as unsigned bytes")
    header = stream.read(4 * magic[3])
    shape = tuple(int(extent) for extent in np.frombuffer(header[: len(header) // 4 * 4], ">u4"))
    if len(header) < 4 * magic[3]:
        raise refusal(path, f"{magic[3]} sizes of 4 bytes", f"{len(header)} bytes", TRUNCATED)
    count = math.prod(shape)
    wanted = min(count, most) + 1
    check_expansion(size, wanted, str(path))
    raw = stream.read(wanted)
    if len(raw) != count:
        expected = f"{' x '.join(map(str, shape))} = {count:,} bytes after the header"
        longer = len(raw) > count
        found, advice = ("more", WRONG_SIZES) if longer else (f"{len(raw):,} bytes", TRUNCATED)
        raise refusal(path, expected, found, advice)
    return np.frombuffer(raw, np.uint8).reshape(shape)


def is_folder(folder: Path) -> bool:
    """Return whether a folder has files named as MNIST's."""
    return any(_IMAGES.fullmatch(path.name) and path.is_file() for path in folder.iterdir())


def read(path: Path, reading: Reading) -> Dataset:
    """Return a folder with MNIST's four files, or one file of images with the file of its labels next to it.

    Those with `t10k` or `test` in their name, as in `emnist-letters-test-images-idx3-ubyte`, are held out.
    Images are `[n, 1, height, width]` from 0 to 1.
    """
    reading.only(path, WHAT)
    if path.is_dir():
        parts = _parts(path)
        if False not in parts:
            raise refusal(path, "train-images-idx3-ubyte", parts[True].name, "add the images to train on")
        train, test = _samples(parts[False]), _samples(parts[True]) if True in parts else None
    else:
        train, test = _samples(path), None
    if test is not None and test.data.shape[1:] != train.data.shape[1:]:
        raise refusal(
            parts[True],
            f"images of {train.data.shape[2:]} as in {parts[False].name}",
            f"{test.data.shape[2:]}",
            "take both from one source",
        )
    largest = max(float(part.label.max(initial=0)) for part in (train, test) if part is not None)
    return Dataset(WHAT, split(path, train, test, reading.hold_out), int(largest) + 1)


def _parts(folder: Path) -> dict[bool, Path]:
    """Return the file of images to train on and that to hold out, by whether they are held out.

    Raises DataError if there are several of either. One may be there gzipped as well.
    """
    parts: dict[bool, Path] = {}
    for each in sorted(path for path in folder.iterdir() if path.is_file()):
        matched = _IMAGES.fullmatch(each.name)
        if matched is None:
            continue
        other = parts.setdefault(_is_test(matched["part"]), each)
        if _plain(other.name) != _plain(each.name):
            raise refusal(
                folder,
                "one file of images to train on, and one to hold out",
                f"{other.name} and {each.name}",
                "move one of them into another folder",
            )
    return parts


def _plain(name: str) -> str:
    """Return a name as that of the file that is not gzipped, with a dash before `idx`."""
    return name.removesuffix(".gz").replace(".idx", "-idx")


def _is_test(part: str) -> bool:
    """Return whether a part of a data set, such as `emnist-letters-test-`, is to be held out."""
    return not {"t10k", "test"}.isdisjoint(re.split(r"[-._]", part))


def _samples(path: Path) -> Samples:
    """Return the images in a file, with the labels from the file next to it."""
    images = read_idx(path)
    if images.ndim != 3 or not images.size:
        raise refusal(
            path, "images [n, height, width]", f"an array {images.shape}", "name the file of the images"
        )
    neighbor = _labels_beside(path)
    labels = read_idx(neighbor)
    if labels.shape != images.shape[:1]:
        raise refusal(
            neighbor,
            f"a label for each of the {len(images)} images in {path.name}",
            f"an array {labels.shape}",
            "take both from one source",
        )
    data = images.astype(np.float32)[:, None]
    data /= 255
    return Samples(data, labels.astype(np.float32))


def _labels_beside(path: Path) -> Path:
    matched = _IMAGES.fullmatch(path.name)
    if matched is None:
        raise refusal(
            path,
            "a name such as train-images-idx3-ubyte, with train-labels-idx1-ubyte next to it",
            path.name,
            "rename both, or name their folder",
        )
    name = f"{matched['part']}labels{matched['mark']}1{matched['rest']}".removesuffix(".gz")
    for candidate in (path.with_name(name), path.with_name(name + ".gz")):
        if candidate.is_file():
            return candidate
    raise refusal(path, f"its labels in {name} next to it", "no such file", "put both into one folder")
