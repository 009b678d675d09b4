"""Arithmetic between symbols, and between symbols and numbers, as MXNet writes it.

Between symbols the operators are element-wise and do not broadcast; `broadcast_add` and friends do.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

from ..errors import OperatorError

if TYPE_CHECKING:
    from .symbol import Symbol


class SymbolArithmetic:
    """The operators of Python, for `Symbol` to inherit. Node names follow MXNet: `_plus0`, `_mulscalar0`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic with a symbol to the symbol

    def __add__(self, other: object) -> Symbol:
        return self._combine(other, "elemwise_add", "_plus", "_plus_scalar")

    __radd__ = __add__

    def __sub__(self, other: object) -> Symbol:
        return self._combine(other, "elemwise_sub", "_minus", "_minus_scalar")

    def __rsub__(self, other: object) -> Symbol:
        return self._combine(other, None, "_minus", "_rminus_scalar")

    def __mul__(self, other: object) -> Symbol:
        return self._combine(other, "elemwise_mul", "_mul", "_mul_scalar")

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Symbol:
        return self._combine(other, "elemwise_div", "_div", "_div_scalar")

    def __rtruediv__(self, other: object) -> Symbol:
        return self._combine(other, None, "_div", "_rdiv_scalar")

    def __pow__(self, other: object) -> Symbol:
        return self._combine(other, "_power", "_power", "_power_scalar")

    def __rpow__(self, other: object) -> Symbol:
        return self._combine(other, None, "_power", "_rpower_scalar")

    def __mod__(self, other: object) -> Symbol:
        return self._combine(other, "_mod", "_mod", "_mod_scalar")

    def __rmod__(self, other: object) -> Symbol:
        return self._combine(other, None, "_mod", "_rmod_scalar")

    def __gt__(self, other: object) -> Symbol:
        return self._compare(other, "_greater")

    def __ge__(self, other: object) -> Symbol:
        return self._compare(other, "_greater_equal")

    def __lt__(self, other: object) -> Symbol:
        return self._compare(other, "_lesser")

    def __le__(self, other: object) -> Symbol:
        return self._compare(other, "_lesser_equal")

    def __abs__(self) -> Symbol:
        from .compose import compose

        return compose("abs", (self,))  # type: ignore[arg-type]

    def __neg__(self) -> Symbol:
        return self._combine(-1.0, None, "_mul", "_mul_scalar")

    def _compare(self, other: object, operator: str) -> Symbol:
        return self._combine(other, operator, operator, f"{operator}_scalar", f"{operator}_scalar")

    def _combine(
        self, other: object, pairwise: str | None, hint: str, scalar: str, scalar_hint: str | None = None
    ) -> Symbol:
        from .compose import compose
        from .symbol import Symbol

        assert isinstance(self, Symbol)
        if isinstance(other, Symbol) and pairwise is not None:
            return compose(pairwise, (self, other), hint=hint)
        if isinstance(other, Real):
            return compose(
                scalar, (self,), {"scalar": other}, hint=scalar_hint or "_" + scalar.replace("_", "")
            )
        raise OperatorError(
            f"a symbol can be combined with a symbol or a number by + - * / **, not with {other!r}"
        )
