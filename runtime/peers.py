"""Decisions that all processes of a run make together; a process alone decides by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from .checkpoint import CheckpointFolder
from .checkpoint_file import Restorable, Savable


class KeptFolder(Protocol):
    """A folder of checkpoints, see `CheckpointFolder`."""

    folder: Path

    writers: int
    """The number of processes that write checkpoints."""

    def exclusive(self, create: bool) -> AbstractContextManager[None]:
        """Keep other runs out of the folder."""
        ...

    def has_checkpoints(self) -> bool:
        """Tell whether there are checkpoints, good or not."""
        ...

    def save(self, checkpoint: Savable) -> Path:
        """Write the next checkpoint."""
        ...

    def load(self) -> Restorable:
        """Return the newest good checkpoint."""
        ...


class Peers(Protocol):
    """The processes that train together. All call the same methods in the same order."""

    number: int
    """The number of this process; the first one, 0, writes files and reports."""

    count: int
    """The number of processes."""

    attempt: int
    """How often the run was started again after a loss."""

    def text(self, make: Callable[[], str]) -> str:
        """Return what `make` returns in the first process; it is not called in others.

        An error of the package that it raises is raised in all of them.
        """
        ...

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is set in any process."""
        ...

    def agree(self, facts: Mapping[str, object]) -> None:
        """Raise ExecutionError naming the first fact that differs between processes."""
        ...

    def folder(self, path: Path) -> KeptFolder:
        """Return a folder of checkpoints that all use."""
        ...


class Alone:
    """The only process of a run."""

    number = 0
    count = 1
    attempt = 0

    def text(self, make: Callable[[], str]) -> str:
        """Return what `make` returns."""
        return make()

    def any(self, flag: bool) -> bool:
        """Return the flag."""
        return flag

    def agree(self, facts: Mapping[str, object]) -> None:
        """Do nothing: one process always agrees."""

    def folder(self, path: Path) -> KeptFolder:
        """Return the folder."""
        return CheckpointFolder(path)
