"""The progress of an audit: the check that it is at."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.status import Status

from .console import on_terminal, wide_console


class Checks:
    """The check that runs, on one line of a terminal; nothing elsewhere. Writes to standard error.

    Enter it before the audit, and hand it to the audit as its report.
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console or wide_console(stderr=True)
        self._quiet = quiet
        self._status: Status | None = None

    def __enter__(self) -> Checks:
        context: AbstractContextManager[Status | None] = nullcontext()
        if not self._quiet and on_terminal(self._console):
            context = self._console.status("auditing")
        self._context = context
        self._status = context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def __call__(self, description: str, check: str, variable: str | None) -> None:
        if self._status is not None:
            self._status.update(f"{description}: {check}" + (f", along {variable}" if variable else ""))
