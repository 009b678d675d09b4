"""Find equal rows, so that what depends on a row alone is computed once for all that equal it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


def distinct_rows(*arrays: npt.NDArray[Any]) -> tuple[Places, Places]:
    """Number the distinct rows of arrays with equally many rows, which are compared together.

    Returns the place at which each distinct row is first, `[distinct]`, and the number of every row.
    """
    numbers: dict[tuple[bytes, ...], int] = {}
    of_rows = [numbers.setdefault(row, len(numbers)) for row in zip(*map(_as_bytes, arrays), strict=True)]
    number = np.array(of_rows, np.int64)
    first = np.full(len(numbers), len(number))
    np.minimum.at(first, number, np.arange(len(number)))
    return first, number


def _as_bytes(array: npt.NDArray[Any]) -> list[bytes]:
    """Return the contents of every row."""
    if not array.size:
        return [b""] * len(array)
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    found: list[bytes] = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return found
