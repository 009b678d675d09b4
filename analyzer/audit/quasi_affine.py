"""Symbolic bounds in the terms of isl: piecewise quasi-affine functions of parameters.

Every symbol is a parameter, index variables included; sets of parameter values are what is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import islpy as isl
import sympy

from ..indices.constants import FloorQuotient

Piecewise = Any
"""An `isl.PwAff`; islpy's own annotations are not complete."""
Values = Any
"""An `isl.Set` of parameter values."""

MAX_OPERATIONS = 3_000_000
"""Steps isl may take for one proof: about two seconds."""


class InexpressibleError(Exception):
    """An expression that isl cannot represent, such as a product of parameters. Never leaves the audit."""


class Terms:
    """Translates sympy expressions; every symbol becomes one parameter."""

    def __init__(self, operations: int = MAX_OPERATIONS) -> None:
        self.context = isl.Context()
        self.context.set_max_operations(operations)
        self._space = isl.Space.params_alloc(self.context, 0)
        self._names: dict[sympy.Symbol, str] = {}
        self._known: dict[sympy.Expr, Piecewise] = {}

    def everything(self) -> Values:
        """Return all parameter values."""
        return isl.Set.universe(self._space)

    def nothing(self) -> Values:
        """No parameter values."""
        return isl.Set.empty(self._space)

    def number(self, value: int) -> Piecewise:
        """Return a constant."""
        universe = isl.Set.universe(self._space)
        return isl.PwAff.val_on_domain(universe, isl.Val.int_from_si(self.context, value))

    def __call__(self, expression: sympy.Expr) -> Piecewise:
        """Return an expression as isl has it. Raises InexpressibleError."""
        known = self._known.get(expression)
        if known is None:
            known = self._known[expression] = self._translate(expression)
        return known

    def _translate(self, expression: sympy.Expr) -> Piecewise:
        if expression.is_Integer:
            return self.number(int(expression))
        if expression.is_Symbol:
            return self._parameter(expression)
        if isinstance(expression, FloorQuotient):
            value, divisor = expression.args
            if not divisor.is_Integer:
                raise InexpressibleError(f"a quotient by {divisor}")
            number = isl.Val.int_from_si(self.context, int(divisor))
            return self(value).scale_down_val(number).floor()
        match expression.func:
            case sympy.Add:
                return reduce(isl.PwAff.add, map(self, expression.args))
            case sympy.Max:
                return reduce(isl.PwAff.max, map(self, expression.args))
            case sympy.Min:
                return reduce(isl.PwAff.min, map(self, expression.args))
            case sympy.Mul:
                return self._product(expression.args)
            case _:
                raise InexpressibleError(f"the expression {expression}")

    def _parameter(self, symbol: sympy.Symbol) -> Piecewise:
        name = self._names.setdefault(symbol, f"p{len(self._names)}")
        identity = isl.Id(name, self.context)
        universe = isl.Set.universe(self._space.add_param_id(identity))
        return isl.PwAff.param_on_domain_id(universe, identity)

    def _product(self, factors: Sequence[sympy.Expr]) -> Piecewise:
        """Multiply. One factor may vary; another may be a switch `Min(1, ...)`, undefined below zero."""
        product = self.number(1)
        switches = [factor for factor in factors if factor.func is sympy.Min and sympy.S.One in factor.args]
        for factor in (self(factor) for factor in factors if factor not in switches):
            if not product.is_cst() and not factor.is_cst():
                raise InexpressibleError("a product of two quantities that depend on shapes or indices")
            product = product.mul(factor)
        for switch in map(self, switches):
            off = self.number(0).intersect_domain(switch.eq_set(self.number(0)))
            product = product.intersect_domain(switch.eq_set(self.number(1))).union_add(off)
        return product

    def without(self, values: Values, symbols: list[sympy.Symbol]) -> Values:
        """Return parameter values for which some values of `symbols` exist."""
        for symbol in symbols:
            name = self._names.get(symbol)
            position = -1 if name is None else values.find_dim_by_name(isl.dim_type.param, name)
            if position >= 0:
                values = values.project_out(isl.dim_type.param, position, 1)
        return values

    def example(self, values: Values) -> str:
        """Return some of the parameter values, as text."""
        point = values.lexmin().sample_point()
        parts = []
        for symbol, name in self._names.items():
            position = point.get_space().find_dim_by_name(isl.dim_type.param, name)
            if position >= 0:
                parts.append(f"{symbol} = {point.get_coordinate_val(isl.dim_type.param, position)}")
        return ", ".join(parts)
