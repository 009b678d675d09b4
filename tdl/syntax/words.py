"""The words of the language and its operators."""

from __future__ import annotations

from ..ast import Reducer
from ..extremes import EXTREMES
from ..functions import CONSTANTS, FUNCTIONS

DECLARING = frozenset({"Opaque", "Reducer"})
"""The words that declare a name."""

LANGUAGE: frozenset[str] = frozenset({"pad", *DECLARING, *Reducer, *EXTREMES, *FUNCTIONS, *CONSTANTS})
"""The words that have a meaning without a declaration."""

BINARY_OPERATORS = {
    "or": "or",
    "and": "and",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "modulo": "%",
    "power": "**",
}
"""The operators by the names of their rules in the grammar."""
