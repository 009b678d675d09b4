"""One case, and the random values that its inputs hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """An operator of MXNet with its attributes and arrays."""

    operator: str
    """MXNet's name of the operator."""

    attributes: Mapping[str, str]
    """By name, the text of each attribute."""

    inputs: Mapping[str, Array]
    """By name, the array of each input."""

    states: Mapping[str, Array] = field(default_factory=dict)
    """By name, the array of each auxiliary state."""

    fixed: tuple[str, ...] = ()
    """The inputs that are indices, labels or lengths, and have no gradient."""

    training: bool = True
    """Whether the operator runs as in training."""


def case(
    operator: str,
    attributes: Mapping[str, object] | None = None,
    states: Mapping[str, Array] | None = None,
    fixed: tuple[str, ...] = (),
    training: bool = True,
    **inputs: Array,
) -> Case:
    texts = {name: str(value) for name, value in (attributes or {}).items()}
    return Case(operator, texts, inputs, states or {}, fixed, training)


class Values:
    """Random arrays of MXNet's floating-point type."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def unit(self, *shape: int) -> Array:
        """Between 0.1 and 0.9."""
        return self._generator.uniform(0.1, 0.9, shape).astype(np.float32)

    def signed(self, *shape: int) -> Array:
        """Normally distributed around zero, twice as wide as the standard."""
        return (2 * self._generator.standard_normal(shape)).astype(np.float32)

    def whole(self, low: int, high: int, *shape: int) -> Array:
        """Whole numbers from `low` to below `high`."""
        return self._generator.integers(low, high, shape).astype(np.float32)

    def distinct(self, *shape: int) -> Array:
        """Return every whole number once, in random order, so that no two elements tie."""
        count = int(np.prod(shape))
        return self._generator.permutation(count).reshape(shape).astype(np.float32)

    def among(self, choices: tuple[float, ...], *shape: int) -> Array:
        """Return elements of `choices`, each as likely as the others."""
        return self._generator.choice(np.array(choices, np.float32), shape)


def listed(*values: float) -> Array:
    return np.array(values, np.float32)
