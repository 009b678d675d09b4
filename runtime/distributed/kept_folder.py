"""Checkpoints of several processes: the first one writes and reads files, and the others get what it read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np

from ...operators.kernels.kernel import Array
from ..checkpoint import Checkpoint, CheckpointFolder


class Sharing(Protocol):
    """The parts of `Processes` that this file needs."""

    number: int

    def text(self, make: Callable[[], str]) -> str: ...

    def array(self, owner: int, array: Array) -> Array: ...


class SharedFolder:
    """A folder that only the first process touches, so it needs not be on a disk that all can reach."""

    def __init__(self, folder: Path, processes: Sharing) -> None:
        self.folder = folder
        self._kept = CheckpointFolder(folder)
        self._processes = processes

    @contextmanager
    def exclusive(self, create: bool) -> Iterator[None]:
        """Keep other runs out of the folder, see `CheckpointFolder.exclusive`."""
        with ExitStack() as held:

            def enter() -> str:
                held.enter_context(self._kept.exclusive(create))
                return ""

            self._processes.text(enter)
            yield

    def has_checkpoints(self) -> bool:
        """Tell whether there are checkpoints, good or not."""
        return bool(self._processes.text(lambda: "yes" if self._kept.has_checkpoints() else ""))

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write the next checkpoint, see `CheckpointFolder.save`."""
        return Path(self._processes.text(lambda: str(self._kept.save(checkpoint))))

    def load(self) -> Checkpoint:
        """Return the newest good checkpoint, see `CheckpointFolder.load`."""
        read: list[Checkpoint] = []

        def load() -> str:
            read.append(self._kept.load())
            forms = {name: [array.dtype.str, array.shape] for name, array in read[0].tensors.items()}
            return json.dumps([forms, read[0].state])

        forms, state = json.loads(self._processes.text(load))
        tensors = {
            name: self._processes.array(
                0, read[0].tensors[name] if read else np.empty(tuple(shape), np.dtype(dtype))
            )
            for name, (dtype, shape) in forms.items()
        }
        return Checkpoint(tensors, state)
