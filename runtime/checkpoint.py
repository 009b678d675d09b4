"""Checkpoints: whole tensors and the state of training, in files that are either complete or absent.

A file is in the safetensors format, which holds numbers and text and executes nothing. Tensors are in the
coordinates of the whole tensor, so any number of workers can continue. A checkpoint counts as saved after its
temporary file was written and synced, renamed, and the folder synced. The previous checkpoint stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.atomic_files import Files
from ..support.opened_files import open_regular

FORMAT = 1
KEPT = 2
TEMPORARY = ".temporary"
_NAME = re.compile(r"checkpoint-(\d{1,12})\.safetensors")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The contents of a checkpoint."""

    tensors: Mapping[str, Array]
    """Whole tensors by name."""

    state: Mapping[str, Any]
    """Everything else, as JSON values."""


class OtherVersion(DataError):
    """A checkpoint is of another format; it is not damaged, so none is read in place of it."""


class CheckpointFolder:
    """A folder of checkpoints, numbered; the newest two that are known to be good are kept.

    Files are checked when they are read. One that is truncated or changed is skipped with a warning, and the
    previous one is used.
    """

    def __init__(self, folder: Path, files: Files | None = None) -> None:
        self.folder = folder
        self._files = files or Files()
        self._good: list[Path] = []
        self._lock: int | None = None
        """The open folder while it is locked."""

    @contextmanager
    def exclusive(self, create: bool) -> Iterator[None]:
        """Keep other runs out of the folder; if `create`, make it.

        Raises DataError if another run writes there, or if the folder does not exist and is not made.
        """
        if not create and not self.folder.is_dir():
            raise DataError(f"there is no checkpoint in {self.folder}: the folder does not exist")
        self._lock = self._locked()
        try:
            yield
        finally:
            os.close(self._lock)
            self._lock = None

    def _locked(self) -> int:
        """Return the open folder, which no other run has locked; make it if it is missing."""
        import fcntl

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder, os.O_RDONLY)
        except OSError as error:
            raise DataError(f"no checkpoints can be kept in {self.folder}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise DataError(f"another run writes checkpoints to {self.folder}; name another folder") from None
        return handle

    def _confirm_lock(self) -> None:
        """Make the folder again, with a warning, if it was removed since it was locked.

        Raises DataError if another folder has taken its place, which another run may have made.
        """
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            return
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError:
            if not os.path.samestat(os.fstat(self._lock), self.folder.stat()):
                raise DataError(
                    f"{self.folder} was removed while this run writes to it, and another folder has taken "
                    "its place; name a folder for each run"
                ) from None
            return
        held = self._lock
        self._lock, self._good = self._locked(), []
        os.close(held)
        warnings.warn(f"{self.folder} was removed with its checkpoints; it is made again", stacklevel=4)

    def paths(self) -> list[Path]:
        """Return the checkpoints in the folder, oldest first, good or not."""
        if not self.folder.is_dir():
            return []
        found = [(int(match[1]), path) for path, match in self._matches()]
        return [path for _, path in sorted(found)]

    def has_checkpoints(self) -> bool:
        """Tell whether there are checkpoints in the folder, good or not."""
        return bool(self.paths())

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write the next checkpoint; when this returns, it is safe.

        Raises DataError if it cannot be written, or if the folder was replaced since it was locked;
        earlier checkpoints stay unchanged.
        """
        path = self._next()
        temporary = path.with_name(path.name + TEMPORARY)
        try:
            self._confirm_lock()
            for stale in self.folder.glob(f"checkpoint-*{TEMPORARY}"):
                self._files.remove(stale)
            self._files.write_whole(path, temporary, encode(checkpoint))
        except OSError as error:
            last = f"{self._good[-1]} is intact" if self._good else "none was saved before"
            raise DataError(f"checkpoint {path} cannot be saved ({error}); {last}") from error
        self._good = [*self._good, path][-KEPT:]
        self._remove_others()
        return path

    def load(self) -> Checkpoint:
        """Return the newest good checkpoint.

        Raises DataError if there is none, or if a newer one is of another format.
        """
        refused: list[str] = []
        for path in reversed(self.paths()):
            try:
                checkpoint = read(path)
            except OtherVersion:
                raise
            except DataError as error:
                refused.append(str(error))
                continue
            if refused:
                warnings.warn(f"{'; '.join(refused)}; continuing from {path}", stacklevel=2)
            self._good = [path]
            return checkpoint
        raise DataError("; ".join(refused) or f"there is no checkpoint in {self.folder}")

    def _matches(self) -> list[tuple[Path, re.Match[str]]]:
        return [(path, match) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name))]

    def _next(self) -> Path:
        last = max((int(match[1]) for _, match in self._matches()), default=0) if self.folder.is_dir() else 0
        return self.folder / f"checkpoint-{last + 1:06d}.safetensors"

    def _remove_others(self) -> None:
        """Remove all but the kept ones. Files that cannot be removed are tried again after the next save."""
        for path in self.paths():
            if path not in self._good:
                try:
                    self._files.remove(path)
                except OSError as error:
                    warnings.warn(f"old checkpoint {path} cannot be removed ({error})", stacklevel=3)


def encode(checkpoint: Checkpoint) -> bytes:
    """Encode a checkpoint as the bytes of a safetensors file."""
    from safetensors.numpy import save

    state = json.dumps(checkpoint.state, sort_keys=True)
    metadata = {"tofu_format": str(FORMAT), "state": state, "sha256": _digest(checkpoint.tensors, state)}
    data: bytes = save({name: _contiguous(array) for name, array in checkpoint.tensors.items()}, metadata)
    return data


def read(path: Path) -> Checkpoint:
    """Read the checkpoint in a file. Raises DataError if it is damaged or not of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path).close()
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
        found = metadata.get("tofu_format", "none")
        if found != str(FORMAT):
            kind = OtherVersion if found.isdecimal() else DataError
            raise kind(
                f"checkpoint {path} has format {found}, but this version of Tofu reads {FORMAT}; use the "
                "version that saved it, or another folder"
            )
        state = metadata["state"]
        if _digest(tensors, state) != metadata["sha256"]:
            raise DataError(f"checkpoint {path} is damaged: its contents do not match its checksum")
        values = json.loads(state)
        if not isinstance(values, dict):
            raise DataError(f"checkpoint {path} is damaged: its state is not an object")
        return Checkpoint(tensors, values)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"checkpoint {path} is damaged: {type(error).__name__}: {error}") from error


def _contiguous(array: Array) -> Array:
    return array if array.flags.c_contiguous else array.copy(order="C")


def _digest(tensors: Mapping[str, Array], state: str) -> str:
    """Compute the SHA-256 of everything in a checkpoint."""
    total = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        array = _contiguous(tensors[name])
        total.update(repr((name, array.dtype.str, array.shape)).encode())
        total.update(array.tobytes())
    return total.hexdigest()
