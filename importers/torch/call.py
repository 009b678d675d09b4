"""A call of an ATen operator with its arguments, and descriptions applied to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isinf, isnan
from typing import Any, Literal

from ... import tdl
from ...analyzer.indices.region import Shape
from ...dataflow.symbol import Symbol
from ...dataflow.symbol.compose import apply
from ...errors import OperatorError
from ...operators.declare import operator_of
from ...operators.operator import Operator

Kind = Literal["float", "int", "bool", "complex"]


class UnsupportedCallError(OperatorError):
    """A call asks for something that no description covers; the message says what."""


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A value that depends on inputs or parameters."""

    symbol: Symbol
    """The value in the symbol."""

    shape: Shape
    """The shape in PyTorch. The symbol has (1,) for a tensor without dimensions."""

    kind: Kind
    """The kind of the elements. The graph stores all of them as floating-point numbers."""

    @property
    def rank(self) -> int:
        return len(self.shape)


Operand = TensorValue | float
"""A tensor, or a number that is written into the description."""


@dataclass(frozen=True, slots=True)
class AtenResult:
    """An output of a call, as PyTorch states it."""

    shape: Shape
    """The shape."""

    kind: Kind
    """The kind of the elements."""


@dataclass(frozen=True, slots=True)
class AtenCall:
    """One call of an ATen operator."""

    target: str
    """The operator without its overload: `aten.linear`."""

    name: str
    """The name of the operation in the symbol."""

    arguments: Mapping[str, Any]
    """The arguments by the names of the operator's schema: tensors, constants of PyTorch, numbers, lists."""

    results: tuple[AtenResult, ...]
    """The outputs."""

    constants: Callable[[Any, str], TensorValue]
    """Makes a variable that is not trained from a constant of PyTorch, and names it after a call."""

    unique: Callable[[str], str]
    """Returns a name that no other operation has."""

    @property
    def result(self) -> AtenResult:
        return self.results[0]

    def has(self, key: str) -> bool:
        return self.arguments.get(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        value = self.arguments.get(key)
        return default if value is None else value

    def tensor(self, key: str) -> TensorValue:
        """Return an argument as a tensor of the symbol."""
        return self.as_tensor(self.arguments[key])

    def tensors(self, key: str) -> list[TensorValue]:
        """Return a list of tensors."""
        return [self.as_tensor(value) for value in self.arguments[key]]

    def as_tensor(self, value: Any) -> TensorValue:
        return value if isinstance(value, TensorValue) else self.constant(value)

    def constant(self, value: Any) -> TensorValue:
        """Return a constant of PyTorch, or a number, as a tensor of the symbol."""
        return self.constants(value, self.name)

    def operand(self, key: str, default: float | None = None) -> Operand:
        """Return a number or a tensor. A constant is a number if all of its elements are equal, and has
        one element in dimensions along which it does not change in memory.
        """
        value = self.arguments.get(key)
        if value is None:
            if default is None:
                raise UnsupportedCallError(f"{self.target} without {key}")
            return default
        if isinstance(value, TensorValue | bool | int | float):
            return value
        if not value.numel():
            raise UnsupportedCallError(f"{self.target} of a tensor without elements")
        for axis, stride in enumerate(value.stride()):
            if stride == 0:
                value = value.narrow(axis, 0, 1)
        first = value.reshape(-1)[0]
        if bool((value == first).all()):
            number: float = first.item()
            return number
        return self.constant(value)

    def axes(self, key: str, rank: int) -> tuple[int, ...]:
        """Return dimensions counted from the front; all of them if none are given."""
        given = self.arguments.get(key)
        if given is None or given == []:
            return tuple(range(rank))
        listed = [given] if isinstance(given, int) else given
        return tuple(sorted(axis % rank for axis in listed)) if rank else ()

    def axis(self, key: str, rank: int, default: int | None = None) -> int:
        """Return one dimension counted from the front."""
        given: int = self.get(key, default)
        return given % rank if rank else 0

    def only(self, **expected: object) -> None:
        """Raise UnsupportedCallError if an argument has another value than the only one described."""
        for key, value in expected.items():
            if self.get(key, value) != value:
                raise UnsupportedCallError(f"{self.target} with {key}={self.arguments[key]}")

    def apply(
        self, operator: str | Operator, *inputs: TensorValue, step: str = "", **attributes: Any
    ) -> Symbol:
        """Apply an operator. `step` is added to the name if the call becomes several operations."""
        name = f"{self.name}.{step}" if step else self.name
        symbols = (tensor.symbol for tensor in inputs)
        return apply(operator, *symbols, name=self.unique(name), **attributes)

    def library(
        self,
        operator: str,
        *inputs: TensorValue,
        shape: Shape | None = None,
        kind: Kind | None = None,
        step: str = "",
        **attributes: Any,
    ) -> TensorValue:
        """Apply an operator of the library; the result is the call's if no shape is given."""
        symbol = self.apply(operator, *inputs, step=step, **attributes)
        return TensorValue(symbol, self.result.shape if shape is None else shape, kind or self.result.kind)

    def described(
        self,
        tensors: Mapping[str, TensorValue],
        result: str,
        *,
        stages: Sequence[str] = (),
        shape: Shape | None = None,
        kind: Kind | None = None,
        step: str = "",
    ) -> TensorValue:
        """Apply a description that reads these tensors: `result` is its last lambda, after `stages`."""
        head = f"def {self.target.replace('.', '_')}({', '.join(tensors)}):"
        text = "\n    ".join((head, *stages, f"return {result}"))
        symbol = self.apply(operator_from(text), *tensors.values(), step=step)
        return TensorValue(symbol, self.result.shape if shape is None else shape, kind or self.result.kind)


@cache
def operator_from(text: str) -> Operator:
    """Return the operator of a text; equal texts give one operator, which is analysed once."""
    return operator_of(tdl.parse(text, "<PyTorch>"))


def literal(value: float) -> str:
    """Return a number as TDL text. Raises UnsupportedCallError for NaN."""
    if isinstance(value, bool):
        return str(int(value))
    if isnan(value):
        raise UnsupportedCallError("the constant NaN")
    if isinf(value):
        return "inf" if value > 0 else "(-inf)"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    text = repr(value if abs(value) < 2**62 else float(value))
    return f"({text})" if value < 0 else text


def as_element(value: Any, kind: Kind) -> Any:
    """Return a number as PyTorch puts it into a tensor of this kind. Tensors stay as they are."""
    if isinstance(value, TensorValue) or kind not in ("int", "bool"):
        return value
    return int(value) if kind == "int" else bool(value)


NARROWED: Mapping[tuple[Kind, Kind], str] = {
    ("float", "int"): "trunc({0})",
    ("float", "bool"): "where({0} != 0, 1, 0)",
    ("int", "bool"): "where({0} != 0, 1, 0)",
}
"""Formulas of casts, by the kinds from and to. Other casts keep the number."""


def narrowed(source: Operand, wanted: Kind) -> str:
    """Return the formula of an operand that is cast: truncated to whole numbers, or to truth values."""
    kind: Kind = "float"
    if isinstance(source, TensorValue):
        kind = source.kind
    elif isinstance(source, int):
        kind = "int"
    return NARROWED.get((kind, wanted), "{0}")


def variables(rank: int, prefix: str = "i") -> list[str]:
    """Return names of index variables."""
    return [f"{prefix}{axis}" for axis in range(rank)]


def at(name: str, indices: Sequence[str]) -> str:
    """Return an element. A tensor without dimensions has one element in the symbol."""
    return f"{name}[{', '.join(indices) or '0'}]"


def bound(names: Sequence[str], shape: Sequence[int] | None = None) -> str:
    """Return binders, with extents if a shape is given. Without variables there is one of one value."""
    if not names:
        return "one=1"
    if shape is None:
        return ", ".join(names)
    return ", ".join(f"{name}={extent}" for name, extent in zip(names, shape, strict=True))


def stretched(name: str, shape: Shape, common: Shape, names: Sequence[str]) -> str:
    """Return the element of a tensor that broadcasting puts at the index variables of a common shape."""
    offset = len(common) - len(shape)
    return at(
        name,
        [
            "0" if extent == 1 and common[offset + axis] != 1 else names[offset + axis]
            for axis, extent in enumerate(shape)
        ],
    )


LETTERS = ("a", "b", "c", "d")


def elementwise(
    call: AtenCall,
    body: str,
    *operands: Operand,
    shape: Shape | None = None,
    kind: Kind | None = None,
    step: str = "",
) -> TensorValue:
    """Compute each element from the elements that broadcasting puts there, which are `{0}`, `{1}`, ..."""
    common = call.result.shape if shape is None else shape
    names = variables(len(common))
    tensors: dict[str, TensorValue] = {}
    parts = []
    for operand in operands:
        if not isinstance(operand, TensorValue):
            parts.append(literal(operand))
            continue
        known = (letter for letter, tensor in tensors.items() if tensor.symbol.heads == operand.symbol.heads)
        letter = next(known, LETTERS[len(tensors)])
        tensors[letter] = operand
        parts.append(stretched(letter, operand.shape, common, names))
    binders = []
    for axis, extent in enumerate(common):
        behind = len(common) - axis
        seen = any(
            tensor.rank >= behind and tensor.shape[-behind] == extent for tensor in tensors.values()
        ) and any(f"{names[axis]}" in _indices(part) for part in parts)
        binders.append(names[axis] if seen else f"{names[axis]}={extent}")
    return call.described(
        tensors,
        f"lambda {', '.join(binders) or 'one=1'}: {body.format(*parts)}",
        shape=common,
        kind=kind,
        step=step,
    )


def _indices(part: str) -> list[str]:
    return part.partition("[")[2].rstrip("]").split(", ")
