"""The one vector of weights of a FusedRNNCell, and the arrays that it consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from ..errors import DataError
from ..support.wording import alternatives
from .ndarray.array import NDArray, as_array
from .ndarray.imperative import Array

GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}
"""The ends of names of a cell's gates, by its mode, in the order of their weights."""


@dataclass(frozen=True, slots=True)
class FusedWeights:
    """Where the vector of a FusedRNNCell has which weights."""

    mode: str
    """A key of `GATES`."""

    hidden: int
    """Elements of a state."""

    num_layers: int
    """Layers of cells."""

    directions: tuple[str, ...]
    """`l`, and `r` if cells read the sequence backwards too."""

    prefix: str
    """The beginning of all names."""

    def unpack(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return arrays of each layer, direction and gate in place of the one vector.

        Raises DataError for a vector that is missing, or of a size that no inputs give.
        """
        found = dict(args)
        vector = _taken(found, f"{self.prefix}parameters")
        width = self._width(vector.size)
        parts = list(self._parts(width))
        if width < 1 or sum(prod(shape) for _, _, shape in parts) != vector.size:
            raise DataError(
                f"'{self.prefix}parameters' has {vector.size} elements, which fit no inputs of a cell with "
                f"{self.num_layers} layers of {self.hidden}; unpack it with the cell that it was made for"
            )
        for name, start, shape in parts:
            found[name] = NDArray(vector[start : start + prod(shape)].reshape(shape).copy())
        return found

    def pack(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the one vector in place of the arrays of each layer, direction and gate.

        Raises DataError if one of them is missing.
        """
        found = dict(args)
        first = _taken(dict(args), f"{self.prefix}l0_i2h{GATES[self.mode][0]}_weight")
        parts = [_taken(found, name).ravel() for name, _, _ in self._parts(first.shape[1])]
        found[f"{self.prefix}parameters"] = NDArray(np.concatenate(parts))
        return found

    def _parts(self, width: int) -> Iterator[tuple[str, int, tuple[int, ...]]]:
        """Name, place and shape of each array in the vector: all weights, then all biases."""
        start = 0
        for kind in ("weight", "bias"):
            for layer in range(self.num_layers):
                inner = width if layer == 0 else self.hidden * len(self.directions)
                for direction in self.directions:
                    for product, columns in (("i2h", inner), ("h2h", self.hidden)):
                        for gate in GATES[self.mode]:
                            shape = (self.hidden, columns) if kind == "weight" else (self.hidden,)
                            yield f"{self.prefix}{direction}{layer}_{product}{gate}_{kind}", start, shape
                            start += prod(shape)

    def _width(self, size: int) -> int:
        """Return how many features the inputs have, from the size of the vector."""
        rows = len(GATES[self.mode]) * self.hidden
        directions = len(self.directions)
        upper = (self.num_layers - 1) * directions * rows * (directions * self.hidden + self.hidden + 2)
        return (size - upper) // (directions * rows) - self.hidden - 2


def _taken(arrays: dict[str, NDArray], name: str) -> Array:
    """Return an array, taken out. Raises DataError if it is missing."""
    if name not in arrays:
        raise DataError(f"there is no array '{name}'{alternatives(name, arrays)}")
    return as_array(arrays.pop(name))
