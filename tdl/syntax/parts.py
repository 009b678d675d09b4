"""The builder's intermediate values: pieces of text whose surroundings are not known yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from .. import ast
from ..ast import Expression, Index, Lambda, Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name whose meaning depends on its surroundings."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Shape:
    """`tensor.shape` before its axis is read."""

    tensor: str
    span: Span


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """`function(slices)` before its indices are read."""

    function: str
    arguments: tuple[ast.Element, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AttributeSetting:
    """`name=value` among the arguments of a call."""

    name: str
    value: Expression | Quoted
    span: Span


@dataclass(frozen=True, slots=True)
class DescriptionCall:
    """`description(tensors, attribute=value)` before its indices are read."""

    name: str
    """The description that is called."""

    arguments: tuple[Part, ...]
    """Names of tensors, slices and settings."""

    span: Span
    """The place in the text."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """`Opaque()` or `Reducer(...)`, read where all declarations are."""

    keyword: str
    span: Span


@dataclass(frozen=True, slots=True)
class Failed:
    """A placeholder for a part that was complained about."""

    span: Span


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string: a word that a choice is compared with, or its value in a call."""

    value: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """A parenthesised expression: `-(1)` negates a number, `-1` is one."""

    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Listing:
    """The items of a rule that only lists."""

    values: tuple[Part, ...]
    span: Span


Part = (
    Index
    | ast.Binder
    | Lambda
    | Name
    | Shape
    | OpaqueCall
    | DescriptionCall
    | AttributeSetting
    | Declaration
    | Failed
    | Group
    | Listing
    | Quoted
)


def why_no_value(
    part: Shape
    | OpaqueCall
    | DescriptionCall
    | AttributeSetting
    | Declaration
    | Lambda
    | ast.Star
    | ast.FullSlice
    | Quoted,
) -> tuple[str, Span, str]:
    """Return message, place and hint for a part that is not a value."""
    match part:
        case Shape(tensor=tensor):
            message = f"'{tensor}.shape' needs an axis"
            hint = f"write {tensor}.shape[0] for the first dimension"
        case AttributeSetting(name=name):
            message = f"'{name}' is given by name"
            hint = "only attributes of a description that is called have names; equality is written =="
        case OpaqueCall(function=function) | DescriptionCall(name=function):
            message = f"the result of '{function}' is a tensor and must be indexed"
            hint = f"write {function}(...)[i, j]"
        case Declaration(keyword=keyword):
            message = (
                f"{'an opaque function' if keyword == 'Opaque' else 'a custom reducer'} must have a name"
            )
            hint = f"write name = {keyword}{'()' if keyword == 'Opaque' else '(...)'} before the return"
        case Lambda():
            message = "a lambda is not a value here"
            hint = "a lambda is returned, a stage, or the argument of a reducer"
        case ast.Star(name=name):
            message, hint = f"'*{name}' is not a value", "it may only stand as an index"
        case Quoted():
            message = "a string is not a value"
            hint = 'an attribute with a string as default is compared with strings: mode == "edge"'
        case ast.FullSlice():
            message, hint = "':' is not a value", "it may only stand as an index"
        case _:
            assert_never(part)
    return message, part.span, hint


def listed(part: Part) -> tuple[Part, ...]:
    assert isinstance(part, Listing)
    return part.values
