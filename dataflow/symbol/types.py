"""Infer types of elements over a whole symbol, in both directions.

The inputs and outputs of an operator have one type, except that one with a `dtype` attribute makes that
type of whatever it is given. They do not say what a graph is computed in, which it is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import GraphError
from ...support.wording import alternatives
from ..node import Entry, Node
from .outputs import Outputs

MXNET_CODES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64")
"""How graph files number types, `__dtype__`."""

DEFAULT: np.dtype[Any] = np.dtype(np.float32)
"""The default type."""

Types = dict[Entry, np.dtype[Any]]
"""The types that are known."""


def infer_types(symbol: Outputs, given: Mapping[str, Any]) -> Types:
    """Infer everything that follows from types given by argument name and from those set on variables.

    Raises GraphError for an unknown argument name, and if two types disagree.
    """
    variables = {node.name: node for node in symbol.nodes if node.is_variable}
    found: Types = {}
    for node in variables.values():
        if "__dtype__" in node.text:
            found[Entry(node, 0)] = _type(node.name, node.text["__dtype__"])
    for name, value in given.items():
        if name not in variables:
            raise GraphError(
                f"a type is given for {name!r}, which is not an argument{alternatives(name, variables)}"
            )
        if value is not None:
            found[Entry(variables[name], 0)] = _type(name, value)
    operations = [node for node in symbol.nodes if not node.is_variable]
    before = -1
    while before != len(found):
        before = len(found)
        for node in (*operations, *reversed(operations)):
            _spread(node, found)
    return found


def _spread(node: Node, found: Types) -> None:
    """Spread the types that are known around one node."""
    assert node.operator is not None
    outputs = node.entries
    stated = node.attributes.get("dtype")
    if isinstance(stated, str):
        found.update(dict.fromkeys(outputs, _type(node.name, stated)))
        return
    around = [entry for entry in (*node.inputs, *outputs) if entry in found]
    for entry in around[1:]:
        if found[entry] != found[around[0]]:
            names = [each.node.output_name(each.output) for each in (around[0], entry)]
            raise GraphError(
                f"{node.operator.name} {node.name!r} needs one type, but {names[0]!r} is {found[around[0]]} "
                f"and {names[1]!r} is {found[entry]}; put a Cast between them"
            )
    if around:
        for entry in (*node.inputs, *outputs):
            found.setdefault(entry, found[around[0]])


def _type(name: str, value: Any) -> np.dtype[Any]:
    """Return a type from NumPy's, from its name, or from the number that graph files write."""
    if isinstance(value, str) and value.isdigit() and int(value) < len(MXNET_CODES):
        value = MXNET_CODES[int(value)]
    try:
        found: np.dtype[Any] = np.dtype(value)
        return found
    except TypeError:
        raise GraphError(f"the type of {name!r} is {value!r}, expected one such as float32") from None
