"""`tofu operators`: list the library's operators, and count those of each kind."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from .options import examples, json_option


@click.command("operators", epilog=examples("tofu operators", "tofu operators --json"))
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page docs/operators.md.")
def command(as_json: bool, as_markdown: bool) -> None:
    """List the operators of the library with their attributes, and compare their number with the paper's."""
    from ..reports import operators as report

    if as_markdown and as_json:
        raise click.UsageError("--json and --markdown print different things; choose one of them")
    facts = report.operator_facts()
    if as_markdown:
        click.echo(report.markdown(facts), nl=False)
        return
    own = report.counts(facts)
    if as_json:
        operators = [asdict(each) for each in facts]
        click.echo(json.dumps({"counts": own, "paper": dict(report.PAPER), "operators": operators}))
        return
    from ..reports.console import wide_console
    from ..reports.tables import table

    rows = table("operator", "also called", "attributes", "kind")
    for each in facts:
        rows.add_row(each.name, ", ".join(each.aliases), ", ".join(each.attributes), each.kind)
    console = wide_console()
    console.print(rows)
    for key, count in own.items():
        console.print(f"{key.replace('_', ' ')}: {count} (the paper: {report.PAPER[key]})")
