"""A node of ONNX with its inputs, and operators of the library applied to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import OperatorError
from ...operators import get

Array = npt.NDArray[np.generic]


class UnsupportedNodeError(OperatorError):
    """A node asks for something that the library does not have; the message says what."""


@dataclass(frozen=True)
class OnnxNode:
    """A node with the values of its inputs."""

    kind: str
    """The name of the ONNX operator."""

    attributes: Mapping[str, object]
    """By name, the values of its attributes."""

    inputs: tuple[Array | None, ...]
    """The values of its inputs; None for one that is left out."""

    outputs: int
    """The number of its outputs."""

    def __getitem__(self, position: int) -> Array:
        array = self.inputs[position]
        assert array is not None
        return array

    def has(self, position: int) -> bool:
        return len(self.inputs) > position and self.inputs[position] is not None

    def integers(self, name: str, position: int, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return an attribute that later versions made an input."""
        given: Any = self[position].tolist() if self.has(position) else self.attributes.get(name, default)
        return tuple(np.atleast_1d(given).astype(int).tolist())

    def integer(self, name: str, default: int) -> int:
        given: Any = self.attributes.get(name, default)
        return int(given)

    def number(self, name: str, default: float) -> float:
        given: Any = self.attributes.get(name, default)
        return float(given)

    def text(self, name: str, default: str) -> str:
        given = self.attributes.get(name, default)
        return given.decode() if isinstance(given, bytes) else str(given)

    def only(self, **expected: object) -> None:
        """Raises UnsupportedNodeError if an attribute is given with another value."""
        for name, value in expected.items():
            if self.attributes.get(name, value) != value:
                raise UnsupportedNodeError(f"{self.kind} with {name}")


Adapter = Callable[[OnnxNode], Sequence[Array]]


def outputs(name: str, *tensors: Array, training: bool = False, **attributes: Any) -> list[Array]:
    """Return all outputs of a library operator for arrays in the order of its arguments and
    auxiliary states.
    """
    operator = get(name)
    names = (*operator.arguments(attributes), *operator.auxiliary)
    values: dict[str, Array] = dict(zip(names, tensors, strict=True))
    shapes = {name: array.shape for name, array in values.items()}
    found: Sequence[Array] = ()
    for stage in operator.stages(attributes, shapes, training):
        found = stage.bind({name: values[name].shape for name in stage.inputs}).compute(values)
        values.update(zip(stage.produces, found, strict=True))
    return list(found)


def apply(name: str, *tensors: Array, **attributes: Any) -> Array:
    """Return the only output of a library operator."""
    (found,) = outputs(name, *tensors, **attributes)
    return found


def reshape(array: Array, shape: Sequence[int]) -> Array:
    """Raises UnsupportedNodeError for a shape without dimensions, which MXNet's operators do not have."""
    if not shape:
        raise UnsupportedNodeError("tensor without dimensions")
    return array if array.shape == tuple(shape) else apply("Reshape", array, shape=tuple(shape))


def ranked(array: Array, rank: int) -> Array:
    """Put ones in front of a shape. A number becomes a tensor, because MXNet has no rank 0."""
    if not array.ndim:
        return array.reshape((1,) * rank)
    return reshape(array, (1,) * (rank - array.ndim) + array.shape)


def stretched(*arrays: Array) -> list[Array]:
    """Return arrays of one rank, each stretched to the shape that all of them have together."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return [apply("broadcast_to", ranked(array, len(shape)), shape=shape) for array in arrays]
