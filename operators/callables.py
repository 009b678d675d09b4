"""Operators that descriptions call: those that a user gives, and those of the library.

The description of an operator of the library depends on attributes and ranks. A call says both: attributes
are numbers and words, and each `:` of a slice is a dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..analyzer.specialize.attribute_values import attribute_values, substitute
from ..errors import OperatorError
from ..support.checked_argument import require
from ..support.wording import counted
from ..tdl import ast
from ..tdl.syntax.calls import Callee, Setting
from ..tdl.syntax.words import LANGUAGE
from .library import registry
from .operator import Operator
from .stages.definition import ByRank, ByShape, Fixed


class Callables(Mapping[str, Callee]):
    """The operators that a text may call, by name: those given hide those of the library."""

    def __init__(self, given: Mapping[str, Operator]) -> None:
        """Raise OperatorError for a value that is not an operator."""
        require(isinstance(given, Mapping), given, "operators", "operators by name", OperatorError)
        for name, operator in given.items():
            if not isinstance(operator, Operator):
                raise OperatorError(
                    f"{name}={operator!r} cannot be called by a description; give what tofu.parse, "
                    "tofu.load, @tofu.op or tofu.operators.get returns"
                )
        self._given = given

    def __getitem__(self, name: str) -> Callee:
        operator = self._given.get(name)
        if operator is None and name not in LANGUAGE:
            operator = registry.find(name)
        if operator is None:
            raise KeyError(name)
        return operator.written or _OfLibrary(operator)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._given, **registry.aliases()})

    def __len__(self) -> int:
        return len({**self._given, **registry.aliases()})


@dataclass(frozen=True, slots=True)
class _OfLibrary:
    """An operator whose description follows from ranks and attributes."""

    operator: Operator

    def description(self, ranks: Sequence[int], settings: Mapping[str, Setting]) -> ast.Description:
        """Return the description without attributes.

        Raises OperatorError if the operator is more than that, or if ranks and attributes do not fit.
        """
        operator = self.operator
        if operator.is_loss or not operator.differentiable or operator.auxiliary or operator.seeds:
            raise OperatorError(
                f"{operator.name} is more than its description: it has a state, or a gradient that does not "
                "follow from it"
            )
        attributes = operator.attributes(settings)
        names = operator.arguments(attributes)
        if len(names) != len(ranks):
            raise OperatorError(
                f"{operator.name} expects {counted(len(names), 'tensor')}, {', '.join(names)}, and found "
                f"{len(ranks)}"
            )
        match operator.definition:
            case Fixed(describe):
                variant = describe(attributes)
            case ByRank(describe_rank):
                variant = describe_rank(attributes, dict(zip(names, ranks, strict=True)))
            case ByShape():
                raise OperatorError(
                    f"the description of {operator.name} depends on the extents of its tensors, which a "
                    "text does not know"
                )
        return substitute(variant.description, attribute_values(variant.description, variant.constants))
