"""Arithmetic between symbols, and between symbols and numbers, as MXNet writes it.

Between symbols the operators are element-wise and do not broadcast; `broadcast_add` and friends do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

from ...errors import OperatorError
from .apply_operator import NOTHING, apply_operator
from .outputs import Outputs


class SymbolArithmetic(Outputs):
    """The operators of Python, for `Symbol` to inherit. Node names follow MXNet: `_plus0`, `_mulscalar0`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic with a symbol to the symbol

    def __add__(self, other: object) -> Self:
        return self._combine(other, "elemwise_add", "_plus", "_plus_scalar")

    __radd__ = __add__

    def __sub__(self, other: object) -> Self:
        return self._combine(other, "elemwise_sub", "_minus", "_minus_scalar")

    def __rsub__(self, other: object) -> Self:
        return self._combine(other, None, "_minus", "_rminus_scalar")

    def __mul__(self, other: object) -> Self:
        return self._combine(other, "elemwise_mul", "_mul", "_mul_scalar")

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Self:
        return self._combine(other, "elemwise_div", "_div", "_div_scalar")

    def __rtruediv__(self, other: object) -> Self:
        return self._combine(other, None, "_div", "_rdiv_scalar")

    def __pow__(self, other: object) -> Self:
        return self._combine(other, "_power", "_power", "_power_scalar")

    def __rpow__(self, other: object) -> Self:
        return self._combine(other, None, "_power", "_rpower_scalar")

    def __mod__(self, other: object) -> Self:
        return self._combine(other, "_mod", "_mod", "_mod_scalar")

    def __rmod__(self, other: object) -> Self:
        return self._combine(other, None, "_mod", "_rmod_scalar")

    def __gt__(self, other: object) -> Self:
        return self._compare(other, "_greater")

    def __ge__(self, other: object) -> Self:
        return self._compare(other, "_greater_equal")

    def __lt__(self, other: object) -> Self:
        return self._compare(other, "_lesser")

    def __le__(self, other: object) -> Self:
        return self._compare(other, "_lesser_equal")

    def __abs__(self) -> Self:
        return self._applied("abs", (self,))

    def __neg__(self) -> Self:
        return self._combine(-1.0, None, "_mul", "_mul_scalar")

    def _compare(self, other: object, operator: str) -> Self:
        return self._combine(other, operator, operator, f"{operator}_scalar", f"{operator}_scalar")

    def _combine(
        self, other: object, pairwise: str | None, hint: str, scalar: str, scalar_hint: str | None = None
    ) -> Self:
        if isinstance(other, SymbolArithmetic) and pairwise is not None:
            return self._applied(pairwise, (self, other), hint=hint)
        if isinstance(other, Real):
            hint = scalar_hint or "_" + scalar.replace("_", "")
            return self._applied(scalar, (self,), {"scalar": other}, hint=hint)
        raise OperatorError(
            f"a symbol can be combined with a symbol or a number by + - * / **, not with {other!r}"
        )

    def _applied(
        self,
        operator: str,
        operands: Sequence[SymbolArithmetic],
        values: Mapping[str, Any] = NOTHING,
        hint: str | None = None,
    ) -> Self:
        return type(self)(apply_operator(operator, operands, values, hint=hint).entries)
