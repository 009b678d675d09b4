"""Operators of the library on arrays, computed at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...dataflow.symbol.apply_operator import plain, split_positional
from ...errors import OperatorError
from ...operators.library import registry
from ...operators.operator import Operator
from ...operators.stages.attributes import Attributes
from .array import Array, NDArray, as_array

Result = NDArray | list[NDArray]


@cache
def function(called: str) -> Callable[..., Result]:
    """Return the operator of this name as a function on arrays. Raises OperatorError if it is unknown."""
    operator = registry.get(called)

    def call(*inputs: Any, out: NDArray | None = None, name: str | None = None, **keywords: Any) -> Result:
        arrays, attributes = _assigned(operator, inputs, keywords)
        produced = _computed(operator, arrays, attributes)
        if out is not None:
            out[:] = produced[0]
            return out
        return produced[0] if len(produced) == 1 else produced

    call.__name__ = call.__qualname__ = called
    return call


def _assigned(
    operator: Operator, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[str, Array], Attributes]:
    """Return the input arrays by slot, and the attributes.

    Raises OperatorError if any is missing or unknown.
    """
    tensor = (NDArray, np.ndarray)
    named = {key: value for key, value in keywords.items() if isinstance(value, tensor)}
    values = {key: value for key, value in keywords.items() if key not in named and value is not None}
    if operator.count_attribute is not None:
        values.setdefault(operator.count_attribute, len(inputs) + len(named))
    inputs, ordered = split_positional(operator, inputs, tensor, values)
    attributes = operator.attributes({key: plain(value, key) for key, value in {**ordered, **values}.items()})
    slots = (*operator.arguments(attributes), *operator.auxiliary)
    given = dict(zip(slots, inputs, strict=False)) | named
    if len(inputs) > len(slots) or set(given) != set(slots):
        raise OperatorError(
            f"mx.nd.{operator.name} takes the arrays {', '.join(slots) or 'none'}; given are "
            f"{len(inputs)} by position{''.join(f', {key}' for key in named)}"
        )
    return {slot: as_array(value) for slot, value in given.items()}, attributes


def _computed(operator: Operator, arrays: Mapping[str, Array], attributes: Attributes) -> list[NDArray]:
    """Return the outputs, in the type of the first array or of the `dtype` attribute."""
    outputs = operator.outputs(attributes)
    shapes = {slot: array.shape for slot, array in arrays.items()}
    inferred = operator.infer(attributes, dict(shapes))
    drawn = {seed: _drawn_seed() for seed in operator.seeds}
    shapes |= {name: tuple(extent or 0 for extent in inferred[name] or ()) for name in outputs}
    shapes |= dict.fromkeys(drawn, (1,))
    bound = operator.bind(shapes, training=False, **attributes)
    dtype = _result_type(arrays, attributes)
    return [NDArray(made.astype(dtype, copy=False)) for made in bound.compute({**arrays, **drawn})]


def _result_type(arrays: Mapping[str, Array], attributes: Attributes) -> np.dtype[Any]:
    if isinstance(stated := attributes.get("dtype"), str):
        return np.dtype(stated)
    return next(iter(arrays.values())).dtype if arrays else np.dtype(np.float32)


def _drawn_seed() -> Array:
    """Return a seed for an operator that draws random numbers."""
    from ..random import next_generator

    return next_generator().integers(0, 1 << 23, 1).astype(np.float32)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> Result:
    """Return arrays one after the other. Raises ShapeError if they do not fit."""
    return function("Concat")(*arrays, dim=axis)


def waitall() -> None:
    """Nothing to wait for: results are there when a call returns."""
