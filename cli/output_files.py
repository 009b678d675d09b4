"""Refuse options that write to the same place, before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

import click


def check_apart(**outputs: Path | None) -> None:
    """Raise UsageError if two options, given by their names, write to one file or folder."""
    option_of: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        first = option_of.setdefault(os.path.realpath(path), option)
        if first != option:
            raise click.UsageError(f"--{first} and --{option} both write {str(path)!r}; name two files")
