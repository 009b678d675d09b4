"""Check indices: an index is piecewise affine in the index variables, or depends on data.

Piecewise affine expressions are sums and differences of index variables, their products with constants, their
floor quotients and remainders by constants, and `minimum`, `maximum` and `abs` of such expressions.
Attributes and `.shape` count as constants. An index that reads a tensor (`weight[data[b], j]`) may compute
any whole number from it.
"""

from __future__ import annotations

from ..ast import (
    Attribute,
    Binary,
    Call,
    Choice,
    Element,
    Expression,
    Extent,
    Number,
    OpaqueElement,
    Pad,
    ReducerCall,
    Unary,
    Variable,
)
from ..choices import is_choice
from ..functions import FUNCTIONS
from ..printer import format_expression
from ..source import Diagnostic
from ..traverse import reads_elements, variable_names


def check_index(index: Expression) -> list[Diagnostic]:
    """Return complaints about one index of a tensor's element."""
    complaints = check_whole(index, "an index")
    if not complaints and not reads_elements(index):
        _check_affine(index, complaints)
    return complaints


def check_whole(node: Expression, what: str) -> list[Diagnostic]:
    """Return complaints if an expression can be other than a whole number, leaving aside what tensors
    hold.
    """
    match node:
        case Number(value=float() as value):
            hint = f"write {int(value)}" if value.is_integer() else f"{what} is a whole number"
            return [Diagnostic(f"{what} cannot be the float {value}", node.span, hint)]
        case Binary(operator="/"):
            message = f"{what} is a whole number, but '/' gives fractions"
            return [Diagnostic(message, node.span, "write // for the floor of the quotient")]
        case Binary(operator="**", right=Number(value=value)) if value < 0:
            return [Diagnostic(f"{what} is a whole number, but a negative power is not", node.span)]
        case Binary(left=left, right=right):
            return check_whole(left, what) + check_whole(right, what)
        case Unary(operand=operand):
            return check_whole(operand, what)
        case Call(function="floor" | "ceil" | "round" | "trunc"):
            return []
        case Call(function=function, arguments=arguments):
            if function in FUNCTIONS and not FUNCTIONS[function].integer:
                message = f"{what} is a whole number, but {function} gives fractions"
                return [Diagnostic(message, node.span, f"write floor({format_expression(node)})")]
            return [complaint for argument in arguments for complaint in check_whole(argument, what)]
        case ReducerCall(body=body):
            return check_whole(body, what)
        case _:
            return []


def _check_affine(node: Expression, complaints: list[Diagnostic]) -> bool:
    """Return whether the expression holds index variables. Complain if it is not affine in them."""
    match node:
        case Number() | Attribute() | Choice() | Extent() | Element() | Pad() | OpaqueElement():
            return False
        case Variable():
            return True
        case Unary(operator="-", operand=operand):
            return _check_affine(operand, complaints)
        case Binary(operator="+" | "-", left=left, right=right):
            return any([_check_affine(left, complaints), _check_affine(right, complaints)])
        case Binary(operator="*", left=left, right=right):
            both = [_check_affine(left, complaints), _check_affine(right, complaints)]
            if all(both):
                complaints.append(_not_affine(node, "multiply index variables by constants only"))
            return any(both)
        case Binary(operator="//" | "%", left=left, right=right):
            if _check_affine(right, complaints):
                complaints.append(_not_affine(node, "divide by constants only"))
            return _check_affine(left, complaints)
        case Call(function="minimum" | "maximum" | "abs", arguments=arguments):
            mention = [_check_affine(argument, complaints) for argument in arguments]
            return any(mention)
        case Call(function="where", arguments=(condition, *arguments)) if is_choice(condition):
            mention = [_check_affine(argument, complaints) for argument in arguments]
            return any(mention)
        case _:
            if variable_names(node):
                hint = "use +, -, minimum, maximum, abs, and *, //, % by constants"
                complaints.append(_not_affine(node, hint))
                return True
            return False


def _not_affine(node: Expression, hint: str) -> Diagnostic:
    message = f"index '{format_expression(node)}' is not affine in the index variables"
    return Diagnostic(message, node.span, hint)
