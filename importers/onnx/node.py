"""A node of ONNX with its inputs, as adapters see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from ...errors import GraphError
from .operand import Array, OnnxOperand, UnknownValueError, UnsupportedNodeError


class NodeBody(Protocol):
    """A graph inside a node. It sees the names around the node."""

    @property
    def inputs(self) -> int:
        """Return the number of its inputs."""

    @property
    def outputs(self) -> int:
        """Return the number of its outputs."""

    def expect(self, runs: int) -> None:
        """Raise GraphError if this number of runs makes too many nodes."""

    def run(self, label: str | None, operands: Sequence[OnnxOperand]) -> list[OnnxOperand]:
        """Make its nodes once more, and return its outputs.

        The names of these nodes begin with the node's name and `label`. If it is None, they are as they are.
        """


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node with its inputs."""

    kind: str
    """The name of the ONNX operator."""

    attributes: Mapping[str, Any]
    """By name, the values of its attributes."""

    inputs: tuple[OnnxOperand | None, ...]
    """Its inputs; None for one that is left out."""

    outputs: int
    """The number of its outputs."""

    opset: int
    """The version of the set of operators that the node is of."""

    names: tuple[str, ...] = ()
    """The names of its inputs."""

    def __getitem__(self, position: int) -> OnnxOperand:
        if not self.has(position):
            raise UnsupportedNodeError(f"{self.kind} without input {position}")
        operand = self.inputs[position]
        assert operand is not None
        return operand

    def has(self, position: int) -> bool:
        return len(self.inputs) > position and self.inputs[position] is not None

    @property
    def given(self) -> list[OnnxOperand]:
        """Return the inputs that are not left out."""
        return [operand for operand in self.inputs if operand is not None]

    def value(self, position: int) -> Array:
        """Return the value of an input. Raises UnknownValueError if only a run says it."""
        array = self[position].array
        if array is None:
            name = self.names[position] if position < len(self.names) else ""
            raise UnknownValueError(
                f"the value of input {name!r} must be known when the model is imported: shapes, branches and "
                "numbers of steps do not depend on data; make it an initializer",
                name,
            )
        return array

    def body(self, name: str) -> NodeBody:
        """Return an attribute that is a graph. Raises GraphError."""
        found = self.attributes.get(name)
        if found is None or not hasattr(found, "run"):
            raise GraphError(f"{self.kind} without the graph {name!r}")
        return cast(NodeBody, found)

    def integers(self, name: str, position: int | None, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return an attribute that later versions made an input; `position` is None if they did not."""
        given: Any = self.attributes.get(name, default)
        if position is not None and self.has(position):
            given = self.value(position)
        return tuple(int(each) for each in np.atleast_1d(np.asarray(given, np.int64)).reshape(-1))

    def integer(self, name: str, default: int) -> int:
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float) -> float:
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        given = self.attributes.get(name, default)
        return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)

    def axis(self, default: int, rank: int | None = None) -> int:
        """Return the attribute `axis`, counted from the front. Raises UnsupportedNodeError."""
        rank = self[0].ndim if rank is None else rank
        given = self.integer("axis", default)
        if not -rank <= given < rank:
            raise UnsupportedNodeError(f"axis {given} of a tensor of {rank} dimensions")
        return given % rank

    def only(self, **expected: object) -> None:
        """Raises UnsupportedNodeError if an attribute is given with another value."""
        for name, value in expected.items():
            if self.attributes.get(name, value) != value:
                raise UnsupportedNodeError(f"{self.kind} with {name}")


Adapter = Callable[[OnnxNode], Sequence[OnnxOperand]]
"""Returns the outputs of a node."""
