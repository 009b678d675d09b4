"""Compute a symbol's outputs on arrays, operator by operator; read the values of node tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.dataflow.symbol import Symbol

Array = npt.NDArray[Any]
FLOATS = (np.float16, np.float32, np.float64)


def array_of(value: Any) -> Array:
    """Return a value of ONNX's node tests as an array."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def evaluate(symbol: Symbol, values: Mapping[str, Array]) -> list[Array]:
    """Return the outputs as after training, in the widest type of the values."""
    dtype = np.result_type(np.float16, *(array.dtype for array in values.values()))
    found: dict[tuple[Any, int], Array] = {}
    for node in symbol.nodes:
        operator = node.operator
        if operator is None:
            found[node, 0] = values[node.name].astype(dtype)
            continue
        slots = (*operator.arguments(node.attributes), *operator.auxiliary)
        known = {slot: found[entry] for slot, entry in zip(slots, node.inputs, strict=True)}
        shapes = {slot: array.shape for slot, array in known.items()}
        results: Any = ()
        for stage in operator.stages(node.attributes, shapes, training=False):
            bound = stage.bind({name: known[name].shape for name in stage.inputs})
            results = bound.compute(known)
            known.update(zip(stage.produces, results, strict=True))
        found.update(((node, index), array) for index, array in enumerate(results))
    return [found[head] for head in symbol.heads]
