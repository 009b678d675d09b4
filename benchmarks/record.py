"""Results as JSON, printed and kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .machine import described

Row = dict[str, Any]


def keep(result: Any, path: Path | None) -> str:
    """Return the text of a result, which a file holds from then on, if one is named."""
    text = json.dumps(result, indent=2)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
    return text


def printed(rows: Iterable[Row]) -> list[Row]:
    """Return all rows, each printed as soon as it is there."""
    found = []
    for row in rows:
        print(json.dumps(row), flush=True)
        found.append(row)
    return found


def record_parts(parts: Mapping[str, Callable[[], Iterable[Row]]], description: str | None) -> None:
    """Measure the parts of a benchmark that the command line names, all by default, and print their rows."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=parts, action="append")
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        results = json.loads(arguments.save.read_text(encoding="utf-8"))
    for part in arguments.only or parts:
        found: list[Row] = []
        results[part] = {**described(), "results": found}
        for row in parts[part]():
            print(json.dumps(row), flush=True)
            found.append(row)
            keep(results, arguments.save)
