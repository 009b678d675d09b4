"""Print a plain text, in which controls that come from names are escaped."""

from __future__ import annotations

import click

from ..support.terminal_text import printable


def say(text: str) -> None:
    """Print a text and a newline."""
    click.echo(printable(text))
