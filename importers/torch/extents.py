"""Extents that PyTorch leaves open when it exports a module, and that constants decide.

The number of elements that a mask sets is one. `torch.export` gives it a symbol, as if data decided it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call import TensorValue
from .installed import installed
from .nodes import flattened

DECIDED_BY = {"index": "indices", "masked_select": "mask", "repeat_interleave": "repeats"}
"""By the name of an operator, the argument whose values decide the extents of the result."""


class DecidedExtents:
    """The values of symbols in the shapes of one program."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}

    def shape(self, extents: Any) -> tuple[Any, ...]:
        """Return a shape with the extents that are known; the others stay symbols."""
        return tuple(map(self.extent, extents))

    def extent(self, given: Any) -> Any:
        """Return the value of an extent, or the extent itself if it is not known."""
        if isinstance(given, int):
            return given
        found = given.node.expr.subs(self.values)
        return int(found) if found.is_number else given

    def are_zero(self, extents: Any) -> bool:
        """Tell whether a shape is known to have no elements."""
        return any(isinstance(each, int) and not each for each in self.shape(extents))

    def compare(self, stated: Any, found: Any) -> None:
        """Note the symbols in the stated shape of a tensor that was computed."""
        for extent, own in zip(stated.shape, found.shape, strict=True):
            if not isinstance(extent, int) and extent.node.expr.is_symbol:
                self.values[extent.node.expr] = own

    def decide(self, node: Any, arguments: Mapping[str, Any]) -> None:
        """Note the extents of a call's result if constants decide them."""
        key = DECIDED_BY.get(node.target._schema.name.removeprefix("aten::"))
        if key is None or any(isinstance(each, TensorValue) for each in flattened(arguments.get(key))):
            return
        torch = installed()
        zeros = {
            name: torch.zeros(()).expand(value.shape) if isinstance(value, TensorValue) else value
            for name, value in arguments.items()
        }
        self.compare(node.meta["val"], node.target(**zeros))
