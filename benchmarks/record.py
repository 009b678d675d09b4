"""Results as JSON, printed and kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
