"""Read the file of a checkpoint: check all of it, in small pieces, and read only the regions that are needed.

The header must be the one that `FileForm` writes for the tensors that it names, so their places are known. A
tensor is mapped into memory when it is looked up. Whoever reads a region of it reads nothing else from the
disk, and holds nothing else in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import DataError, OtherVersion
from ..operators.kernels.kernel import Array
from ..support.opened_files import open_regular
from .checkpoint_file import FORMAT, Checkpoint, FileForm, type_of

STEP_BYTES = 1 << 20
"""The bytes that are checked at a time."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """The file of a checkpoint, whose header is right. The tensors are not checked yet."""

    path: Path
    """The file."""

    form: FileForm
    """Its header, and the places of its tensors."""

    sha256: str
    """The SHA-256 of everything in it, as the header says."""

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a tensor's bytes. Raises DataError if they cannot be read."""
        total, left = hashlib.sha256(), self.form.sizes[name]
        try:
            with open_regular(self.path) as file:
                file.seek(self.form.places[name])
                while left and (read := file.read(min(left, STEP_BYTES))):
                    total.update(read)
                    left -= len(read)
        except OSError as error:
            raise damaged(self.path, error) from error
        return total.hexdigest()

    def check(self, digests: Mapping[str, str]) -> Checkpoint:
        """Return the contents; `digests` are those of all tensors. Raises DataError if they do not match."""
        if self.form.digest(digests) != self.sha256:
            raise DataError(f"checkpoint {self.path} is damaged: its contents do not match its checksum")
        return Checkpoint(_Mapped(self), json.loads(self.form.state))


class _Mapped(Mapping[str, Array]):
    """The tensors of a file. Each is mapped when it is looked up, and cannot be written."""

    def __init__(self, file: SavedFile) -> None:
        self._file = file

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.form.forms)

    def __len__(self) -> int:
        return len(self._file.form.forms)

    def __getitem__(self, name: str) -> Array:
        file = self._file
        dtype, shape = file.form.forms[name]
        if not file.form.sizes[name]:
            return np.empty(shape, dtype)
        try:
            return np.asarray(np.memmap(file.path, dtype, "r", file.form.places[name], shape))
        except (OSError, ValueError) as error:
            raise damaged(file.path, error) from error


def read(path: Path) -> Checkpoint:
    """Read the checkpoint in a file. Raises DataError if it is damaged or not of this format."""
    file = open_saved(path)
    return file.check({name: file.digest(name) for name in file.form.sizes})


def open_saved(path: Path) -> SavedFile:
    """Read the header of a checkpoint's file. Raises DataError if it is damaged or not of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path).close()
        with safe_open(path, "numpy") as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118, not a mapping
            forms = {
                name: (type_of(each.get_dtype()), tuple(each.get_shape())) for name, each in slices.items()
            }
        found = metadata.get("tofu_format", "none")
        if found != str(FORMAT):
            kind = OtherVersion if found.isdecimal() else DataError
            raise kind(
                f"checkpoint {path} has format {found}, but this version of Tofu reads {FORMAT}; use the "
                "version that saved it, or another folder"
            )
        file = SavedFile(path, FileForm(forms, metadata["state"]), metadata["sha256"])
        header = file.form.header_with(file.sha256)
        with open_regular(path) as content:
            if content.read(len(header)) != header:
                raise DataError(f"checkpoint {path} is damaged: its header was written by another program")
        if not isinstance(json.loads(file.form.state), dict):
            raise DataError(f"checkpoint {path} is damaged: its state is not an object")
        return file
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> DataError:
    """Return the error for a file that cannot be read."""
    return DataError(f"checkpoint {path} is damaged: {type(error).__name__}: {error}")
