"""Index expressions: their CUDA text, and how large their intermediate values can get.

Indices are affine in the index variables, with floor quotients and remainders by constants, minima, maxima
and absolute values. They are computed in the template parameter `Index`, which is 32 bits wide wherever
`magnitude` allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ...errors import OperatorError
from ...tdl import ast
from ...tdl.printer import format_expression
from .parameters import ParameterStruct

INT32 = 1 << 31


def index_text(parameters: ParameterStruct, index: ast.Index) -> str:
    """Return the text of an index that reads no tensor.

    Raises OperatorError for anything that is not an index.
    """

    def text(node: ast.Index) -> str:
        match node:
            case ast.Number(value=int(value)):
                return str(int(value)) if abs(value) < INT32 else f"Index({value}LL)"
            case ast.Variable(name=name):
                return parameters.variable(name)
            case ast.Extent(tensor=tensor, axis=axis):
                return f"Index({parameters.extent(tensor, axis)})"
            case ast.Unary(operator="-", operand=operand):
                return f"(-{text(operand)})"
            case ast.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
                return f"({text(left)} {operator} {text(right)})"
            case ast.Binary(operator="//", left=left, right=right):
                return f"tofu::floor_quotient<Index>({text(left)}, {text(right)})"
            case ast.Binary(operator="%", left=left, right=right):
                return f"tofu::floor_remainder<Index>({text(left)}, {text(right)})"
            case ast.Binary(operator="**", left=left, right=ast.Number(value=int(power))):
                return f"tofu::raise<Index>({text(left)}, {power})"
            case ast.Call(function="maximum" | "minimum" as function, arguments=(left, right)):
                return f"tofu::{function}<Index>({text(left)}, {text(right)})"
            case ast.Call(function="abs", arguments=(operand,)):
                return f"tofu::absolute<Index>({text(operand)})"
            case _:
                _no_index(parameters, node)

    result = text(index)
    return result[1:-1] if isinstance(index, ast.Binary) and result.startswith("(") else result


def magnitude(parameters: ParameterStruct, index: ast.Index, largest: Mapping[str, int]) -> int:
    """Return an upper bound of the absolute value of the index and of everything it is computed from.

    `largest` bounds variables by their name and extents by the name of their parameter.
    """

    def bound(node: ast.Index) -> int:
        match node:
            case ast.Number(value=value):
                return abs(int(value))
            case ast.Variable(name=name):
                return largest[name]
            case ast.Extent(tensor=tensor, axis=axis):
                return largest[parameters.extent(tensor, axis)]
            case ast.Unary(operand=operand):
                return bound(operand)
            case ast.Binary(operator="*", left=left, right=right):
                return max(bound(left), 1) * max(bound(right), 1)
            case ast.Binary(operator="**", left=left, right=ast.Number(value=power)):
                largest_square: int = max(bound(left), 1) ** max(2 * int(power), 1)
                return largest_square
            case ast.Binary(left=left, right=right):
                return bound(left) + bound(right) + 1
            case ast.Call(arguments=arguments):
                return max(map(bound, arguments))
            case _:
                _no_index(parameters, node)

    return bound(index)


def _no_index(parameters: ParameterStruct, node: ast.Index) -> NoReturn:
    raise OperatorError(
        f"{parameters.operator}: no kernel can be derived, "
        f"'{format_expression(node)}' is not an affine index of a specialised description; specialise it "
        "first, or attach a kernel to the operator"
    )
