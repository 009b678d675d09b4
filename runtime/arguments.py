"""Check what a user gives for a symbol's arguments: arrays, and requests for gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from ..support.wording import alternatives
from .initializer import Floats

Arrays = Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike | None]
GradientRequest = str | Sequence[str] | Mapping[str, str]
REQUESTS = ("write", "add", "null")


def assign(arrays: Mapping[str, Floats], name: str, value: npt.ArrayLike) -> None:
    """Overwrite the elements of an array. Raises DataError for a value of another shape."""
    array = np.asarray(value)
    if array.shape != arrays[name].shape:
        raise DataError(f"'{name}' has shape {arrays[name].shape}, but its new value has shape {array.shape}")
    arrays[name][...] = array


def named(what: str, names: Sequence[str], given: Arrays, partial: bool = False) -> dict[str, Floats]:
    """Return arrays of float32 by name; arrays that already have this type are shared.

    Raises DataError for an unknown array and, unless `partial`, for a missing one.
    """
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise DataError(f"{what} has {len(given)} arrays, but needs {len(names)}: {', '.join(names)}")
        given = {name: array for name, array in zip(names, given, strict=True) if array is not None}
    for name in given:
        if name not in names:
            raise DataError(
                f"{what} has an array for '{name}', which the symbol does not have{alternatives(name, names)}"
            )
    missing = [name for name in names if name not in given]
    if missing and not partial:
        raise DataError(f"{what} lacks {', '.join(missing)}; give an array for each")
    return {name: np.asarray(given[name], np.float32) for name in names if name in given}


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
