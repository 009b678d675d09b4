"""Advice on Python that the language does not have, for slips that are easy to name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..support.wording import suggestion

if TYPE_CHECKING:
    from lark import Token

_LOOP = "there are no loops: Sum(lambda i: ...) adds up over a range"
_CHOICE = "a choice is an expression: x if condition else y"
_FUNCTION = "a description is one function: def name(tensors): return lambda i, j: ..."
_ONE_NAME = "an assignment names one stage; an extent is written tensor.shape[0] if it is needed"

COMPARISONS = frozenset(("LESSTHAN", "MORETHAN", "LESS_EQUAL", "GREATER_EQUAL", "EQUAL_TO", "NOT_EQUAL"))

STATEMENTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("for", "while"), _LOOP),
        **dict.fromkeys(("if", "elif", "else"), _CHOICE),
        **dict.fromkeys(("import", "from", "class", "async", "with", "try"), _FUNCTION),
    }
)
"""Words that begin a Python statement, with what to write instead."""

CHARACTERS: Mapping[str, str] = MappingProxyType(
    {
        "{": "tuples are written with ()",
        "!": "not equal is written !=, negation is written not",
        "~": "negation is written not",
        "&": "write and",
        "|": "write or",
        "^": "a power is written **",
    }
)

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "max": "maximum(x, y) is the larger of two values, Max(lambda i: ...) the largest of a range",
        "min": "minimum(x, y) is the smaller of two values, Min(lambda i: ...) the smallest of a range",
        "sum": "write Sum(lambda i: ...)",
        "mean": "divide a Sum(lambda i: ...) by tensor.shape[0]",
        "softmax": "write softmax(x[i, :])[j], or exp(x[i, j]) / Sum(lambda k: exp(x[i, k]))",
        "argmax": "write ArgMax(lambda i: ...)",
        "argmin": "write ArgMin(lambda i: ...)",
        "Mean": "divide a Sum(lambda i: ...) by tensor.shape[0]",
        "pow": "write x ** y",
        "float": "values are numbers already",
        "int": "write trunc(x)",
        "len": "write tensor.shape[0]",
    }
)
"""Names of Python that the language does not have, with what to write instead."""


def syntax_hint(text: str, token: Token, accepted: set[str]) -> str:
    """Return advice on an unexpected token; empty if the mistake is not a known one."""
    before = text[: token.start_pos or 0].rstrip()
    line = before.rpartition("\n")[2]
    if token in STATEMENTS:
        return STATEMENTS[str(token)]
    if glued := re.search(r"\blambda(\w+)$", before):
        return f"did you mean 'lambda {glued[1]}'?"
    if re.search(r"\breturn(\s+\w+)?$", before):
        return "a description returns a lambda: return lambda i, j: ..."
    if begun := re.fullmatch(r"\s*(\w+)", line):
        if begun[1] in STATEMENTS:
            return STATEMENTS[begun[1]]
        if misspelt := suggestion(begun[1], ("return", "def")):
            return misspelt
    match token.type:
        case kind if kind in COMPARISONS:
            return "comparisons do not chain, write a < b and b < c"
        case "EQUAL" if "EQUAL_TO" in accepted:
            return "equality is written ==, and arguments are given by position"
        case "COLON" if "RSQB" in accepted:
            return "':' stands for a whole dimension; to read a part, shift an index: a[i + 1]"
        case "COLON" | "MINUS" if accepted == {"COLON"} or {"EQUAL", "RPAR"} <= accepted:
            return "a description has no annotations"
        case "COMMA" if accepted == {"EQUAL"}:
            return _ONE_NAME
        case "AT":
            return "a product of matrices is written Sum(lambda k: a[i, k] * b[k, j])"
        case "NAME" if before.endswith("*") and accepted <= {"COMMA", "RPAR"}:
            return "every tensor has a name; attributes follow '*,'"
        case "LAMBDA" if "DEF" in accepted:
            return _FUNCTION
        case "LAMBDA" if "RETURN" in accepted:
            return "write return before it, or a name and '=' for a stage"
        case "LAMBDA":
            return "one lambda takes all variables: lambda i, j: ..."
        case "DEF":
            return "a description is one function"
        case _:
            return ""
