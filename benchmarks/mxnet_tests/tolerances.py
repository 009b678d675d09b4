"""How far apart MXNet's tests let numbers be if a test does not say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The defaults of one version's `mxnet.test_utils`, by the type of the numbers. Other types are exact."""

    relative: dict[str, float]
    """Largest difference in parts of the second number."""
    absolute: dict[str, float]
    """Difference that is allowed on top."""
    steps: dict[str, float]
    """Distance of the two points of a finite difference."""
    forward: float | None
    """Relative tolerance of outputs; None takes `relative`."""
    backward: float | None
    """Relative tolerance of gradients; None takes `relative`."""
    gradient: float | None
    """Relative tolerance of finite differences; None takes `relative`."""

    def between(self, one: Any, other: Any, relative: Any, absolute: Any) -> tuple[float, float]:
        """Return the tolerances for two arrays: the larger of what their types allow."""
        types = [np.asarray(array).dtype for array in (one, other)]
        return (
            max(_chosen(relative, self.relative, dtype) for dtype in types),
            max(_chosen(absolute, self.absolute, dtype) for dtype in types),
        )


def _chosen(given: Any, defaults: dict[str, float], dtype: Any) -> float:
    if given is None:
        return defaults.get(dtype.name, 0.0)
    if isinstance(given, dict):
        return float(given.get(dtype, defaults.get(dtype.name, 0.0)))
    return float(given)


OLD = Tolerances(
    relative=dict.fromkeys((*FLOATS, "int8", "uint8", "int32", "int64"), 1e-5),
    absolute=dict.fromkeys((*FLOATS, "int8", "uint8", "int32", "int64"), 1e-20),
    steps=dict.fromkeys(FLOATS, 1e-3),
    forward=1e-4,
    backward=1e-5,
    gradient=1e-2,
)
"""Of MXNet 0.11."""

NEW = Tolerances(
    relative=dict(zip(FLOATS, (1e-2, 1e-4, 1e-5), strict=True)),
    absolute=dict(zip(FLOATS, (1e-1, 1e-3, 1e-20), strict=True)),
    steps=dict(zip(FLOATS, (2.0**-6, 2.0**-9, 2.0**-14), strict=True)),
    forward=None,
    backward=None,
    gradient=None,
)
"""Of MXNet 1.9."""
