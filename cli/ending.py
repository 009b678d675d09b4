"""Exit statuses of commands, the message that each prints, and outputs that cannot take all text."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from functools import cache
from io import TextIOWrapper
from typing import IO, Any, NoReturn

import click

from ..runtime.interrupts import Terminated
from ..support.terminal_text import printable

DONE = 0
REFUTED = 1
MISTAKE = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
TERMINATED = 143

STATUSES = {
    DONE: "done",
    REFUTED: "`tofu audit` refuted a region, a strategy or a kernel",
    MISTAKE: "a mistake in the command line, a file or the data, or a worker failed; one message says which",
    INTERRUPTED: "interrupted from the keyboard, 128 + SIGINT",
    CLOSED_PIPE: "whoever read the output has closed it, 128 + SIGPIPE",
    TERMINATED: "terminated, 128 + SIGTERM",
}
"""The meaning of each exit status."""


class Mistake(click.ClickException):
    """A user's mistake: one message, in which controls in names are escaped."""

    exit_code = MISTAKE

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Interrupted(click.ClickException):
    """Ctrl-C: says what is kept."""

    exit_code = INTERRUPTED
    word = "interrupted"

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{self.word}; {self.message}" if self.message else self.word, err=True)


class InterruptedBySystem(Interrupted):
    """SIGTERM: says what is kept."""

    exit_code = TERMINATED
    word = "terminated"


def interrupted(error: KeyboardInterrupt | Terminated, kept: str = "") -> Interrupted:
    """Return the ending of a command that a signal has stopped."""
    return (InterruptedBySystem if isinstance(error, Terminated) else Interrupted)(kept)


def of_file(error: OSError) -> Mistake:
    """Return the message for a file that the user named and that cannot be read or written."""
    place = f"{error.filename}: " if error.filename else ""
    return Mistake(f"{place}{error.strerror or error}")


def replace_what_cannot_be_encoded() -> None:
    """Let a question mark stand for each character that the encoding of an output lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def discard_unwritable_output() -> None:
    """Discard what standard output cannot take, so that Python does not fail to write it while it exits."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())


def leave_closed_pipe() -> NoReturn:
    """Exit because nobody reads the output any more, without trying to write the rest of it."""
    discard_unwritable_output()
    sys.exit(CLOSED_PIPE)


@cache
def skip_last_collections() -> None:
    """Let the interpreter end without a search for garbage, which is slow if a plan has many objects."""
    atexit.register(gc.freeze)
