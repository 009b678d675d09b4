"""Results as the JSON that `--json` prints: forms are written as in plan files."""

from __future__ import annotations

import dataclasses
import json

import click

from ..partitioner.layouts.forms import At, Cut, Follow, Partial, Parts, Spread
from ..partitioner.plans.form_document import encode_form


def print_json(value: object) -> None:
    """Print a result as one JSON object."""
    click.echo(json.dumps(_plain(value)))


def _plain(value: object) -> object:
    match value:
        case Spread() | Cut() | Parts() | Follow():
            return encode_form(value)
        case tuple() if any(isinstance(entry, At | Partial) for entry in value):
            return encode_form(value)
        case tuple() | list():
            return [_plain(entry) for entry in value]
        case dict():
            return {key: _plain(entry) for key, entry in value.items()}
        case _ if dataclasses.is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value
