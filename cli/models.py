"""`tofu models`: the model zoo."""

from __future__ import annotations

import json

import click

from .. import models
from .options import examples, json_option


@click.command("models", epilog=examples("tofu models", "tofu models --json"))
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page docs/models.md.")
def command(as_json: bool, as_markdown: bool) -> None:
    """List the models that `tofu plan` and `tofu.models.get` know by name."""
    if as_markdown:
        from ..reports import models as report

        click.echo(report.markdown(report.model_facts()), nl=False)
        return
    names = models.names()
    click.echo(json.dumps({"models": list(names)}) if as_json else "\n".join(names))
