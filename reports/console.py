"""Where reports are printed."""

from __future__ import annotations

from rich.console import Console

PLAIN_WIDTH = 140


def wide_console() -> Console:
    """The terminal as wide as it is; files and pipes wide enough that tables do not fold names."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
