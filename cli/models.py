"""`tofu models`: the model zoo."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from .. import models
from .options import examples, json_option


@click.command("models", epilog=examples("tofu models", "tofu models --sizes", "tofu models --json"))
@json_option
@click.option(
    "--sizes", is_flag=True, help="Also print parameters, batch and sample; all models take seconds."
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page docs/models.md.")
def command(as_json: bool, sizes: bool, as_markdown: bool) -> None:
    """List the models that `tofu plan` and `tofu.models.get` know by name.

    A name without sizes, such as gpt, stands for the first of its family in this list.
    """
    if as_markdown and as_json:
        raise click.UsageError("--json and --markdown print different things; choose one of them")
    if as_markdown:
        from ..reports import models as report

        click.echo(report.markdown(report.model_facts()), nl=False)
        return
    names = models.names()
    if sizes:
        _sizes(as_json)
        return
    click.echo(json.dumps({"models": list(names)}) if as_json else "\n".join(names))


def _sizes(as_json: bool) -> None:
    """Print the facts of each model as soon as it is built, or all as one JSON object."""
    from ..reports import models as report

    if as_json:
        click.echo(json.dumps({"models": [asdict(facts) for facts in report.model_facts()]}))
        return
    width = max(map(len, models.names()))
    for facts in report.model_facts():
        sample = " and ".join(" x ".join(map(str, shape)) for shape in facts.data)
        size = f"{facts.parameters:>15,} parameters, batch {facts.batch:>3}, a sample {sample}"
        click.echo(f"{facts.name:<{width}} {size}")
