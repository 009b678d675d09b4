"""Links between classes of operations and of tensors, and which of them have equal tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...dataflow.alike import numbered
from ...support.integers import Integers
from ..layouts.choices import OperatorChoices, TensorChoices
from ..layouts.uses import Use
from ..solvers.semiring import Scope


class Link(NamedTuple):
    """A class of operations that touches a class of tensors."""

    operator: int
    """The number of the class of operations."""

    tensor: int
    """The number of the class of tensors."""

    use: Use
    """How the operations use the tensors."""

    weight: int
    """The bytes of one element, times the number of equal links."""


class LinkKinds(NamedTuple):
    """The kinds of links: those of one kind have equal choices, uses and weights, and so equal tables."""

    first: list[int]
    """The first link of each kind."""

    of: Integers
    """The kind of each link."""


class Links(tuple[Link, ...]):
    """All links of a problem. Every class of operations has one."""

    def kinds(self, operators: Sequence[OperatorChoices], tensors: Sequence[TensorChoices]) -> LinkKinds:
        """Return the kinds of links, given the choices of every class."""
        by_operator, by_tensor, by_use = self._numbers
        operator, tensor = (np.array(numbered(choices), np.int64) for choices in (operators, tensors))
        keys = operator[by_operator] * len(tensors) + tensor[by_tensor]
        _, first, kind = np.unique(keys * len(self) + by_use, return_index=True, return_inverse=True)
        return LinkKinds(first.tolist(), kind)

    @cached_property
    def scopes(self) -> list[Scope]:
        """The variables of each link's table: the classes of operations come first, then those of tensors."""
        count = 1 + max((link.operator for link in self), default=-1)
        return [(link.operator, count + link.tensor) for link in self]

    @cached_property
    def first_of(self) -> dict[int, tuple[int, int]]:
        """The first link of each variable, and the variable's axis in its table."""
        found: dict[int, tuple[int, int]] = {}
        for number, scope in enumerate(self.scopes):
            for axis, variable in enumerate(scope):
                found.setdefault(variable, (number, axis))
        return found

    @cached_property
    def _numbers(self) -> tuple[Integers, Integers, Integers]:
        """The operator and the tensor of each link, and a number for its use and weight."""
        uses = numbered([(link.use, link.weight) for link in self])
        columns = [link.operator for link in self], [link.tensor for link in self], uses
        operators, tensors, numbers = (np.array(column, np.int64) for column in columns)
        return operators, tensors, numbers
