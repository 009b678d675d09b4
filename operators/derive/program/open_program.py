"""A program while it is written, as those see it who write matrix products, scans and choices into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...kernels.kernel import Array
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.ir import Lowered, Node
from ..steps.steps import DType, Operand, Steps, Value


class OpenProgram(Protocol):
    """The steps so far, and the values of nodes, which are computed by further steps."""

    lowered: Lowered
    """The description that the program computes."""
    box: Ranges
    """The interval of every variable."""
    axes: dict[str, int]
    """The axis of every variable."""
    order: tuple[int, ...]
    """The axes of temporaries, slowest first."""
    steps: Steps
    """The steps so far."""
    number: DType
    """The type that numbers are computed in."""

    def whole_view(self, node: Node) -> Array | None:
        """Return the array that a factor is read from over the whole box; None if it is computed."""
        ...

    def value(self, node: Node, ranges: Ranges) -> Operand:
        """Return the node's value for the given ranges of its free variables."""
        ...

    def array(self, node: Node, ranges: Ranges) -> Value:
        """Return the node's value as an array of a number type, constants included."""
        ...

    def index(self, index: AffineIndex, ranges: Ranges) -> Operand:
        """Return the values of an affine form, known at preparation."""
        ...

    def fresh(self, names: Sequence[str], ranges: Ranges, dtype: DType) -> Value:
        """Return a register for a value that depends on `names`."""
        ...

    def common(self, operands: Sequence[Operand]) -> DType:
        """Return the type to compute in: integer if all operands are, else the type of numbers."""
        ...

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return the value in another type."""
        ...
