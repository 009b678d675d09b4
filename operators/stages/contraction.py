"""Recognise descriptions that sum products of two tensors, as matrix products and convolutions do."""

from __future__ import annotations

from ...tdl import ast
from ...tdl.traverse import reads_elements, variable_names

Factors = tuple[str, str]


def contraction(description: ast.Description) -> Factors | None:
    """Return the two tensors that are multiplied and summed, perhaps scaled by a number; else None.

    Every summed index variable is in both, there is at least one, and some variable of the result is in only
    one of them. Otherwise every product is used once, and a library is not faster.
    """
    if len(description.outputs) != 1:
        return None
    body = _unscaled(description.outputs[0].body)
    match body:
        case ast.ReducerCall(reducer=ast.Reducer.SUM, body=ast.Binary("*", left, right)):
            first, second = _factor(left), _factor(right)
        case _:
            return None
    if first is None or second is None:
        return None
    summed = {binder.name for binder in body.variables}
    own, other = variable_names(first), variable_names(second)
    alone = own ^ other
    if not own & other & summed or alone & summed or not alone:
        return None
    return first.tensor, second.tensor


def _unscaled(body: ast.Expression) -> ast.Expression:
    """Return the expression without the numbers that it is multiplied or divided by."""
    match body:
        case ast.Unary("-", inner) | ast.Binary("*" | "/", inner, ast.Number()):
            return _unscaled(inner)
        case ast.Binary("*", ast.Number(), inner):
            return _unscaled(inner)
        case _:
            return body


def _factor(factor: ast.Expression) -> ast.Element | None:
    """Return the one element that a factor is, zero if there is none."""
    match factor:
        case ast.Element(indices=indices) if not any(reads_elements(index) for index in indices):
            return factor
        case ast.Pad(element=element, value=ast.Number(value=0)):
            return _factor(element)
        case ast.Call("where", (condition, chosen, ast.Number(value=0))) if not reads_elements(condition):
            return _factor(chosen)
        case _:
            return None
