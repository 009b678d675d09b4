"""Convert what users pass to arrays of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError

OTHER_KINDS = "cmMOSU"
"""NumPy's kinds of arrays that do not hold real numbers: complex numbers, times, objects and text.

Structured arrays are of the kind `V`, as the small floating-point types of ml_dtypes are."""


def real_array(what: str, given: object) -> npt.NDArray[Any]:
    """Return what is given as an array of real numbers.

    Raises a DataError that names `what` if it does not hold real numbers.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise DataError(f"{what} is not an array: {error}") from None
    if array.dtype.kind in OTHER_KINDS or array.dtype.names is not None:
        raise DataError(f"{what} holds values of type {array.dtype}; give integers or floating-point numbers")
    return array
