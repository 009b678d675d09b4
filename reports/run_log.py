"""`run.jsonl`: what a training run reports, one JSON object a line, as it happens."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import DataError
from ..runtime.progress import Epoch, Progress
from .pace import Pace
from .training import Report, Start, epoch_facts, json_line, step_facts

BLOCK = 1 << 16


class RunLog(Report):
    """A file to which each event is added whole, by one write, or not at all.

    A file that holds lines already is only added to by a run that `resume`s; the rest of a line that a crash
    tore is cut off first. Raises DataError if the file is another run's, locked, or cannot be written.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._pace = Pace()
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise DataError(f"the log {path} cannot be written: {error.strerror}") from error
        try:
            self._take(resume)
        except BaseException:
            os.close(self._handle)
            raise

    def start(self, start: Start) -> None:
        self._add({"event": "start", **asdict(start)})

    def step(self, step: Progress) -> None:
        self._pace.add(step)
        self._add({"event": "step", **step_facts(step, self._pace)})

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        self._add({"event": "epoch", **epoch_facts(epoch), "epochs": epochs, "seconds": epoch.seconds})

    def summary(self, facts: Mapping[str, Any]) -> None:
        self._add({"event": "summary", **facts})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def _take(self, resume: bool) -> None:
        """Keep other runs out, and refuse or mend what is there."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another run writes the log {self._path}; name another file") from None
        except OSError as error:
            raise DataError(
                f"the log {self._path} cannot be locked, so other runs cannot be kept out: {error.strerror}; "
                "name a file of a file system that has locks"
            ) from error
        size = os.fstat(self._handle).st_size
        if size and not resume:
            raise DataError(
                f"the log {self._path} holds lines already; name another file, remove it, or --resume its run"
            )
        whole = _end_of_last_line(self._handle, size)
        if whole < size:
            os.ftruncate(self._handle, whole)

    def _add(self, facts: Mapping[str, Any]) -> None:
        """Add a line by one write; the part of it that a full disk took is removed again."""
        line = json_line(facts).encode() + b"\n"
        before = os.fstat(self._handle).st_size
        try:
            written = os.write(self._handle, line)
        except OSError as error:
            raise DataError(f"the log {self._path} cannot be written: {error.strerror}") from error
        if written != len(line):
            os.ftruncate(self._handle, before)
            raise DataError(f"the log {self._path} cannot be written: the disk is full")


def _end_of_last_line(handle: int, size: int) -> int:
    """Return where the last whole line ends, 0 if there is none."""
    end = size
    while end > 0:
        start = max(0, end - BLOCK)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
