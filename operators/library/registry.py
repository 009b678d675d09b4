"""The operator library by MXNet name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ...errors import OperatorError
from ...support.checked_argument import require
from ...support.wording import suggestion
from ..operator import Operator

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "Custom": (
            "what a Python class computes cannot be analysed; describe the operator with @tofu.op, or with "
            "an Opaque() function if a part of it has no description"
        ),
    }
)
"""Operators of MXNet that cannot be described, and what to use instead."""


@cache
def _library() -> Mapping[str, Operator]:
    """Return every name and alias, with its operator."""
    from .all_operators import OPERATORS

    table: dict[str, Operator] = {}
    for operator in OPERATORS:
        for name in (operator.name, *operator.aliases):
            assert name not in table, f"two operators are called {name}"
            table[name] = operator
    return table


def get(name: str) -> Operator:
    """Return the library's operator with this MXNet name or alias.

    Raises OperatorError with a suggestion if there is none.
    """
    require(isinstance(name, str), name, "name", "the name of an operator", OperatorError)
    operator = _library().get(name)
    if operator is None and name in REFUSED:
        raise OperatorError(f"{name} is not supported: {REFUSED[name]}")
    if operator is None:
        hint = suggestion(name, _library(), most=1) or "see `tofu operators` for the list"
        raise OperatorError(f"there is no operator {name!r}; {hint}")
    return operator


def find(name: str) -> Operator | None:
    """Return the library's operator with this name or alias, or None."""
    return _library().get(name)


def names() -> tuple[str, ...]:
    """Return the canonical names of all operators of the library, sorted."""
    return tuple(sorted({operator.name for operator in _library().values()}))


def aliases() -> Mapping[str, str]:
    """Return every accepted name with the canonical name that it stands for."""
    return {name: operator.name for name, operator in _library().items()}
