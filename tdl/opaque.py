"""Call the functions behind `Opaque()` names and report how they fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from ..errors import DataError, TofuError
from .numbers import real_array


def call_opaque(
    operator: str, name: str, function: Callable[..., Any], slices: Sequence[npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Return what a function makes of slices of tensors, as an array of numbers.

    Raises a DataError that names the function if it raises, or if it returns anything else.
    """
    try:
        result = function(*slices)
    except TofuError:
        raise
    except Exception as error:
        shapes = ", ".join(str(part.shape) for part in slices)
        raise DataError(
            f"'{operator}': the opaque function '{name}' raises {type(error).__name__} for {shapes}: {error}"
        ) from error
    return real_array(f"'{operator}': what the opaque function '{name}' returns", result)
