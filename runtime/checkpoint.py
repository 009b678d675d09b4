"""Folders of checkpoints: whole tensors and the state of training, in files that are complete or absent.

A file holds numbers and text, see `checkpoint_file`, and executes nothing. Tensors are in the coordinates of
the whole tensor, so any number of workers can continue. A checkpoint counts as saved after its temporary file
was written and synced, renamed, and the folder synced. The previous checkpoint stays.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import DataError, OtherVersion
from ..operators.kernels.kernel import Array
from ..support.atomic_files import Files
from .checkpoint_file import Checkpoint, FileForm, Savable, content, digest
from .checkpoint_reading import read

KEPT = 2
TEMPORARY = ".temporary"
_NAME = re.compile(r"checkpoint-(\d{1,12})\.safetensors")
Contents = TypeVar("Contents")


@dataclass(frozen=True, slots=True)
class Newest(Generic[Contents]):
    """The newest good checkpoint of a folder."""

    path: Path
    """Its file."""

    contents: Contents
    """Its contents, as they were read."""

    refused: tuple[str, ...]
    """The reasons for which newer ones were left out."""


class CheckpointFolder:
    """A folder of checkpoints, numbered; the newest two that are known to be good are kept.

    Files are checked when they are read. One that is truncated or changed is skipped with a warning, and the
    previous one is used.
    """

    def __init__(self, folder: Path, files: Files | None = None) -> None:
        self.folder = folder
        self._files = files or Files()
        self.writers = 1
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
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"no checkpoints can be kept in {self.folder}: {reason}; name another") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise DataError(f"another run writes checkpoints to {self.folder}; name another folder") from None
        except OSError as error:
            os.close(handle)
            raise DataError(
                f"{self.folder} cannot be locked, so other runs cannot be kept out: {error.strerror}; name a "
                "folder of a file system that has locks"
            ) from error
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

    def save(self, checkpoint: Savable) -> Path:
        """Write the next checkpoint; when this returns, it is safe.

        Raises DataError if it cannot be written, or if the folder was replaced since it was locked;
        earlier checkpoints stay unchanged.
        """
        form = FileForm.of(checkpoint)
        path = self.begin(form)
        writer = TensorWriter(path, form, self._files)
        try:
            for name in form.places:
                array = checkpoint.read(name)
                assert array is not None
                writer.write(name, array)
            return self.publish(path, form, writer.digests)
        except OSError as error:
            raise self._unsaved(path, str(error)) from error
        except BaseException:
            self._abandon(path)
            raise

    def begin(self, form: FileForm) -> Path:
        """Make the temporary file of the next checkpoint, and return the checkpoint's path.

        Raises DataError as `save`.
        """
        path = self._next()
        try:
            self._confirm_lock()
            for stale in self.folder.glob(f"checkpoint-*{TEMPORARY}"):
                self._files.remove(stale)
            self._files.write(temporary(path), b"")
            self._files.extend(temporary(path), form.nbytes)
        except OSError as error:
            raise self._unsaved(path, str(error)) from error
        return path

    def publish(self, path: Path, form: FileForm, digests: Mapping[str, str], failure: str = "") -> Path:
        """Write the header of a checkpoint whose tensors are written, and rename its file.

        If there is a failure, raise DataError with it instead.
        """
        if failure:
            raise self._unsaved(path, failure)
        try:
            self._files.write_at(temporary(path), 0, form.header(digests))
            self._files.publish(path, temporary(path))
        except OSError as error:
            raise self._unsaved(path, str(error)) from error
        self._good = [*self._good, path][-KEPT:]
        self._remove_others()
        return path

    def _abandon(self, path: Path) -> None:
        """Remove the temporary file of a checkpoint, because it may fill the disk."""
        with suppress(OSError):
            self._files.remove(temporary(path))

    def _unsaved(self, path: Path, failure: str) -> DataError:
        self._abandon(path)
        last = f"{self._good[-1]} is intact" if self._good else "none was saved before"
        return DataError(f"checkpoint {path} cannot be saved ({failure}); {last}")

    def load(self) -> Checkpoint:
        """Return the newest good checkpoint.

        Raises DataError if there is none, or if a newer one is of another format.
        """
        found = self.newest_good(self.paths(), read)
        self.go_on_from(found)
        return found.contents

    def newest_good(self, paths: Sequence[Path], read: Callable[[Path], Contents]) -> Newest[Contents]:
        """Return the newest checkpoint of `paths`, oldest first, that `read` finds good.

        Raises DataError as `load`.
        """
        refused: list[str] = []
        for path in reversed(paths):
            try:
                return Newest(path, read(path), tuple(refused))
            except OtherVersion:
                raise
            except DataError as error:
                refused.append(str(error))
        raise DataError("; ".join(refused) or f"there is no checkpoint in {self.folder}")

    def go_on_from(self, found: Newest[Contents]) -> None:
        """Keep a checkpoint until two newer ones are saved; warn if newer ones are damaged."""
        if found.refused:
            warnings.warn(f"{'; '.join(found.refused)}; continuing from {found.path}", stacklevel=3)
        self._good = [found.path]

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


class TensorWriter:
    """Writes tensors into the temporary file of a checkpoint, which `CheckpointFolder.begin` made."""

    def __init__(self, path: Path, form: FileForm, files: Files | None = None) -> None:
        self._temporary = temporary(path)
        self._form = form
        self._files = files or Files()
        self.digests: dict[str, str] = {}
        """The SHA-256 of each tensor that was written."""

    def write(self, name: str, array: Array) -> None:
        """Write a tensor. Raises OSError."""
        written = content(array)
        self._files.write_at(self._temporary, self._form.places[name], written)
        self.digests[name] = digest(written)

    def sync(self) -> None:
        """Wait until the tensors are on the disk. Raises OSError."""
        self._files.sync(self._temporary)


def temporary(path: Path) -> Path:
    """Return the path of a checkpoint until it is complete."""
    return path.with_name(path.name + TEMPORARY)
