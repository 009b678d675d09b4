"""Find out what a file or folder holds, from its contents, or from names if the contents do not say."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from ...errors import DataError
from ...support.opened_files import open_regular
from . import cifar, idx, images, npz, text
from .dataset import Dataset, Reading, refusal

Reader = Callable[[Path, Reading], Dataset]
KNOWN = (
    "an .npz file with data and label, CIFAR-10 batches, MNIST idx files, folders of images (one for each "
    "class), or a text"
)
_STRANGERS = {
    b"\x89PNG": ("a single image", "name the folder that holds a folder of images for each class"),
    b"\xff\xd8\xff": ("a single image", "name the folder that holds a folder of images for each class"),
    b"\x93NUMPY": ("one array", npz.SAVE),
    b"\x89HDF": ("an HDF5 file", npz.SAVE),
    b"PAR1": ("a Parquet file", npz.SAVE),
    b"BZh": ("a packed file", "unpack it"),
    b"\xfd7zXZ": ("a packed file", "unpack it"),
    b"%PDF": ("a PDF", "save its text"),
}

_FOLDERS: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (cifar.is_folder, cifar.read),
    (idx.is_folder, idx.read),
    (images.is_folder, images.read),
)


def read(path: Path, reading: Reading | None = None) -> Dataset:
    """Return the samples in a file or folder. Raises DataError naming place, expected and found."""
    try:
        return _reader(path)(path, reading or Reading())
    except OSError as error:
        raise DataError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit into memory; data are held there as four bytes a number"
        ) from error


def _reader(path: Path) -> Reader:
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        raise DataError(f"there is no file or folder {path}; name the one that holds the data")
    with open_regular(path) as file:
        start = file.read(16)
    for magic, (found, advice) in _STRANGERS.items():
        if start.startswith(magic):
            raise refusal(path, KNOWN, found, advice)
    if not start:
        raise refusal(path, KNOWN, "an empty file", "name the file that holds the data")
    if start.startswith(npz.MAGIC) or path.suffix == ".npz":
        return npz.read
    if start.startswith(idx.GZIP):
        _refuse_archive(path)
        return idx.read
    if start.startswith(b"\0\0") or "idx" in path.name:
        return idx.read
    if _is_pickle(start) or cifar.is_named(path):
        return cifar.read
    if path.suffix != ".txt" and b"\0" in start and not start.startswith(text.UTF_16):
        raise refusal(path, KNOWN, f"a file that begins {start[:8].hex(' ')}", "convert it to one of these")
    return text.read


def _of_folder(folder: Path) -> Reader:
    for is_one, reader in _FOLDERS:
        if is_one(folder):
            if reader is images.read:
                _refuse_parent(folder)
            return reader
    found = sorted(each.name for each in folder.iterdir())
    shown = f"{', '.join(found[:5])}{', ...' if len(found) > 5 else ''}" if found else "an empty folder"
    raise refusal(folder, KNOWN, shown, "name the file or folder that holds the data")


def _refuse_parent(folder: Path) -> None:
    """Raise DataError if a folder inside this one holds data of another format than images."""
    for inner in sorted(each for each in folder.iterdir() if each.is_dir()):
        if cifar.is_folder(inner) or idx.is_folder(inner):
            raise refusal(folder, KNOWN, f"a folder around {inner.name}", f"name {inner}")


def _is_pickle(start: bytes) -> bool:
    """Return whether a file begins as a pickle does.

    Protocols 2 to 5 begin with their number, dictionaries in older ones with their first instruction.
    """
    return (start[:1] == b"\x80" and start[1:2] <= b"\x05") or start.startswith((b"(dp", b"}q"))


def _refuse_archive(path: Path) -> None:
    """Raise DataError for a gzipped file that is not one of MNIST's, such as an archive."""
    try:
        with open_regular(path) as file, gzip.open(file) as stream:
            begun = stream.read(512)
    except (OSError, EOFError, zlib.error):
        return
    if begun[257:262] == b"ustar" or path.name.endswith((".tar.gz", ".tgz")):
        raise refusal(path, KNOWN, "an archive", f"unpack it with tar xf {path.name} and name the folder")
    if not begun.startswith(b"\0\0"):
        raise refusal(path, KNOWN, "another gzipped file", "unpack it with gunzip")
