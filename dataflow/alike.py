"""Operations of a graph that are alike, and the tensors that each touches, in arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..support.integers import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Which operations are alike: they have the same operator and element types, and tensors that are the
    same, or share memory, at the same places.
    """

    kinds: Integers
    """The number of each operation's kind."""

    touched: Integers
    """The tensors that each operation reads, then those that it makes, operation after operation."""

    counts: Integers
    """The number of those of each operation."""

    @classmethod
    def of(
        cls,
        operators: Sequence[Hashable],
        touched: Sequence[Sequence[int]],
        roots: Sequence[int],
        types: Sequence[str],
    ) -> Alike:
        """Compare operations by their operators and the tensors that each touches.

        `roots` has for each tensor the one whose memory it has, and `types` its element type.
        """
        known: dict[tuple[object, ...], int] = {}
        kinds = []
        for operator, tensors in zip(operators, touched, strict=True):
            memory = [roots[tensor] for tensor in tensors]
            key = (
                operator,
                *map(tensors.index, tensors),
                *map(memory.index, memory),
                *map(types.__getitem__, tensors),
            )
            kinds.append(known.setdefault(key, len(known)))
        return cls(
            np.array(kinds, np.int64),
            np.array(list(chain.from_iterable(touched)), np.int64),
            np.array(list(map(len, touched)), np.int64),
        )

    def keys(self, operations: Sequence[int], tensors: Sequence[int]) -> list[tuple[int, ...]]:
        """Return keys of operations, equal for those that are alike and have equal numbers.

        The numbers are those given to `operations` themselves, and to the `tensors` that they touch.
        """
        numbers = np.array(tensors, np.int64)[self.touched].tolist()
        ends = self.counts.cumsum()
        rows = zip(self.kinds.tolist(), operations, (ends - self.counts).tolist(), ends.tolist(), strict=True)
        return [(kind, number, *numbers[first:end]) for kind, number, first, end in rows]


def numbered(values: Iterable[Hashable], numbers: dict[Hashable, int] | None = None) -> list[int]:
    """Return equal numbers for equal values, an object looked up once; `numbers` has those of earlier calls.

    All values must exist as long as this takes.
    """
    known = {} if numbers is None else numbers
    objects: dict[int, int] = {}
    found = []
    for value in values:
        number = objects.get(id(value))
        if number is None:
            number = objects[id(value)] = known.setdefault(value, len(known))
        found.append(number)
    return found
