"""Canonical text of a description: minimal parentheses, one layout; parsing it gives an equal tree."""

from __future__ import annotations

import math
from typing import assert_never

from .ast import (
    Attribute,
    AttributeParameter,
    Binary,
    Binder,
    Call,
    Choice,
    CustomReducer,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Lambda,
    Number,
    OpaqueElement,
    Pad,
    ReducerCall,
    Star,
    Unary,
    Variable,
)
from .traverse import custom_reducers

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
_PRECEDENCE = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARISON),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "//", "%"), _PRODUCT),
    "**": _POWER,
}


def format(description: Description) -> str:
    """Return the canonical text, such that `parse(format(d)) == d`."""
    lines = [f"def {description.name}({_parameters(description)}):"]
    lines += [f"    {name} = Opaque()" for name in description.opaques]
    lines += [f"    {reducer} = {format_reducer(reducer)}" for reducer in custom_reducers(description)]
    lines += [f"    {stage.name} = {format_lambda(stage.value)}" for stage in description.stages]
    outputs = [format_lambda(output) for output in description.outputs]
    if len(outputs) == 1:
        lines.append(f"    return {outputs[0]}")
    else:
        lines += ["    return (", *(f"        {output}," for output in outputs), "    )"]
    return "\n".join(lines) + "\n"


def format_lambda(value: Lambda) -> str:
    """Return the text of a lambda."""
    return f"{_head(value.variables)}: {format_expression(value.body)}"


def format_reducer(reducer: CustomReducer) -> str:
    """Return the text that declares a custom reducer, without its name."""
    body = format_expression(reducer.body)
    return f"Reducer(lambda {reducer.left}, {reducer.right}: {body}, {_constant(reducer.identity)})"


def format_expression(node: Index) -> str:
    """Return the text of an expression or index."""
    return _text(node, _OR)


def _parameters(description: Description) -> str:
    names = list(description.tensor_names)
    if description.attributes:
        names += ["*", *map(_attribute, description.attributes)]
    return ", ".join(names)


def _attribute(parameter: AttributeParameter) -> str:
    match parameter.default:
        case None:
            return parameter.name
        case (single,):
            return f"{parameter.name}=({_constant(single)},)"
        case tuple() as values:
            return f"{parameter.name}=({', '.join(map(_constant, values))})"
        case str() as word:
            return f'{parameter.name}="{word}"'
        case value:
            return f"{parameter.name}={_constant(value)}"


def _constant(value: int | float) -> str:
    if isinstance(value, float) and value == math.pi:
        return "pi"
    return repr(value)


def _head(variables: tuple[Binder, ...]) -> str:
    return "lambda " + ", ".join(map(_binder, variables)) if variables else "lambda"


def _binder(binder: Binder) -> str:
    if binder.extent is not None:
        return f"{binder.name}={format_expression(binder.extent)}"
    return f"*{binder.name}" if binder.star else binder.name


def _indices(indices: tuple[Index, ...]) -> str:
    return ", ".join(map(format_expression, indices)) if indices else "()"


def _text(node: Index, least: int) -> str:
    """Return the text, in parentheses if the node binds looser than `least`."""
    text, precedence = _bare(node)
    return f"({text})" if precedence < least else text


def _bare(node: Index) -> tuple[str, int]:
    match node:
        case Number(value=value):
            if isinstance(value, bool):
                value = int(value)
            return _constant(value), _SIGN if math.copysign(1, value) < 0 else _ATOM
        case Variable(name=name):
            return name, _ATOM
        case Star(name=name):
            return f"*{name}", _ATOM
        case FullSlice():
            return ":", _ATOM
        case Attribute(name=name, index=index):
            return (name if index is None else f"{name}[{index}]"), _ATOM
        case Choice(attribute=attribute, value=word):
            return f'{attribute} == "{word}"', _COMPARISON
        case Extent(tensor=tensor, axis=axis):
            return f"{tensor}.shape[{axis}]", _ATOM
        case Element(tensor=tensor, indices=indices):
            return f"{tensor}[{_indices(indices)}]", _ATOM
        case Pad(element=element, value=filler):
            return f"pad({format_expression(element)}, {format_expression(filler)})", _ATOM
        case Unary(operator=operator, operand=operand):
            return _unary(operator, operand)
        case Binary():
            return _binary(node)
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(format_expression, arguments))})", _ATOM
        case ReducerCall(reducer=reducer, variables=variables, body=body):
            return f"{reducer}({_head(variables)}: {format_expression(body)})", _ATOM
        case OpaqueElement(function=function, arguments=arguments, indices=indices):
            return f"{function}({', '.join(map(format_expression, arguments))})[{_indices(indices)}]", _ATOM
        case _:
            assert_never(node)


def _unary(operator: str, operand: Expression) -> tuple[str, int]:
    if operator == "not":
        return f"not {_text(operand, _NOT)}", _NOT
    if isinstance(operand, Number):
        return f"-({_text(operand, _OR)})", _SIGN
    return f"-{_text(operand, _SIGN)}", _SIGN


def _binary(node: Binary) -> tuple[str, int]:
    precedence = _PRECEDENCE[node.operator]
    left, right = precedence, precedence + 1
    if node.operator == "**":
        left, right = _ATOM, _SIGN
    elif precedence == _COMPARISON:
        left = _SUM
    return f"{_text(node.left, left)} {node.operator} {_text(node.right, right)}", precedence
