"""Texts of values with their kinds, and the conversions between kinds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np

from ...errors import OperatorError

_INTEGER = re.compile(r"-?\d+LL")
"""An integer literal as `literal` writes it."""


class CppType(Enum):
    """The kind of a value. The language has only numbers, C++ distinguishes several types."""

    REAL = "real"
    INTEGER = "long long"
    TRUTH = "bool"


@dataclass(frozen=True, slots=True)
class CppValue:
    """A C++ expression, in parentheses if it is not one term."""

    text: str
    kind: CppType

    @property
    def real(self) -> str:
        """As a floating-point number."""
        if self.kind is CppType.REAL:
            return self.text
        text = bare(self.text)
        return f"real({text.removesuffix('LL') if _INTEGER.fullmatch(text) else text})"

    @property
    def integer(self) -> str:
        """As an integer; a floating-point number is truncated."""
        return self.text if self.kind is CppType.INTEGER else f"static_cast<long long>({bare(self.text)})"

    @property
    def truth(self) -> str:
        """As a condition: whether it is not zero."""
        return self.text if self.kind is CppType.TRUTH else f"({self.text} != 0)"

    def number(self, kind: CppType) -> str:
        """Return it as a number of this kind."""
        match kind:
            case CppType.REAL:
                return self.real
            case CppType.INTEGER:
                return self.integer
            case CppType.TRUTH:
                return self.truth
            case _:
                assert_never(kind)


def common(values: Iterable[CppValue]) -> CppType:
    """Return the kind that numbers are computed in together: integers unless one is a
    floating-point number.
    """
    return CppType.REAL if any(value.kind is CppType.REAL for value in values) else CppType.INTEGER


def literal(operator: str, value: int | float, real: str) -> CppValue:
    """Return a number. Raises OperatorError for an integer that does not fit 64 bits."""
    if isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise OperatorError(f"{operator}: the integer {value} does not fit 64 bits; write it as a float")
        return CppValue(f"{int(value)}LL" if value >= 0 else f"({int(value)}LL)", CppType.INTEGER)
    return CppValue(_real(value, real), CppType.REAL)


def _real(value: float, real: str) -> str:
    with np.errstate(over="ignore"):
        narrow = np.float32(value) if real == "float" else np.float64(value)
    if math.isnan(narrow):
        return "real(tofu::not_a_number())"
    if math.isinf(narrow):
        return "real(tofu::infinity())" if narrow > 0 else "(-real(tofu::infinity()))"
    text = str(narrow)
    text = text if any(mark in text for mark in ".e") else f"{text}.0"
    text += "f" if real == "float" else ""
    return f"({text})" if text.startswith("-") else text


def bare(text: str) -> str:
    """Return the text without the parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[1:-1] if position == len(text) - 1 else text
    return text
