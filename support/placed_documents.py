"""Documents whose entries know in which line they begin, so that an error about one names its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import PlanError, TofuError
from .document_place import DocumentPlace, Keys
from .strict_documents import YAML_LIMIT_BYTES, read_bounded, read_document


def read_placed(path: Path, what: str, error: type[TofuError] = PlanError) -> tuple[object, DocumentPlace]:
    """Read the value in a YAML or JSON file, and the place that stands for all of it.

    Lines are known in files of up to `YAML_LIMIT_BYTES`. Raises `error` naming `what` and the file.
    """
    value = read_document(path, what, error)
    data = read_bounded(path, what, error)
    if len(data) > YAML_LIMIT_BYTES:
        return value, DocumentPlace()
    return value, DocumentPlace(lines=_lines(data), line=1)


def _lines(data: bytes) -> dict[Keys, int]:
    """Return the line at which each entry begins; the key's line, of entries with a key."""
    import yaml

    try:
        root = yaml.compose(data.decode("utf-8"), yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):  # JSON may have tabs, which YAML does not take
        return {}
    found: dict[Keys, int] = {}
    pending: list[tuple[Keys, Any]] = [((), root)]
    while pending:
        keys, node = pending.pop()
        match node:
            case yaml.MappingNode():
                entries = [(name.value, name, value) for name, value in node.value]
            case yaml.SequenceNode():
                entries = [(number, value, value) for number, value in enumerate(node.value)]
            case _:
                continue
        for name, begin, value in entries:
            found[*keys, name] = begin.start_mark.line + 1
            pending.append(((*keys, name), value))
    return found
