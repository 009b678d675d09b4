"""Named constants and scalar stages: `name = expression`, in place of a lambda.

An expression without elements and reducers is a constant: it is written out wherever the name stands. Any
other one is a stage without index variables, and its name alone reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from .ast import Element, Expression, Number, OpaqueElement, ReducerCall, Span
from .source import Diagnostic
from .traverse import Node, walk


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """A constant that a text names."""

    value: Expression
    """The expression that the name stands for."""

    span: Span
    """The place of the statement."""


def is_constant(value: Expression) -> bool:
    """Return whether a named expression is a constant: it reads no element and reduces nothing."""
    return not any(isinstance(part, Element | OpaqueElement | ReducerCall) for part in walk(value))


@dataclass(slots=True)
class NamedConstants:
    """The constants of one text, while it is built."""

    limit: int
    """The most words and symbols of all that the text repeats."""

    named: dict[str, NamedConstant] = field(default_factory=dict)
    """The constants so far, by name."""

    used: set[str] = field(default_factory=set)
    """The names that stand somewhere."""

    _repeated: int = 0
    """The words and symbols repeated so far."""

    def define(self, name: str, value: Expression, span: Span) -> None:
        """Add a constant."""
        self.named[name] = NamedConstant(value, span)

    def value(self, name: str, span: Span, diagnostics: list[Diagnostic]) -> Expression:
        """Return the expression that a name stands for; a number after a complaint."""
        self.used.add(name)
        value = self.named[name].value
        return value if self.repeat(value, span, diagnostics) else Number(1, span)

    def repeat(self, value: Node, span: Span, diagnostics: list[Diagnostic]) -> bool:
        """Return whether an expression or stage may stand in one more place.

        Complain once if all that is repeated is longer than a text may be: it may double with every line.
        """
        before = self._repeated
        self._repeated += sum(1 for _ in islice(walk(value), self.limit + 1))
        if before <= self.limit < self._repeated:
            message = f"written out, the text has more than {self.limit:,} words and symbols"
            diagnostics.append(Diagnostic(message, span, "make stages of what is computed often"))
        return self._repeated <= self.limit

    def unused(self) -> Mapping[str, NamedConstant]:
        """Return constants that stand nowhere."""
        return {name: constant for name, constant in self.named.items() if name not in self.used}
