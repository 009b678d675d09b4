"""Write settings as JSON, in which NumPy's numbers are those of Python."""

from __future__ import annotations

import json

import numpy as np

from ..errors import DataError


def json_text(value: object, name: str) -> str:
    """Return the value of a setting as JSON. Raises DataError that names the setting if JSON has none."""

    def converted(part: object) -> object:
        if isinstance(part, np.generic):
            return part.item()
        raise TypeError(f"type {type(part).__name__}")

    try:
        return json.dumps(value, default=converted)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"setting {name} is {repr(value)[:60]}, which JSON cannot hold ({error}); give text, numbers, "
            "and lists or mappings of them"
        ) from error
