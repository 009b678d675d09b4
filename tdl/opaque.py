"""Calls of the functions behind `Opaque()` names, which may fail in their own ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError, TofuError


def call_opaque(
    operator: str, name: str, function: Callable[..., Any], slices: Sequence[npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """What a function makes of slices of tensors, as an array. Raises DataError naming it where it raises."""
    try:
        return np.asarray(function(*slices))
    except TofuError:
        raise
    except Exception as error:
        shapes = ", ".join(str(part.shape) for part in slices)
        raise DataError(
            f"'{operator}': the opaque function '{name}' raises {type(error).__name__} for {shapes}: {error}"
        ) from error
