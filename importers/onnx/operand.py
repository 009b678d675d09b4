"""Tensors of an ONNX graph while it becomes a symbol, and the constants among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Shape
from ...dataflow.builder import Names
from ...dataflow.node import Entry, Node
from ...dataflow.scope import Scope
from ...dataflow.symbol import Symbol
from ...dataflow.symbol.compose import variable
from ...errors import GraphError, OperatorError
from ...operators.operator import Operator
from ...operators.stages.attributes import Attributes

Array = npt.NDArray[Any]

MOST_ELEMENTS = 1 << 40
"""A tensor that claims more elements than this is refused: no machine trains it."""

ANALYSED_ANEW = 16
"""An operator with shapes and attributes that are new takes as long as about this many others."""

FIXED = "0"
"""The learning rate multiplier of constants."""


class UnsupportedNodeError(OperatorError):
    """A node asks for something that has no description; the message says what."""


class UnknownValueError(OperatorError):
    """A node needs the value of an input that is only known when the model runs."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True, eq=False)
class OnnxOperand:
    """A tensor of an ONNX graph: an output of a symbol, or a value that is known."""

    shape: Shape
    """The shape as ONNX has it. A tensor without dimensions is held as one of shape (1,)."""

    dtype: np.dtype[Any]
    """The type of its elements in ONNX."""

    symbol: Symbol | None = None
    """Computes it; None for a value that no operator has read."""

    array: Array | None = None
    """Its value; None if it is known only when the model runs."""

    name: str = ""
    """Its name in the file; empty for one that an adapter made."""

    trained: bool = False
    """Whether it is a parameter, so that the value changes in training."""

    def __post_init__(self) -> None:
        if 0 in self.shape and self.array is None:
            raise UnsupportedNodeError("tensor without elements")
        if prod(self.shape) > MOST_ELEMENTS:
            raise GraphError(
                f"a tensor of shape {self.shape} has {prod(self.shape):,} elements; {MOST_ELEMENTS:,} is the "
                "most that is read"
            )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def held(self) -> Shape:
        """Return the shape of the symbol's output."""
        return self.shape or (1,)

    @property
    def known(self) -> Array | None:
        """Return the value if nothing changes it, training included."""
        return None if self.trained else self.array

    def of_type(self, dtype: np.dtype[Any]) -> OnnxOperand:
        """Return the operand with elements of another type; a value is converted."""
        if dtype == self.dtype and (self.array is None or self.array.dtype == dtype):
            return self
        array = self.array if self.array is None or self.symbol is not None else self.array.astype(dtype)
        return dataclasses.replace(self, dtype=dtype, array=array)

    @property
    def number(self) -> float | None:
        """Return the value of a constant of one element that an attribute can hold."""
        value = self.known
        if value is None or value.size != 1:
            return None
        found = float(value.reshape(()))
        return found if np.isfinite(found) else None


def constant(value: Any, dtype: Any = np.float32, name: str = "") -> OnnxOperand:
    """Return a value as an operand."""
    array = np.asarray(value, dtype)
    return OnnxOperand(array.shape, array.dtype, array=array, name=name)


