"""Arrays that users hand in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError

OTHER_KINDS = "cmMOSU"
"""NumPy's kinds of arrays that hold no real numbers: complex numbers, times, objects and text."""


def real_array(what: str, given: object) -> npt.NDArray[Any]:
    """Return what is given as an array of real numbers.

    Raises DataError that names `what` where it holds none.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise DataError(f"{what} is no array: {error}") from None
    if array.dtype.kind in OTHER_KINDS:
        raise DataError(f"{what} holds values of type {array.dtype}; give integers or floating-point numbers")
    return array
