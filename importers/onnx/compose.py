"""Operators of the library, and descriptions in TDL, applied to operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.symbol.compose import apply as composed
from ...errors import GraphError
from ...operators.declare import parse
from ...operators.library import registry
from ...operators.operator import Operator
from .operand import Constants, OnnxOperand, constant

LETTERS = "abcdefgh"

MOST_JOINED = 64
"""More parts than these are concatenated in groups: a description has a term for each."""

KIND = "__onnx__"
"""The setting of a node whose description has the meaning of the ONNX operator that it names."""

SAME = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "prelu": "PRelu",
    "matmul": "MatMul",
    "expand": "Expand",
    "erf_": "Erf",
}
"""By the names of descriptions, the ONNX operators that they are."""


def outputs(operator: str | Operator, *operands: OnnxOperand, **attributes: Any) -> list[OnnxOperand]:
    """Return all outputs of an operator for operands in the order of its arguments and auxiliary states.

    Raises ShapeError, OperatorError.
    """
    found = registry.get(operator) if isinstance(operator, str) else operator
    scope = Constants.innermost.get()
    if found.count_attribute is not None:
        attributes.setdefault(found.count_attribute, len(operands))
    checked = found.attributes(attributes)
    slots = (*found.arguments(checked), *found.auxiliary)
    given = dict(zip(slots, operands, strict=True))
    shapes = scope.inferred(found, checked, {slot: each.held for slot, each in given.items()})
    symbols = [scope.symbol(each) for each in operands]
    made = composed(found, *symbols, name=scope.claim(scope.prefix + found.name), **attributes)
    scope.made(made.heads[0].node)
    dtype = operands[0].dtype if operands else np.dtype(np.float32)
    results = [OnnxOperand(shapes[f"output_{k}"], dtype, output) for k, output in enumerate(made)]
    numbers = bool(operands) and not any(each.ndim for each in operands)
    return [shaped(each, ()) if numbers and each.shape == (1,) else each for each in results]


def apply(operator: str | Operator, *operands: OnnxOperand, **attributes: Any) -> OnnxOperand:
    """Return the only output of an operator."""
    (found,) = outputs(operator, *operands, **attributes)
    return found


@cache
def parsed(text: str) -> Operator:
    """Return the operator of a text of this package."""
    return parse(text, "importers/onnx")


def described(text: str, *operands: OnnxOperand, **attributes: Any) -> OnnxOperand:
    """Return the only output of a description in TDL."""
    operator = parsed(text)
    settings = {KIND: SAME[operator.name]} if operator.name in SAME else {}
    return apply(operator, *operands, **attributes, **settings)


def shaped(operand: OnnxOperand, shape: Shape) -> OnnxOperand:
    """Return an operand under a shape of as many elements that is held in the same way: `()` and `(1,)`."""
    return OnnxOperand(shape, operand.dtype, operand.symbol, operand.array, operand.name, operand.trained)


def reshape(operand: OnnxOperand, shape: Sequence[int]) -> OnnxOperand:
    """Return the same elements under another shape, in which -1 stands for what remains."""
    target = tuple(shape)
    if -1 in target:
        rest = prod(extent for extent in target if extent != -1)
        if target.count(-1) > 1 or rest <= 0 or operand.size % rest:
            raise GraphError(f"{operand.shape} cannot be reshaped to {target}")
        target = tuple(operand.size // rest if extent == -1 else extent for extent in target)
    if prod(target) != operand.size or min(target, default=1) < 0:
        raise GraphError(f"{operand.shape} cannot be reshaped to {target}, which has other elements")
    if target == operand.shape:
        return operand
    if operand.known is not None:
        return constant(operand.known.reshape(target), operand.dtype, operand.name)
    if operand.symbol is not None and operand.held == (target or (1,)):
        return shaped(operand, target)
    found = apply("Reshape", operand, shape=target or (1,)) if operand.held != (target or (1,)) else operand
    return shaped(_of_symbol(found), target)


def _of_symbol(operand: OnnxOperand) -> OnnxOperand:
    """Return an operand whose symbol is made."""
    if operand.symbol is not None:
        return operand
    symbol = Constants.innermost.get().symbol(operand)
    return OnnxOperand(operand.shape, operand.dtype, symbol, operand.array, operand.name, operand.trained)


def elementwise(name: str, expression: str, *operands: OnnxOperand) -> OnnxOperand:
    """Return an expression of the elements of operands that are stretched to each other.

    It has a place `{0}`, `{1}`, ... for each. Extents of one are read at index 0, so nothing is copied.
    """
    shape = broadcast(*(operand.shape for operand in operands))
    variables = [f"i{axis}" for axis in range(max(len(shape), 1))]
    reads = [
        f"{letter}[{', '.join(_indices(operand.held, shape or (1,), variables))}]"
        for letter, operand in zip(LETTERS, operands, strict=False)
    ]
    text = f"def {name}({', '.join(LETTERS[: len(operands)])}):\n    return lambda {', '.join(variables)}: "
    return shaped(described(text + expression.format(*reads), *operands), shape)


def _indices(held: Shape, shape: Shape, variables: Sequence[str]) -> list[str]:
    own = variables[len(variables) - len(held) :]
    wanted = shape[len(shape) - len(held) :]
    return [
        "0" if extent == 1 and whole != 1 else variable
        for extent, whole, variable in zip(held, wanted, own, strict=True)
    ]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all have together. Raises GraphError."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise GraphError(f"the shapes {', '.join(map(str, shapes))} do not fit each other") from None


def stretched(operand: OnnxOperand, shape: Shape) -> OnnxOperand:
    """Return an operand stretched to a shape."""
    if operand.shape == shape:
        return operand
    variables = [f"i{axis}" for axis in range(max(len(shape), 1))]
    sized = [f"{variable}={extent}" for variable, extent in zip(variables, shape or (1,), strict=True)]
    read = ", ".join(_indices(operand.held, shape or (1,), variables))
    return shaped(
        described(f"def expand(a):\n    return lambda {', '.join(sized)}: a[{read}]", operand), shape
    )


def empty(operand: OnnxOperand, axis: int) -> OnnxOperand:
    """Return a tensor like another, but without elements along a dimension."""
    shape = list(operand.shape)
    shape[axis] = 0
    return constant(np.zeros(shape), operand.dtype)


def joined(tensors: Sequence[OnnxOperand], axis: int) -> OnnxOperand:
    """Return tensors one after the other along a dimension."""
    parts = [each for each in tensors if 0 not in each.shape] or tensors[:1]
    arrays = [part.known for part in parts]
    if all(array is not None for array in arrays):
        return constant(np.concatenate(arrays, axis), parts[0].dtype)  # type: ignore[arg-type]
    rows = list(parts)
    while len(rows) > 1:
        groups = [rows[start : start + MOST_JOINED] for start in range(0, len(rows), MOST_JOINED)]
        rows = [apply("Concat", *group, dim=axis) if len(group) > 1 else group[0] for group in groups]
    return rows[0]


def picked(data: OnnxOperand, axis: int, index: int) -> OnnxOperand:
    """Return the slice at an index of a dimension, without that dimension."""
    if data.known is not None:
        return constant(np.take(data.known, index, axis), data.dtype)
    part = apply("slice_axis", data, axis=axis, begin=index, end=index + 1)
    return reshape(part, (*data.shape[:axis], *data.shape[axis + 1 :]))


def scaled(operand: OnnxOperand, scale: float, offset: float = 0.0) -> OnnxOperand:
    """Return `scale` times the operand plus `offset`."""
    found = operand if scale == 1 else apply("_mul_scalar", operand, scalar=scale)
    return found if offset == 0 else apply("_plus_scalar", found, scalar=offset)
