"""Help whose options stand in groups, for commands with many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

Groups = Mapping[str, tuple[str, ...]]
"""The parameters of each group by their names in Python, under the group's title."""


class GroupedCommand(click.Command):
    """A command whose help lists options by group. Those that no group names come last."""

    def __init__(self, *arguments: Any, groups: Groups, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group."""
        records = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                records[param.name] = record
        grouped = {name for names in self.groups.values() for name in names}
        rest = tuple(name for name in records if name not in grouped)
        for title, names in {**self.groups, "Other options": rest}.items():
            rows = [records[name] for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
