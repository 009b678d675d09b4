"""The decisions of a space that a search may change, and which of them are tied."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..flexflow.configurations import Configuration, Drawable
from ..flexflow.soap import Soap


class OpenDecisions:
    """The decisions that have several configurations and are not fixed.

    Decisions are tied if their first operations are, such as those of one cell at different time steps.
    """

    def __init__(self, soap: Soap, drawn: Sequence[Drawable], fixed: Collection[int]) -> None:
        self._soap = soap
        self.numbers = [n for n, each in enumerate(drawn) if n not in fixed and len(each) > 1]
        """The decisions."""
        self._may = set(self.numbers)
        ties: dict[object, list[int]] = {}
        for number in self.numbers:
            first = soap.graph.operations[soap.decisions[number].operations[0]]
            if first.tie is not None:
                ties.setdefault((first.tie, first.bound), []).append(number)
        self.tied: Mapping[int, Sequence[int]] = {n: members for members in ties.values() for n in members}
        """For each decision that is tied, it and all those to which it is."""

    def __contains__(self, number: int) -> bool:
        return number in self._may

    def together(self, number: int) -> Sequence[int]:
        """Return a decision and all those to which it is tied."""
        return self.tied.get(number, (number,))

    def changed(
        self, changes: Mapping[int, Configuration], state: Sequence[Configuration | None]
    ) -> dict[int, Configuration]:
        """Return the changes of open decisions that change anything."""
        return {n: each for n, each in changes.items() if n in self._may and each != state[n]}

    def weights(self, of_operations: Sequence[int]) -> list[int]:
        """Return the weight of every decision, open or not: that of its operations."""
        found = [0] * len(self._soap.decisions)
        for operation, weight in enumerate(of_operations):
            found[self._soap.decision_of[operation]] += weight
        return found
