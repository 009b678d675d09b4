"""The consoles that reports are printed on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from ..support.terminal_text import printable

PLAIN_WIDTH = 160


class _Console(Console):
    """A console that escapes controls in all texts, which may come from files of others.

    Brackets and colons in texts are not markup. A text with a style is a `Text`. A closed pipe is left to the
    command, whose exit status says so.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def wide_console(*, stderr: bool = False) -> Console:
    """Return the terminal as wide as it is; files and pipes wide enough that tables do not fold names.

    COLUMNS sets another width, NO_COLOR and FORCE_COLOR decide on colours.
    """
    console = _Console(markup=False, emoji=False, highlight=False, stderr=stderr)
    if on_terminal(console) or os.environ.get("COLUMNS", "").isdigit():
        return console
    return _Console(markup=False, emoji=False, highlight=False, stderr=stderr, width=PLAIN_WIDTH)


def on_terminal(console: Console) -> bool:
    """Return whether somebody watches, so that a line may be drawn again; FORCE_COLOR does not make it so."""
    return console.is_terminal and console.file.isatty()


def waiting(what: str, quiet: bool = False) -> AbstractContextManager[object]:
    """Return a line on standard error that says what is being waited for, taken away again on a terminal.

    It does not move: a thread that draws it would keep `at_once` from making calls in forks.
    """
    console = wide_console(stderr=True)
    if not quiet and on_terminal(console):
        return Live(Text(what), console=console, auto_refresh=False, transient=True)
    if not quiet:
        console.print(what)
    return nullcontext()
