"""Symbolic bounds in the terms of isl: piecewise quasi-affine functions of parameters.

Every symbol is a parameter, index variables included; sets of parameter values are what is compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, assert_never

import islpy as isl

from ..indices.formula import (
    ONE,
    Atom,
    Factors,
    FloorQuotient,
    Formula,
    Greatest,
    Least,
    SumFactor,
    Unknown,
)
from ..indices.symbolic import symbolic

Piecewise = Any
"""An `isl.PwAff`; islpy's own annotations are not complete."""
Values = Any
"""An `isl.Set` of parameter values."""

MAX_OPERATIONS = 3_000_000
"""Steps isl may take for one proof: about two seconds."""


class InexpressibleError(Exception):
    """An expression that isl cannot represent, such as a product of parameters. Never leaves the audit."""


class Terms:
    """Translates formulas; every symbol becomes one parameter."""

    def __init__(self, operations: int = MAX_OPERATIONS) -> None:
        self.context = isl.Context()
        self.context.set_max_operations(operations)
        self._space = isl.Space.params_alloc(self.context, 0)
        self._names: dict[Unknown, str] = {}
        self._known: dict[Formula, Piecewise] = {}

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

    def __call__(self, formula: Formula) -> Piecewise:
        """Return a formula as isl has it. Raises InexpressibleError."""
        found = self._known.get(formula)
        if found is None:
            products = [self._product(number, factors) for number, factors in formula.terms]
            found = self._known[formula] = reduce(isl.PwAff.add, products, self.number(formula.constant))
        return found

    def _atom(self, atom: Atom) -> Piecewise:
        match atom:
            case Unknown():
                return self._parameter(atom)
            case FloorQuotient(value=value, divisor=divisor):
                if divisor.value is None:
                    raise InexpressibleError(f"a quotient by {symbolic(divisor)}")
                number = isl.Val.int_from_si(self.context, divisor.value)
                return self(value).scale_down_val(number).floor()
            case Greatest(values=values):
                return reduce(isl.PwAff.max, map(self, values))
            case Least(values=values):
                return reduce(isl.PwAff.min, map(self, values))
            case SumFactor(value=value):
                return self(value)
            case _:
                assert_never(atom)

    def _parameter(self, symbol: Unknown) -> Piecewise:
        name = self._names.setdefault(symbol, f"p{len(self._names)}")
        identity = isl.Id(name, self.context)
        universe = isl.Set.universe(self._space.add_param_id(identity))
        return isl.PwAff.param_on_domain_id(universe, identity)

    def _product(self, number: int, factors: Factors) -> Piecewise:
        """Multiply. One factor may vary; another may be a switch, `least(1, ...)`, undefined below zero."""
        product = self.number(number)
        switches = [factor for factor in factors if isinstance(factor, Least) and ONE in factor.values]
        for factor in (self._atom(factor) for factor in factors if factor not in switches):
            if not product.is_cst() and not factor.is_cst():
                raise InexpressibleError("a product of two quantities that depend on shapes or indices")
            product = product.mul(factor)
        for switch in map(self._atom, switches):
            off = self.number(0).intersect_domain(switch.eq_set(self.number(0)))
            product = product.intersect_domain(switch.eq_set(self.number(1))).union_add(off)
        return product

    def without(self, values: Values, symbols: Iterable[Formula]) -> Values:
        """Return parameter values for which some values of `symbols` exist."""
        for symbol in symbols:
            name = self._names.get(symbol.atom) if isinstance(symbol.atom, Unknown) else None
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
                parts.append(f"{symbol.name} = {point.get_coordinate_val(isl.dim_type.param, position)}")
        return ", ".join(parts)
