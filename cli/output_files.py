"""Refuse options that write to the same place, or over what is read, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from . import python_file


def check_apart(read: Mapping[str, Path | None], **outputs: Path | None) -> None:
    """Raise UsageError if two options, given by their names, write to one file or folder.

    `read` has the files that the command reads, by the argument or option that names each. None of them may
    be written.
    """
    source_of = {os.path.realpath(path): source for source, path in read.items() if path is not None}
    option_of: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in source_of:
            raise click.UsageError(
                f"--{option} writes {str(path)!r}, which is read as {source_of[place]}; name another file"
            )
        first = option_of.setdefault(place, option)
        if first != option:
            raise click.UsageError(f"--{first} and --{option} both write {str(path)!r}; name two files")


def model_path(model: str | None) -> Path | None:
    """Return the file of a MODEL or PLAN as users give it; None for the name of a model."""
    from .model_file import is_file

    if model is None or not is_file(model):
        return None
    in_python = python_file.split(model)
    return Path(model) if in_python is None else in_python[0]


def machine_path(machine: str | None) -> Path | None:
    """Return the file of a machine as users give it; None for a preset."""
    from ..machines.machine_file import is_preset

    return None if machine is None or is_preset(machine) else Path(machine)
