"""`tofu operators`: the library's operators."""

from __future__ import annotations

import json

import click

from ..operators import registry
from .options import json_option


@click.command("operators")
@json_option
def command(as_json: bool) -> None:
    """List the operators of the library with their inputs and attributes."""
    aliases: dict[str, list[str]] = {}
    for alias, name in registry.aliases().items():
        if alias != name:
            aliases.setdefault(name, []).append(alias)
    rows = [
        {
            "name": name,
            "aliases": sorted(aliases.get(name, [])),
            "attributes": [spec.name for spec in registry.get(name).specs],
        }
        for name in registry.names()
    ]
    if as_json:
        click.echo(json.dumps({"operators": rows}))
        return
    from rich.table import Table

    from ..reports.console import wide_console

    table = Table("operator", "also called", "attributes")
    for row in rows:
        table.add_row(str(row["name"]), ", ".join(row["aliases"]), ", ".join(row["attributes"]))
    wide_console().print(table)
