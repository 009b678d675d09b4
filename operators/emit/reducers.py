"""Reducers in CUDA C++: those of the prelude, and a description's own."""

from __future__ import annotations

from typing import assert_never

from ...tdl import ast
from .values import CppType, CppValue, literal

_PRELUDE = {
    CppType.REAL: {
        ast.Reducer.SUM: "0",
        ast.Reducer.PROD: "1",
        ast.Reducer.MAX: "-real(tofu::infinity())",
        ast.Reducer.MIN: "real(tofu::infinity())",
    },
    CppType.INTEGER: {
        ast.Reducer.SUM: "0",
        ast.Reducer.PROD: "1",
        ast.Reducer.MAX: "tofu::lowest_integer()",
        ast.Reducer.MIN: "tofu::highest_integer()",
    },
}


def reducer_name(reducer: ast.AnyReducer) -> str:
    """Return the struct whose `combine` joins two values."""
    match reducer:
        case ast.Reducer():
            return f"tofu::{reducer}"
        case ast.CustomReducer(name=name):
            return f"Reducer_{name}"
        case _:
            assert_never(reducer)


def reduced_kind(reducer: ast.AnyReducer, element: CppValue) -> CppType:
    """Return what a reduction of such elements computes in; a custom reducer in floating point."""
    if isinstance(reducer, ast.CustomReducer) or element.kind is CppType.REAL:
        return CppType.REAL
    return CppType.INTEGER


def neutral(operator: str, reducer: ast.AnyReducer, kind: CppType, real: str) -> str:
    """Return the text of what a reduction starts with."""
    match reducer:
        case ast.Reducer():
            return _PRELUDE[kind][reducer]
        case ast.CustomReducer(identity=identity):
            return literal(operator, identity, real).number(kind)
        case _:
            assert_never(reducer)
