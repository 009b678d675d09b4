"""Operators of the library on NumPy arrays, computed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.specialize.constant_folding import CONDITIONS
from ...dataflow.symbol.apply_operator import plain, split_positional, stated
from ...errors import OperatorError
from ...operators.operator import Operator
from ...operators.stages.attributes import Attributes
from ...tdl.ast import Binary, Call, Description, Element, Extent, Number
from ...tdl.traverse import Node, tensors_in, transform
from ..seed import next_generator

Array = npt.NDArray[Any]


def computed(operator: Operator, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> list[Array]:
    """Return the outputs for arrays, by position or name, and for attributes after them or by name.

    Their type is that of the first array that is more than positions and conditions, or of the `dtype`
    attribute.
    """
    arrays, attributes = _assigned(operator, inputs, keywords)
    outputs = operator.outputs(attributes)
    shapes = {slot: array.shape for slot, array in arrays.items()}
    inferred = operator.infer(attributes, dict(shapes))
    drawn = {seed: next_generator().integers(0, 1 << 23, 1).astype(np.float32) for seed in operator.seeds}
    shapes |= {name: tuple(extent or 0 for extent in inferred[name] or ()) for name in outputs}
    shapes |= dict.fromkeys(drawn, (1,))
    bound = operator.bind(shapes, training=False, **attributes)
    dtype = _result_type(arrays, attributes, operator.description(shapes, training=False, **attributes))
    return [made.astype(dtype, copy=False) for made in bound.compute({**arrays, **drawn})]


def _assigned(
    operator: Operator, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[str, Array], Attributes]:
    """Return the input arrays by slot, and the attributes.

    Raises OperatorError if any is missing or unknown.
    """
    named = {key: value for key, value in keywords.items() if isinstance(value, np.ndarray)}
    values = stated(operator, {key: value for key, value in keywords.items() if key not in named})
    if operator.count_attribute is not None:
        values.setdefault(operator.count_attribute, len(inputs) + len(named))
    inputs, ordered = split_positional(operator, inputs, np.ndarray, values)
    attributes = operator.attributes({key: plain(value, key) for key, value in {**ordered, **values}.items()})
    slots = (*operator.arguments(attributes), *operator.auxiliary)
    given = dict(zip(slots, inputs, strict=False)) | named
    if len(inputs) > len(slots) or set(given) != set(slots):
        raise OperatorError(
            f"mx.nd.{operator.name} takes the arrays {', '.join(slots) or 'none'}; given are "
            f"{len(inputs)} by position{''.join(f', {key}' for key in named)}"
        )
    return {slot: np.asarray(value) for slot, value in given.items()}, attributes


def _result_type(
    arrays: Mapping[str, Array], attributes: Attributes, description: Description
) -> np.dtype[Any]:
    if isinstance(stated := attributes.get("dtype"), str):
        return np.dtype(stated)
    valued = _read_for_values(description)
    chosen = [array for name, array in arrays.items() if name in valued]
    if not chosen and "dtype" not in attributes:
        chosen = [*arrays.values()]
    return chosen[0].dtype if chosen else np.dtype(np.float32)


def _read_for_values(description: Description) -> set[str]:
    """Return tensors whose elements may become elements of the results; others are indices or compared."""
    bare = transform(description, _without_positions)
    found = {tensor for output in bare.outputs for tensor in tensors_in(output.body)}
    for stage in reversed(bare.stages):
        if stage.name in found:
            found |= tensors_in(stage.value.body)
    return found


def _without_positions(node: Node) -> Node:
    match node:
        case Element():
            return replace(node, indices=())
        case Binary() if node.operator in CONDITIONS:
            return Number(0)
        case Call(function="where", arguments=(_, *chosen)):
            return replace(node, arguments=(Number(0), *chosen))
        case Extent():
            return Number(0)
        case _:
            return node
