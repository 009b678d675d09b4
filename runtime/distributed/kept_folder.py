"""Checkpoints of several processes: written by all of them if all see the folder, by the first one otherwise.

The first process holds the lock, makes a temporary file, and at last writes the header and renames the file.
So a checkpoint is complete or absent, as that of one process is. Every tensor has a process that writes it
into its place, and gets the parts of others for that, one tensor at a time. All processes sync what they
wrote before the file is renamed.

When a run goes on, every process checks some of the tensors, and reads the regions that it holds from the
file. If the folder is not shared, the first process sends it these regions, one tensor at a time.

The folder is shared if every process finds the first one's random text in a file there, and the first one
finds what every process added to it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np

from ...analyzer.indices.region import Shape
from ...errors import DataError
from ..checkpoint import CheckpointFolder, TensorWriter
from ..checkpoint_file import Checkpoint, FileForm, Form, Restorable, Savable
from ..checkpoint_reading import SavedFile, open_saved
from .sent_checkpoint import Connected, SentCheckpoint

PROBE = ".probe-"
PROBE_BYTES = 32
"""The size of the text of a probe, and of what each process adds."""


class Sharing(Connected, Protocol):
    """The parts of `Processes` that this file needs."""

    def text(self, make: Callable[[], str]) -> str: ...


class SharedFolder:
    """A folder of checkpoints that all processes use."""

    def __init__(self, folder: Path, processes: Sharing) -> None:
        self.folder = folder
        self._kept = CheckpointFolder(folder)
        self._processes = processes
        self.writers = 1
        """The number of processes that write checkpoints: one until it is known that all see the folder."""

    @contextmanager
    def exclusive(self, create: bool) -> Iterator[None]:
        """Keep other runs out of the folder, see `CheckpointFolder.exclusive`."""
        with ExitStack() as held:

            def enter() -> str:
                held.enter_context(self._kept.exclusive(create))
                return ""

            self._processes.text(enter)
            self.writers = self._processes.count if self._is_shared() else 1
            yield

    def has_checkpoints(self) -> bool:
        """Tell whether there are checkpoints, good or not."""
        return bool(self._processes.text(lambda: "yes" if self._kept.has_checkpoints() else ""))

    def save(self, checkpoint: Savable) -> Path:
        """Write the next checkpoint, see `CheckpointFolder.save`. The state is that of the first process."""

        def begin() -> str:
            form = FileForm.of(checkpoint)
            return json.dumps([str(self._kept.begin(form)), form.state])

        named, state = json.loads(self._processes.text(begin))
        form, path = FileForm(checkpoint.forms, state), Path(named)
        writer, failure = TensorWriter(path, form), ""
        for name, process in self._shared_out(form.sizes).items():
            array = checkpoint.read(name, process)
            try:
                if array is not None and not failure:
                    writer.write(name, array)
            except OSError as error:
                failure = f"process {self._processes.number}: {error}"
        try:
            if writer.digests and not failure:
                writer.sync()
        except OSError as error:
            failure = f"process {self._processes.number}: {error}"
        digests, failures = self._gathered("write a checkpoint", writer.digests, failure)
        self._processes.text(lambda: str(self._kept.publish(path, form, digests, failures)))
        return path

    def load(self) -> Restorable:
        """Return the newest good checkpoint, see `CheckpointFolder.load`."""
        if self.writers < self._processes.count:
            return self._from_first()
        listed = self._processes.text(lambda: json.dumps([path.name for path in self._kept.paths()]))
        paths = [self.folder / name for name in json.loads(listed)]
        found = self._kept.newest_good(paths, self._checked_together)
        if not self._processes.number:
            self._kept.go_on_from(found)
        return found.contents

    def _checked_together(self, path: Path) -> Checkpoint:
        """Return the checkpoint in a file, of which every process checks some tensors.

        The first process reads the header. Raises DataError, the same in all processes.
        """

        def head() -> str:
            file = open_saved(path)
            return json.dumps([_listed(file.form.forms), file.form.state, file.sha256])

        forms, state, sha256 = json.loads(self._processes.text(head))
        file = SavedFile(path, FileForm(_forms(forms), state), sha256)
        digests, failure = {}, ""
        try:
            for name, process in self._shared_out(file.form.sizes).items():
                if process == self._processes.number:
                    digests[name] = file.digest(name)
        except DataError as error:
            failure = f"process {self._processes.number}: {error}"
        every, failures = self._gathered("check a checkpoint", digests, failure)
        if failures:
            raise DataError(failures)
        return file.check(every)

    def _from_first(self) -> Restorable:
        """Return the newest good checkpoint that the first process finds."""
        read: list[Checkpoint] = []

        def load() -> str:
            read.append(self._kept.load())
            return json.dumps([_listed(read[0].forms), read[0].state])

        forms, state = json.loads(self._processes.text(load))
        return SentCheckpoint(self._processes, _forms(forms), state, read[0] if read else None)

    def _gathered(self, purpose: str, digests: Mapping[str, str], failure: str) -> tuple[dict[str, str], str]:
        """Return the digests and the failures of all processes."""
        said = self._processes.exchange(purpose, json.dumps([digests, failure]).encode())
        stated = [json.loads(each) for each in said]
        every = {name: found for each, _ in stated for name, found in each.items()}
        return every, "; ".join(failure for _, failure in stated if failure)

    def _shared_out(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the process that writes each tensor: the largest first, each by the one with the least."""
        taken = [0] * self.writers
        found: dict[str, int] = {}
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            found[name] = taken.index(min(taken))
            taken[found[name]] += sizes[name]
        return found

    def _is_shared(self) -> bool:
        """Tell whether all processes see and write one folder."""
        number = self._processes.number
        probe = self.folder / f"{PROBE}{secrets.token_hex(8)}"

        def begin() -> str:
            text = secrets.token_hex(PROBE_BYTES // 2)
            try:
                for stale in self.folder.glob(f"{PROBE}*"):
                    stale.unlink()
                probe.write_text(text, encoding="ascii")
            except OSError as error:
                raise DataError(f"no checkpoints can be kept in {self.folder}: {error.strerror}") from error
            return json.dumps([probe.name, text])

        name, text = json.loads(self._processes.text(begin))
        probe = self.folder / name
        mark = f"{number:0{PROBE_BYTES}d}".encode()
        try:
            with probe.open("r+b") as file:
                seen = file.read(PROBE_BYTES) == text.encode()
                file.seek(PROBE_BYTES * (number + 1))
                file.write(mark)
        except OSError:
            seen = False
        all_saw = all(each == b"1" for each in self._processes.exchange("share a folder", b"%d" % seen))

        def end() -> str:
            try:
                found = probe.read_bytes()
                probe.unlink()
            except OSError as error:
                raise DataError(f"no checkpoints can be kept in {self.folder}: {error.strerror}") from error
            marks = [f"{each:0{PROBE_BYTES}d}" for each in range(self._processes.count)]
            return "yes" if all_saw and found == "".join([text, *marks]).encode() else ""

        return bool(self._processes.text(end))


def _listed(forms: Mapping[str, Form]) -> dict[str, tuple[str, Shape]]:
    """Return the forms of tensors as JSON values."""
    return {name: (np.dtype(dtype).str, shape) for name, (dtype, shape) in forms.items()}


def _forms(listed: Mapping[str, tuple[str, Sequence[int]]]) -> dict[str, Form]:
    """Return the forms that `_listed` listed."""
    return {name: (np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in listed.items()}
