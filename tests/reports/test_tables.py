"""Tables in little room."""

from __future__ import annotations

import re
from io import StringIO

from rich.console import Console

from tofu.reports.tables import table

NAME = "stage3_unit36_conv2.grad.Convolution.weight"


def test_names_are_never_cut_off() -> None:
    rows = table("operation", "bytes", title="Largest contributors")
    rows.add_row(NAME, "367.00 MB")
    console = Console(file=StringIO(), width=30)
    console.print(rows)
    printed = console.file.getvalue()
    assert "…" not in printed
    cells = re.findall(r"│ (\S*) *│", printed)
    assert "".join(cells) == NAME
