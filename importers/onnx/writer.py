"""Collect the nodes of an ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.node import Node
from ...errors import OperatorError
from .operand import Array


class Writer:
    """Collects the nodes of a file. A function for an operator adds nodes and returns their outputs."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.values: dict[str, Array] = {}
        self.names: set[str] = set()

    def unused(self, name: str) -> str:
        """Return the name, or with a number if it is taken, and take it."""
        found, number = name, 2
        while found in self.names:
            found, number = f"{name}:{number}", number + 1
        self.names.add(found)
        return found

    def add(
        self, kind: str, inputs: Sequence[str], name: str, outputs: int = 1, **attributes: Any
    ) -> list[str]:
        """Add a node and return the names of its outputs."""
        import onnx

        called = self.unused(name)
        made = [self.unused(f"{called}_output" + (str(k) if outputs > 1 else "")) for k in range(outputs)]
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), made, name=called, **attributes))
        return made

    def constant(self, value: Any, name: str, dtype: Any = np.int64) -> str:
        """Add an initializer and return its name."""
        called = self.unused(name)
        self.values[called] = np.asarray(value, dtype)
        return called


Write = Callable[[Writer, Node, Sequence[str], Sequence[Shape], Sequence[Shape]], Sequence[str]]
"""Writes a node from the names of its inputs, their shapes and those of its outputs."""


def refused(node: Node, what: str) -> OperatorError:
    assert node.operator is not None
    return OperatorError(f"{node.operator.name} with {what}")