class Constants(Scope):
    """The values that a symbol in the making reads: one variable for each, with a name of its own.

    Use it as a context manager to put it in force.
    """

    innermost: ClassVar[ContextVar[Constants]] = ContextVar("tofu_onnx_constants")

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names
        self.prefix = ""
        self.effort = 0
        """The number of nodes that were made, with `ANALYSED_ANEW` more for each that was analysed."""
        self._inferred: dict[tuple[object, ...], Any] = {}
        self._reserved: set[str] = set()
        self._made: set[Node] = set()
        self._values: dict[str, Array] = {}
        self._symbols: dict[OnnxOperand, Symbol] = {}
        self._states: dict[tuple[OnnxOperand, ...], tuple[OnnxOperand, ...]] = {}

    def symbol(self, operand: OnnxOperand) -> Symbol:
        """Return the symbol of an operand. A value becomes a variable when it is first read."""
        if operand.symbol is not None:
            return operand.symbol
        if operand not in self._symbols:
            assert operand.array is not None
            if 0 in operand.shape:
                raise UnsupportedNodeError("tensor without elements")
            name = self._own(operand.name) or self.claim(operand.name or f"{self.prefix}constant")
            settings = {} if operand.trained else {"__lr_mult__": FIXED}
            self._symbols[operand] = variable(name, operand.held, attr=settings)
            self._values[name] = floats(operand.array, operand.name).reshape(operand.held)
        return self._symbols[operand]

    def states(
        self, parameters: Sequence[OnnxOperand], values: Sequence[OnnxOperand]
    ) -> Sequence[OnnxOperand]:
        """Return variables that an operator with these parameters updates, which begin with these values.

        Files hold equal values once, so other readers of such a value must not see the updates.
        """
        return self._states.setdefault(
            (*parameters, *values),
            tuple(dataclasses.replace(each, symbol=None) for each in values),
        )

    def inferred(self, operator: Operator, attributes: Attributes, given: Mapping[str, Shape]) -> Any:
        """Return the shapes of an operator's outputs, inferred once for equal inputs."""
        key = (id(operator), attributes, tuple(given.values()))
        if key not in self._inferred:
            self.effort += ANALYSED_ANEW
            self._inferred[key] = operator.infer(attributes, given)
        return self._inferred[key]

    def claim(self, name: str) -> str:
        """Return the name, or the name with a number if it is taken, and take it."""
        unused = self.names.unused(name)
        self.names.taken.add(unused)
        return unused

    def reserve(self, name: str) -> str:
        """Claim a name for the first value that has it."""
        claimed = self.claim(name)
        self._reserved.add(claimed)
        return claimed

    def _own(self, name: str) -> str | None:
        """Return a name that was reserved, once."""
        if name not in self._reserved:
            return None
        self._reserved.remove(name)
        return name

    def begin(self, name: str) -> None:
        """Begin a node of the file, whose name all that is made for it begins with."""
        self.prefix = f"{name}."
        self._made.clear()

    def made(self, node: Node) -> None:
        """Note a node that was made for the node of the file."""
        self._made.add(node)
        self.effort += 1

    def named(self, operands: Sequence[OnnxOperand], name: str) -> list[OnnxOperand]:
        """Return outputs of which the first has the name of the file's node, if it was made for it."""
        old = operands[0].symbol.heads[0].node if operands[0].symbol is not None else None
        if old is None or old not in self._made:
            return list(operands)
        new = dataclasses.replace(old, name=name)
        return [self._renamed(operand, old, new) for operand in operands]

    def _renamed(self, operand: OnnxOperand, old: Node, new: Node) -> OnnxOperand:
        head = None if operand.symbol is None else operand.symbol.heads[0]
        if head is None or head.node is not old:
            return operand
        return dataclasses.replace(operand, symbol=Symbol((Entry(new, head.output),)))

    def values(self, symbol: Symbol) -> Mapping[str, Array]:
        """Return the values of a symbol's variables."""
        variables = (*symbol.list_arguments(), *symbol.list_auxiliary_states())
        return {name: self._values[name] for name in variables if name in self._values}


def floats(array: Array, name: str) -> Array:
    """Return a value as floating-point numbers. Raises UnsupportedNodeError if whole numbers are inexact."""
    if array.dtype in (np.float16, np.float32, np.float64):
        return array
    if array.dtype.kind not in "iub" and array.dtype.name != "bfloat16":
        raise UnsupportedNodeError(f"the type {array.dtype} of constant {name!r}")
    found = array.astype(np.float32)
    if array.dtype.kind in "iu" and (found.astype(np.float64) != array.astype(np.float64)).any():
        raise UnsupportedNodeError(f"constant {name!r} holds whole numbers that float32 does not have")
    return found
