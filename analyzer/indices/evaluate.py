"""Turn formulas once into integer arithmetic that is cheap to run thousands of times.

Formulas that are linear in the symbols become rows of an integer matrix. All others become steps of a
small register program. Both run on Python integers (exact, for binding) and on int64 arrays (for many boxes).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np

from ...support.integers import Integers
from .formula import Atom, Factors, FloorQuotient, Formula, Greatest, Least, SumFactor, Unknown

MAX_MAGNITUDE = 2**62
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


def compile_integers(formulas: Sequence[Formula], symbols: Sequence[Formula]) -> IntegerProgram:
    """Compile formulas of these symbols."""
    builder = _Builder(symbols)
    rows = tuple(builder.row(formula) for formula in formulas)
    return IntegerProgram(len(symbols), rows, tuple(builder.steps))


def value_at(formula: Formula, values: Mapping[Formula, int]) -> int:
    """Return a formula for these values of its symbols."""
    if formula.value is not None:
        return formula.value
    return compile_integers((formula,), tuple(values)).integers(tuple(values.values()))[0]


class _Builder:
    """Assigns registers; equal parts share one."""

    def __init__(self, symbols: Sequence[Formula]) -> None:
        self.registers: dict[Formula | Factors | Atom | int, int] = {}
        for position, symbol in enumerate(symbols):
            assert symbol.atom is not None
            self.registers[symbol.atom] = position
        self.first_step = len(symbols)
        self.steps: list[RegisterStep] = []

    def row(self, formula: Formula) -> Linear | int:
        terms = []
        for coefficient, factors in formula.terms:
            match factors:
                case (Unknown() as symbol,):
                    terms.append((self.registers[symbol], coefficient))
                case _:
                    return self.register(formula)
        return Linear(formula.constant, tuple(sorted(terms)))

    def register(self, part: Formula | Factors | Atom | int) -> int:
        known = self.registers.get(part)
        if known is None:
            known = self.registers[part] = self._emit(part)
        return known

    def _emit(self, part: Formula | Factors | Atom | int) -> int:
        match part:
            case int():
                return self._append(RegisterStep(None, part))
            case Formula(constant, terms):
                parts = [self._product(number, factors) for number, factors in terms]
                if constant or not parts:
                    parts.append(self.register(constant))
                return self._chain(operator.add, parts)
            case tuple():
                return self._chain(operator.mul, [self.register(atom) for atom in part])
            case FloorQuotient(value=value, divisor=divisor):
                return self._append(RegisterStep(_floor_divide, self.register(value), self.register(divisor)))
            case Greatest(values=values):
                return self._chain(_maximum, [self.register(each) for each in values])
            case Least(values=values):
                return self._chain(_minimum, [self.register(each) for each in values])
            case SumFactor(value=value):
                return self.register(value)
            case Unknown(name=name):
                raise AssertionError(f"a formula to compile has {name}, which is not among its symbols")
            case _:
                assert_never(part)

    def _product(self, number: int, factors: Factors) -> int:
        product = self.register(factors)
        return product if number == 1 else self._chain(operator.mul, [self.register(number), product])

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
