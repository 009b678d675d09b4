"""Opaque functions with gradients: `Differentiable(function, gradient, ...)`.

The gradient of a stage that is nothing but a call of such a function is a stage that calls the gradient. Both
are split along the dimensions that are not `:`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Shape
from ...errors import DataError, OperatorError
from ...support.wording import counted

Array = npt.NDArray[Any]


class _Computed(Protocol):
    """An operator for fixed shapes."""

    def compute(self, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
        """Return the outputs."""
        ...


@runtime_checkable
class Described(Protocol):
    """An operator, as a gradient."""

    def arguments(self, attributes: Mapping[str, object]) -> tuple[str, ...]:
        """Return the names of the tensors."""
        ...

    def bind(self, shapes: Mapping[str, Shape], /) -> _Computed:
        """Return the operator for these shapes."""
        ...


Gradient = Callable[..., Any] | Described | None


@dataclass(frozen=True, slots=True, init=False)
class Differentiable:
    """A function for an `Opaque()` name, with the gradients by its arguments.

        tofu.Differentiable(np.linalg.inv, lambda head, result, matrix: -result.T @ head @ result.T)

    There is one gradient for each argument, or None if it is zero. It is a function of the gradient of the
    result, the result, and the arguments, all slices. It returns an array of the argument's shape. It may
    also be a description, which reads these by the names `grad_0`, `output_0`, `input_0`, `input_1`, ...
    """

    function: Callable[..., Any]
    """Takes slices of tensors and returns the result."""

    gradients: tuple[Gradient, ...]
    """By argument, the gradient or None."""

    def __init__(self, function: Callable[..., Any], *gradients: Gradient) -> None:
        """Raise OperatorError for what is neither a function nor, as a gradient, a description or None."""
        if not callable(function) or isinstance(function, Described):
            raise OperatorError(f"Differentiable takes a function, found {function!r}")
        if not gradients:
            raise OperatorError("Differentiable needs a gradient for each argument; write None for zero")
        for gradient in gradients:
            if gradient is not None and not callable(gradient) and not isinstance(gradient, Described):
                raise OperatorError(f"a gradient is a function, a description or None, found {gradient!r}")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "gradients", gradients)

    def __call__(self, *slices: Array) -> Any:
        """Return what the function makes of slices. Raises OperatorError for another number of them."""
        if len(slices) != len(self.gradients):
            raise OperatorError(
                f"the opaque function takes {counted(len(slices), 'argument')}, but has "
                f"{counted(len(self.gradients), 'gradient')}; give one for each argument, None for zero"
            )
        return self.function(*slices)

    def gradient(self, argument: int) -> Callable[..., Any]:
        """Return the function that computes the gradient by an argument whose gradient is not None."""
        return _GradientBy(self.gradients[argument], argument)


@dataclass(frozen=True, slots=True)
class _GradientBy:
    """The gradient by one argument, as a function of slices."""

    gradient: Gradient
    argument: int

    def __call__(self, head: Array, result: Array, *slices: Array) -> Array:
        if isinstance(self.gradient, Described):
            found = _described(self.gradient, head, result, slices)
        else:
            assert self.gradient is not None
            found = np.asarray(self.gradient(head, result, *slices))
        wanted = slices[self.argument].shape
        if found.shape != wanted:
            raise DataError(
                f"the gradient by argument {self.argument} has shape {found.shape}, and the argument "
                f"{wanted}; return an array of the argument's shape"
            )
        return found


def _described(gradient: Described, head: Array, result: Array, slices: tuple[Array, ...]) -> Array:
    """Return the result of a description. Raises OperatorError if it reads anything else."""
    known = {"grad_0": head, "output_0": result}
    known |= {f"input_{place}": value for place, value in enumerate(slices)}
    names = gradient.arguments({})
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise OperatorError(f"a gradient reads {', '.join(known)}, and not {unknown!r}")
    bound = gradient.bind({name: known[name].shape for name in names})
    outputs = bound.compute({name: known[name] for name in names})
    if len(outputs) != 1:
        raise OperatorError(f"a gradient has one output, and this description has {len(outputs)}")
    return outputs[0]
