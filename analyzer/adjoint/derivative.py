"""Partial derivatives of scalar expressions with respect to one of their parts."""

from __future__ import annotations

from typing import assert_never

from ...errors import OperatorError
from ...tdl.ast import (
    Attribute,
    Binary,
    Call,
    Choice,
    Description,
    Element,
    Expression,
    Extent,
    Number,
    OpaqueElement,
    Pad,
    ReducerCall,
    Span,
    Unary,
    Variable,
)
from ...tdl.derivatives import derivative
from ...tdl.traverse import reads_elements
from ..source_errors import error_at
from .algebra import ONE, ZERO, add, choose, conjunction, divide, multiply, negate, power, subtract

Part = Element | ReducerCall


def partial(description: Description, node: Expression, part: Part) -> Expression:
    """Return the derivative of `node` with respect to `part`, every other element and reduction held fixed.

    `part` is an element, or a reduction that stands in `node`. Comparisons, rounding and remainders count as
    piecewise constant. Raises OperatorError for a function without a derivative.
    """
    if node == part:
        return ONE
    match node:
        case (
            Number()
            | Variable()
            | Attribute()
            | Choice()
            | Extent()
            | Element()
            | ReducerCall()
            | OpaqueElement()
        ):
            return ZERO
        case Pad(element, value):
            inside = ONE if element == part else ZERO
            outside = partial(description, value, part)
            return inside if outside == ZERO else choose(_within(element), inside, outside)
        case Unary("-", operand):
            return negate(partial(description, operand, part))
        case Unary():
            return ZERO
        case Binary():
            return _binary(description, node, part)
        case Call():
            return _call(description, node, part)
        case _:
            assert_never(node)


def _binary(description: Description, node: Binary, part: Part) -> Expression:
    left, right = node.left, node.right
    left_slope, right_slope = (partial(description, side, part) for side in (left, right))
    if left_slope == ZERO and right_slope == ZERO:
        return ZERO
    match node.operator:
        case "+":
            return add(left_slope, right_slope)
        case "-":
            return subtract(left_slope, right_slope)
        case "*":
            return add(multiply(left_slope, right), multiply(left, right_slope))
        case "/":
            falling = divide(multiply(left, right_slope), power(right, Number(2)))
            return subtract(divide(left_slope, right), falling)
        case "**":
            lower = multiply(right, power(_unless_zero(right, left), subtract(right, ONE)), left_slope)
            logarithm = Call("log", (_unless_zero(left, left),))
            return add(lower, multiply(node, logarithm, right_slope))
        case "%":
            return subtract(left_slope, multiply(Binary("//", left, right), right_slope))
        case _:
            return ZERO


def _unless_zero(tested: Expression, node: Expression) -> Expression:
    """Return a node, or one if another is zero, so that zero times a power or a logarithm is zero.

    Powers of indices stay as they are, since scans are recognised by them.
    """
    if isinstance(tested, Number):
        return ONE if tested.value == 0 else node
    return choose(Binary("==", tested, ZERO), ONE, node) if reads_elements(tested) else node


def _call(description: Description, node: Call, part: Part) -> Expression:
    slopes = [partial(description, argument, part) for argument in node.arguments]
    if node.function == "where":
        return choose(node.arguments[0], slopes[1], slopes[2])
    terms: list[Expression] = []
    for position, slope in enumerate(slopes):
        if slope == ZERO:
            continue
        outer = derivative(node, position)
        if outer is None:
            reason = f"the language has no function that is the derivative of {node.function}"
            raise no_adjoint(description, node.span, reason)
        terms.append(multiply(outer, slope))
    return add(*terms)


def _within(element: Element) -> Expression:
    """Return whether a padded access stays inside its tensor."""
    conditions: list[Expression] = []
    for axis, index in enumerate(element.indices):
        if isinstance(index, Expression):
            conditions.append(Binary(">=", index, ZERO))
            conditions.append(Binary("<", index, Extent(element.tensor, axis)))
    return conjunction(tuple(conditions))


def no_adjoint(
    description: Description,
    span: Span,
    reason: str,
    hint: str = "apply the operator to data, which needs no gradient, or write it without",
) -> OperatorError:
    """Return the error for a description that cannot be differentiated, with the place in its text."""
    place = error_at(description, span, reason, hint)
    return OperatorError(f"{description.name} has no derived gradient\n{place}")
