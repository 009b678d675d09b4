"""Turn sympy expressions once into integer arithmetic that is cheap to run thousands of times.

Expressions that are linear in the symbols become rows of an integer matrix. All others become steps of a
small register program. Both run on Python integers (exact, for binding) and on int64 arrays (for many boxes).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy

from .constants import FloorQuotient

MAX_MAGNITUDE = 2**62
Integers = npt.NDArray[np.int64]
Value = Any
"""A Python integer or an int64 array."""


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(coefficient * symbol)`; symbols by their position."""

    constant: int
    terms: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RegisterStep:
    """Append `function(register[left], register[right])`, or the constant `left` if there is none."""

    function: Callable[[Value, Value], Value] | None
    left: int
    right: int = 0


@dataclass(frozen=True)
class IntegerProgram:
    """Integer expressions in `symbols` symbols: one `Linear` or one register for each."""

    symbols: int
    rows: tuple[Linear | int, ...]
    steps: tuple[RegisterStep, ...]

    def integers(self, values: Sequence[int]) -> list[int]:
        """Return every expression for one Python integer per symbol."""
        registers = self._run(values) if self.steps else values
        return [
            registers[row]
            if isinstance(row, int)
            else row.constant + sum(coefficient * values[symbol] for symbol, coefficient in row.terms)
            for row in self.rows
        ]

    def fits(self, values: Sequence[int]) -> bool:
        """Return whether all constants and intermediate results stay below 2**62, and so fit int64 arrays."""
        largest = max(map(abs, [*self._run(values), *self.integers(values)]), default=0)
        return max(largest, self._largest_constant) < MAX_MAGNITUDE

    def bind(self, leading: int, trailing: Sequence[int]) -> Bulk:
        """Fix all symbols but the first `leading` ones."""
        constants = [
            0
            if isinstance(row, int)
            else row.constant
            + sum(coefficient * trailing[s - leading] for s, coefficient in row.terms if s >= leading)
            for row in self.rows
        ]
        return Bulk(self, self.matrix[:leading], np.array(constants, np.int64), tuple(trailing))

    @cached_property
    def matrix(self) -> Integers:
        """Coefficients `[symbol, expression]` of the linear expressions."""
        matrix = np.zeros((self.symbols, len(self.rows)), np.int64)
        for position, row in enumerate(self.rows):
            if isinstance(row, Linear):
                for symbol, coefficient in row.terms:
                    matrix[symbol, position] = coefficient
        return matrix

    @cached_property
    def _largest_constant(self) -> int:
        rows = (row for row in self.rows if isinstance(row, Linear))
        constants = (abs(number) for row in rows for number in (row.constant, *(c for _, c in row.terms)))
        return max(constants, default=0)

    def _run(self, values: Sequence[Value]) -> list[Value]:
        registers = list(values)
        for step in self.steps:
            if step.function is None:
                registers.append(step.left)
            else:
                registers.append(step.function(registers[step.left], registers[step.right]))
        return registers


@dataclass(frozen=True, slots=True)
class Bulk:
    """A program with fixed trailing symbols."""

    program: IntegerProgram
    """The program, for all symbols."""

    matrix: Integers
    """The coefficients of the leading symbols in the linear expressions, `[leading, expressions]`."""

    constants: Integers
    """The part of each linear expression that the leading symbols do not change, `[expressions]`; 0 for the
    other expressions."""

    trailing: tuple[int, ...]
    """The values of the trailing symbols."""

    def __call__(self, values: Integers) -> Integers:
        """Return every expression for many settings of the leading symbols: `[n, leading] -> [n,
        expressions]`.
        """
        rows: Integers = values @ self.matrix
        rows += self.constants
        if self.program.steps:
            registers = self.program._run([*values.T, *self.trailing])
            for position, row in enumerate(self.program.rows):
                if isinstance(row, int):
                    rows[:, position] = registers[row]
        return rows


def compile_integers(expressions: Sequence[sympy.Expr], symbols: Sequence[sympy.Symbol]) -> IntegerProgram:
    """Compile expressions made of integers, symbols, sums, products, floor quotients, Max and Min."""
    builder = _Builder(symbols)
    rows = tuple(builder.row(expression) for expression in expressions)
    return IntegerProgram(len(symbols), rows, tuple(builder.steps))


class _Builder:
    """Assigns registers; equal subexpressions share one."""

    def __init__(self, symbols: Sequence[sympy.Symbol]) -> None:
        self.registers: dict[sympy.Expr, int] = {symbol: position for position, symbol in enumerate(symbols)}
        self.first_step = len(symbols)
        self.steps: list[RegisterStep] = []

    def row(self, expression: sympy.Expr) -> Linear | int:
        constant, terms = 0, []
        for part in sympy.Add.make_args(expression):
            coefficient, rest = part.as_coeff_Mul()
            if not coefficient.is_Integer or not (rest.is_Symbol or rest == 1):
                return self.register(expression)
            if rest.is_Symbol:
                terms.append((self.registers[rest], int(coefficient)))
            else:
                constant += int(coefficient)
        return Linear(constant, tuple(sorted(terms)))

    def register(self, expression: sympy.Expr) -> int:
        known = self.registers.get(expression)
        if known is None:
            known = self.registers[expression] = self._emit(expression)
        return known

    def _emit(self, expression: sympy.Expr) -> int:
        if expression.is_Integer:
            return self._append(RegisterStep(None, int(expression)))
        if isinstance(expression, FloorQuotient):
            value, divisor = map(self.register, expression.args)
            return self._append(RegisterStep(_floor_divide, value, divisor))
        if isinstance(expression, sympy.Pow):
            base, power = expression.args
            return self._chain(operator.mul, [self.register(base)] * int(power))
        functions: dict[type, Callable[[Value, Value], Value]] = {
            sympy.Add: operator.add,
            sympy.Mul: operator.mul,
            sympy.Max: _maximum,
            sympy.Min: _minimum,
        }
        return self._chain(functions[expression.func], [self.register(part) for part in expression.args])

    def _chain(self, function: Callable[[Value, Value], Value], registers: list[int]) -> int:
        first, *others = registers
        for other in others:
            first = self._append(RegisterStep(function, first, other))
        return first

    def _append(self, step: RegisterStep) -> int:
        self.steps.append(step)
        return self.first_step + len(self.steps) - 1


def _floor_divide(value: Value, divisor: Value) -> Value:
    """Return the floor quotient. By an extent of zero it is zero, because then there is nothing to index."""
    return value // divisor if divisor else 0


def _maximum(a: Value, b: Value) -> Value:
    return np.maximum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def _minimum(a: Value, b: Value) -> Value:
    return np.minimum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)
