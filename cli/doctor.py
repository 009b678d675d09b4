"""`tofu doctor`: show what this machine has for the engines, and what is missing."""

from __future__ import annotations

import json

import click

from .options import examples, json_option


@click.command("doctor", epilog=examples("tofu doctor", "tofu doctor --no-copies --json"))
@click.option("--no-copies", is_flag=True, help="Do not measure copies between cards.")
@json_option
def command(no_copies: bool, as_json: bool) -> None:
    """Show which cards, drivers and libraries there are, and how to install what is missing.

    Copies between every pair of cards are measured, which takes 512 MiB of each. A missing part is not an
    error: the exit status is 0.
    """
    from ..reports import doctor
    from ..reports.console import wide_console
    from ..runtime.cuda.inspection import inspect

    found = inspect(measure=not no_copies)
    if as_json:
        click.echo(json.dumps(doctor.document(found)))
    else:
        wide_console().print(doctor.text(found))
