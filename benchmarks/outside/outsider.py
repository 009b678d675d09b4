"""An operator of an outside user: its description, the same in PyTorch, sizes, and what its tensors hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

import tofu
from tofu.operators.operator import Operator

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Sizes = Mapping[str, Any]
"""The shape of every tensor and the value of every attribute, by name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a tensor may hold.

    `make` turns numbers between 0 and 1 into such values. Values that are `whole` are integers for PyTorch,
    those that do not `learn` get no gradient.
    """

    make: Callable[[Array, Sizes], Array]
    whole: bool = False
    learns: bool = True

    def maker(self, sizes: Sizes) -> Callable[[Array], Array]:
        """Such values for these sizes."""
        return lambda uniform: self.make(uniform, sizes)


NORMAL = Kind(lambda uniform, sizes: 4 * uniform - 2)
"""Any numbers; tensors hold these unless something else is said."""
POSITIVE = Kind(lambda uniform, sizes: uniform + 0.1)
PROBABILITY = Kind(lambda uniform, sizes: 0.05 + 0.9 * uniform)
DATA = Kind(NORMAL.make, learns=False)
"""Any numbers that get no gradient."""
MASK = Kind(lambda uniform, sizes: np.floor(2 * uniform), learns=False)
SIGN = Kind(lambda uniform, sizes: 2 * np.floor(2 * uniform) - 1, learns=False)


def below(name: str, axis: int | None = None) -> Kind:
    """Whole numbers below the attribute `name`, or below the extent of a tensor's axis."""

    def make(uniform: Array, sizes: Sizes) -> Array:
        return np.floor(uniform * (sizes[name] if axis is None else sizes[name][axis]))

    return Kind(make, whole=True, learns=False)


@dataclass(frozen=True)
class Outsider:
    """An operator that an outside user could write."""

    text: str
    """Its description."""

    peer: Callable[..., Any]
    """Computes the same from PyTorch's tensors, in the order of the description, with attributes by name."""

    small: Sizes
    """The sizes at which results are checked."""

    large: Sizes
    """The sizes at which times are measured: PyTorch takes some milliseconds."""

    kinds: Mapping[str, Kind]
    """By tensor, what it holds if not any numbers."""

    @property
    def name(self) -> str:
        return self.text.strip().removeprefix("def ").partition("(")[0]

    @cached_property
    def operator(self) -> Operator:
        """The description, parsed. Raises DescriptionError."""
        return tofu.parse(self.text, self.name)

    def shapes(self, sizes: Sizes) -> dict[str, Shape]:
        """Return the shapes of all tensors, in the order of the description."""
        return {name: sizes[name] for name in self.operator.arguments(self.attributes(sizes))}

    def attributes(self, sizes: Sizes) -> dict[str, Any]:
        """Return the values of all attributes."""
        known = {spec.name for spec in self.operator.specs}
        return {name: value for name, value in sizes.items() if name in known}

    def kind(self, tensor: str) -> Kind:
        return self.kinds.get(tensor, NORMAL)

    @property
    def learned(self) -> tuple[str, ...]:
        """Tensors that get a gradient."""
        return tuple(name for name in self.shapes(self.small) if self.kind(name).learns)

    def tensors(self, sizes: Sizes, seed: int, dtype: str) -> dict[str, Array]:
        """Random values for all tensors."""
        generator = np.random.default_rng(seed)
        return {
            name: self.kind(name).make(generator.random(shape), sizes).astype(dtype)
            for name, shape in self.shapes(sizes).items()
        }


def written(
    text: str,
    *,
    small: Sizes,
    large: Sizes,
    kinds: Mapping[str, Kind] = MappingProxyType({}),
) -> Callable[[Callable[..., Any]], Outsider]:
    """Put a description before the function that computes the same in PyTorch."""
    return lambda peer: Outsider(text, peer, small, large, kinds)
