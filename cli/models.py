"""`tofu models`: the model zoo."""

from __future__ import annotations

import json

import click

from .. import models
from .options import json_option


@click.command("models")
@json_option
def command(as_json: bool) -> None:
    """List the models that `tofu plan` and `tofu.models.get` know by name."""
    names = models.names()
    click.echo(json.dumps({"models": list(names)}) if as_json else "\n".join(names))
