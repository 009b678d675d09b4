"""Check what a user gives for a symbol's arguments: arrays, and requests for gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from ..support.wording import alternatives
from .ndarray.array import NDArray, as_array

Arrays = Mapping[str, npt.ArrayLike | NDArray | None] | Sequence[npt.ArrayLike | NDArray | None]
GradientRequest = str | Sequence[str] | Mapping[str, str]
REQUESTS = ("write", "add", "null")


def assign(arrays: Mapping[str, NDArray], name: str, value: npt.ArrayLike | NDArray) -> None:
    """Overwrite the elements of an array. Raises DataError for a value of another shape."""
    array = as_array(value)
    if array.shape != arrays[name].shape:
        raise DataError(f"'{name}' has shape {arrays[name].shape}, but its new value has shape {array.shape}")
    arrays[name].numpy_array[...] = array


def named(what: str, names: Sequence[str], given: Arrays, partial: bool = False) -> dict[str, NDArray]:
    """Return arrays by name; the user's arrays of numbers are shared, whatever their type.

    Raises DataError for an unknown array and, unless `partial`, for a missing one.
    """
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise DataError(f"{what} has {len(given)} arrays, but needs {len(names)}: {', '.join(names)}")
        given = dict(zip(names, given, strict=True))
    arrays = {name: _shared(array) for name, array in given.items() if array is not None}
    for name in arrays:
        if name not in names:
            raise DataError(
                f"{what} has an array for '{name}', which the symbol does not have{alternatives(name, names)}"
            )
    missing = [name for name in names if name not in arrays]
    if missing and not partial:
        raise DataError(f"{what} lacks {', '.join(missing)}; give an array for each")
    for name, array in arrays.items():
        if not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
            raise DataError(f"{what} has an array of {array.dtype} for '{name}'; give numbers")
        if np.issubdtype(array.dtype, np.complexfloating):
            raise DataError(f"{what} has complex numbers for '{name}'; give real ones")
    return {name: NDArray(arrays[name]) for name in names if name in arrays}


def _shared(value: npt.ArrayLike | NDArray) -> npt.NDArray[Any]:
    """Return the NumPy array behind an array; other values become float32."""
    return as_array(value) if isinstance(value, NDArray | np.ndarray) else np.asarray(value, np.float32)


def requests_of(names: Sequence[str], grad_req: GradientRequest) -> dict[str, str]:
    """Return the request for each argument's gradient; arguments that a mapping leaves out request none.

    Raises DataError for an unknown argument or request.
    """
    match grad_req:
        case str():
            requests = dict.fromkeys(names, grad_req)
        case Mapping():
            if unknown := [name for name in grad_req if name not in names]:
                raise DataError(
                    f"grad_req names '{unknown[0]}', not an argument{alternatives(unknown[0], names)}"
                )
            requests = {name: grad_req.get(name, "null") for name in names}
        case _:
            if len(grad_req) != len(names):
                raise DataError(
                    f"grad_req has {len(grad_req)} entries; give one for each of {len(names)} arguments"
                )
            requests = dict(zip(names, grad_req, strict=True))
    for name, request in requests.items():
        if request not in REQUESTS:
            raise DataError(f"grad_req of '{name}' is {request!r}; it must be one of {', '.join(REQUESTS)}")
    return requests
