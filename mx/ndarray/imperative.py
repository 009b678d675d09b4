"""Operators of the library on arrays, computed at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...dataflow.compose import plain
from ...errors import OperatorError
from ...operators import registry
from .array import NDArray, as_array

Result = NDArray | list[NDArray]


@cache
def function(called: str) -> Callable[..., Result]:
    """The operator of this name as a function on arrays. Raises OperatorError for an unknown one."""
    operator = registry.get(called)

    def call(*inputs: Any, out: NDArray | None = None, name: str | None = None, **keywords: Any) -> Result:
        named = {key: value for key, value in keywords.items() if isinstance(value, NDArray | np.ndarray)}
        values = {key: plain(value, key) for key, value in keywords.items() if key not in named}
        values = {key: value for key, value in values.items() if value is not None}
        if operator.count_attribute is not None:
            values.setdefault(operator.count_attribute, len(inputs) + len(named))
        attributes = operator.attributes(values)
        slots = (*operator.arguments(attributes), *operator.auxiliary)
        given = dict(zip(slots, inputs, strict=False)) | named
        if len(inputs) > len(slots) or set(given) != set(slots):
            raise OperatorError(
                f"mx.nd.{called} takes the arrays {', '.join(slots) or 'none'}; given are "
                f"{len(inputs)} by position{''.join(f', {key}' for key in named)}"
            )
        if operator.seeds:
            raise OperatorError(f"mx.nd.{called} draws random numbers, which only bound symbols do")
        arrays = {slot: as_array(value) for slot, value in given.items()}
        shapes = {slot: array.shape for slot, array in arrays.items()}
        inferred = operator.infer(attributes, dict(shapes))
        shapes |= {key: tuple(e or 0 for e in inferred[key] or ()) for key in operator.outputs(attributes)}
        bound = operator.bind(shapes, training=False, **attributes)
        dtype = _result_type(operator.outputs(attributes), arrays, attributes)
        produced = [NDArray(made.astype(dtype, copy=False)) for made in bound.compute(arrays)]
        if out is not None:
            out[:] = produced[0]
            return out
        return produced[0] if len(produced) == 1 else produced

    call.__name__ = call.__qualname__ = called
    return call


def _result_type(outputs: Sequence[str], arrays: dict[str, Any], attributes: Any) -> Any:
    """The `dtype` attribute where there is one, else the type of the first array."""
    if isinstance(attributes.get("dtype"), str):
        return np.dtype(attributes["dtype"])
    return next(iter(arrays.values())).dtype if arrays else np.dtype(np.float32)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Arrays one after the other."""
    return NDArray(np.concatenate([as_array(array) for array in arrays], axis))


def waitall() -> None:
    """Nothing to wait for: results are there when a call returns."""
