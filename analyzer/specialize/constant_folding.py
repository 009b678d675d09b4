"""Fold constants, once the values of attributes are known."""

from __future__ import annotations

import math

import numpy as np

from ...tdl import ast
from ...tdl.arithmetic import ARITHMETIC
from ...tdl.functions import FUNCTIONS
from ...tdl.traverse import Node, transform

CONDITIONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "and", "or"})
MAX_BITS = 62
"""Integers larger than this are not folded."""


def fold(node: Node) -> Node:
    """Return one node whose children are folded already, with the same value for every input.

    Only rules that hold in every arithmetic are used. `x * 0` stays, because x may be infinite or NaN. So
    does `x + 0.0`, which turns an integer into a float.
    """
    match node:
        case ast.Unary("-", ast.Number(value)):
            return ast.Number(-value, node.span)
        case ast.Unary("-", ast.Unary("-", operand)):
            return operand
        case ast.Unary("not", ast.Number(value)):
            return ast.Number(int(not value), node.span)
        case ast.Binary(_, ast.Number(left), ast.Number(right)):
            return _computed(node, left, right)
        case ast.Binary():
            return _simplified(node)
        case ast.Call("where", (ast.Number(condition), chosen, otherwise)):
            return chosen if condition else otherwise
        case ast.Call("maximum" | "minimum" as name, (ast.Number(left), ast.Number(right))):
            return ast.Number(max(left, right) if name == "maximum" else min(left, right), node.span)
        case ast.Call("abs", (ast.Number(value),)):
            return ast.Number(abs(value), node.span)
        case ast.ReducerCall(variables=(), body=body):
            return body
        case ast.Element():
            return ast.Element(node.tensor, tuple(fold_index(index) for index in node.indices), node.span)
        case ast.Binder(name, extent, star, span) if extent is not None:
            return ast.Binder(name, transform(extent, _integer_rule), star, span)
        case ast.OpaqueElement():
            indices = tuple(fold_index(index) for index in node.indices)
            return ast.OpaqueElement(node.function, node.arguments, indices, node.span)
        case _:
            return node


def fold_index(index: ast.Index) -> ast.Index:
    """Fold an index or extent again, with rules for integers: `x // 1` is x, `floor(0.5)` is 0."""
    return transform(index, _integer_rule)


def _integer_rule(node: Node) -> Node:
    match node:
        case ast.Binary("//", left, ast.Number(1)):
            return left
        case ast.Call("floor" | "ceil" | "round" | "trunc" as name, (ast.Number(value),)):
            if math.isinf(value):
                return node
            return ast.Number(int(FUNCTIONS[name].implementation(value)), node.span)
        case ast.Binary() | ast.Unary():
            return fold(node)
        case _:
            return node


def _simplified(node: ast.Binary) -> ast.Expression:
    """Simplify neutral elements, and conditions with one side that is known."""
    match node:
        case ast.Binary("+" | "-", value, number) if _is(number, 0):
            return value
        case ast.Binary("+", number, value) if _is(number, 0):
            return value
        case ast.Binary("*" | "**", value, number) if _is(number, 1):
            return value
        case ast.Binary("*", number, value) if _is(number, 1):
            return value
        case ast.Binary("and", ast.Number(known), other) | ast.Binary("and", other, ast.Number(known)):
            return _known_condition(node, other, decisive=not known)
        case ast.Binary("or", ast.Number(known), other) | ast.Binary("or", other, ast.Number(known)):
            return _known_condition(node, other, decisive=bool(known))
        case _:
            return node


def _known_condition(node: ast.Binary, other: ast.Expression, decisive: bool) -> ast.Expression:
    if decisive:
        return ast.Number(int(node.operator == "or"), node.span)
    is_condition = (isinstance(other, ast.Binary) and other.operator in CONDITIONS) or (
        isinstance(other, ast.Unary) and other.operator == "not"
    )
    return other if is_condition else node


def _computed(node: ast.Binary, left: int | float, right: int | float) -> ast.Expression:
    """Return the result of two numbers; the node itself if that is not finite or too large."""
    with np.errstate(all="ignore"):
        value = ARITHMETIC[node.operator](left, right)
    fits = value.bit_length() <= MAX_BITS if isinstance(value, int) else math.isfinite(value)
    return ast.Number(value, node.span) if fits else node


def _is(node: ast.Expression, value: int) -> bool:
    """Return whether a node is this integer; a float would change the type of what it is combined with."""
    return isinstance(node, ast.Number) and isinstance(node.value, int) and node.value == value
