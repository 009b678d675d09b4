"""Random operators with affine accesses, and what they read by trying every value of their variables.

The elements read are computed from the indices as data, with NumPy: neither the parser nor the analysis
takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.support.integers import Integers

OUTPUTS = ("x", "y")
REDUCTIONS = ("r", "s")
REDUCERS = ("Sum", "Sum", "Max", "Min", "Prod")

Extents = Mapping[str, int]
Intervals = Mapping[str, tuple[int, int]]


Term = tuple[int, str]

BENDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "//": lambda total, number: total // number,
    "%": lambda total, number: total % number,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "abs": lambda total, number: abs(total - number),
}


@dataclass(frozen=True)
class Bend:
    """An operation on an index with a number, to which a minimum and a maximum may add a term."""

    operator: str
    number: int
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Index:
    """`sum of coefficient * variable + constant`, then some bends, then more terms and a shift."""

    terms: tuple[Term, ...]
    constant: int
    bends: tuple[Bend, ...] = ()
    rest: tuple[Term, ...] = ()
    shift: int = 0

    def values(self, at: Mapping[str, Integers]) -> Integers:
        total = sum((factor * at[name] for factor, name in self.terms), np.int64(self.constant))
        for bend in self.bends:
            other = sum((factor * at[name] for factor, name in bend.terms), np.int64(bend.number))
            total = BENDS[bend.operator](total, other)
        return np.asarray(sum((factor * at[name] for factor, name in self.rest), total + self.shift))

    @property
    def names(self) -> tuple[str, ...]:
        inside = tuple(term for bend in self.bends for term in bend.terms)
        return tuple(name for _, name in (*self.terms, *inside, *self.rest))

    @property
    def once(self) -> bool:
        """Whether every variable occurs once."""
        return len(set(self.names)) == len(self.names)


@dataclass(frozen=True)
class Access:
    tensor: str
    indices: tuple[Index, ...]
    padded: bool


@dataclass(frozen=True)
class Case:
    """An operator: its text, extents and shapes, and its accesses as data."""

    text: str
    extents: Extents
    shapes: dict[str, tuple[int, ...]]
    accesses: tuple[Access, ...]

    def once(self, tensor: str) -> bool:
        """Whether every variable occurs once in every index of a tensor."""
        mine = (access for access in self.accesses if access.tensor == tensor)
        return all(index.once for access in mine for index in access.indices)

    def elements_read(self, tensor: str, box: Intervals) -> Integers:
        """The elements that a box reads, `[element, dimension]`; some may come more than once."""
        cut = tuple(slice(*box[name]) for name in self.extents)
        found = [np.zeros((0, len(self.shapes[tensor])), np.int64)]
        for elements, inside in self._elements[tensor]:
            found.append(elements[cut][inside[cut]])
        return np.concatenate(found)

    @cached_property
    def _elements(self) -> dict[str, list[tuple[Integers, npt.NDArray[np.bool_]]]]:
        """For every access the elements of the whole iteration space, and whether the tensor has them."""
        grid = np.indices(tuple(self.extents.values()), np.int64)
        at = dict(zip(self.extents, grid, strict=True))
        found: dict[str, list[tuple[Integers, npt.NDArray[np.bool_]]]] = {name: [] for name in self.shapes}
        for access in self.accesses:
            shape = grid.shape[1:]
            columns = [np.broadcast_to(index.values(at), shape) for index in access.indices]
            elements = np.stack(columns, -1) if columns else np.zeros((*shape, 0), np.int64)
            inside = ((elements >= 0) & (elements < self.shapes[access.tensor])).all(axis=-1)
            found[access.tensor].append((elements, inside))
        return found


def random_case(random: Random, largest: int = 7) -> Case:
    """An operator of one or two output and up to two reduction variables, with extents up to `largest`."""
    outputs = OUTPUTS[: random.randint(1, 2)]
    reductions = REDUCTIONS[: random.randint(0, 2)]
    extents = {name: random.randint(1, largest) for name in outputs}
    extents |= {name: random.randint(1, max(4, largest - 3)) for name in reductions}
    grid = dict(zip(extents, np.indices(tuple(extents.values())), strict=True))
    shapes: dict[str, tuple[int, ...]] = {}
    accesses: list[Access] = []
    for tensor, rank in (("A", random.randint(1, 3)), ("B", random.randint(0, 2))):
        mine = [
            Access(tensor, tuple(_index(random, tuple(extents)) for _ in range(rank)), random.random() < 0.5)
            for _ in range(random.randint(1, 2))
        ]
        low = [_reach(mine, axis, grid, np.min) for axis in range(rank)]
        high = [_reach(mine, axis, grid, np.max) for axis in range(rank)]
        shapes[tensor] = tuple(high[axis] - low[axis] + random.randint(1, 4) for axis in range(rank))
        for access in mine:
            moved = (replace(i, shift=-least) for i, least in zip(access.indices, low, strict=True))
            accesses.append(replace(access, indices=tuple(moved)))
    text = _Writer(random, shapes).operator(outputs, reductions, extents, accesses)
    return Case(text, extents, shapes, tuple(accesses))


def _index(random: Random, names: Sequence[str]) -> Index:
    bends = tuple(_bend(random, names) for _ in range(random.choice((0, 0, 1, 1, 2, 3))))
    rest = _terms(random, names, random.choice((0, 0, 1))) if bends else ()
    return Index(_terms(random, names, random.randint(0, 3)), random.randint(-4, 4), bends, rest)


def _terms(random: Random, names: Sequence[str], count: int) -> tuple[Term, ...]:
    factors = (-3, -2, -1, 1, 1, 2, 3)
    return tuple((random.choice(factors), random.choice(names)) for _ in range(count))


def _bend(random: Random, names: Sequence[str]) -> Bend:
    operator = random.choice(tuple(BENDS))
    if operator in ("//", "%"):
        return Bend(operator, random.choice((2, 3, 5, -2, -3)))
    terms = _terms(random, names, random.choice((0, 0, 0, 1))) if operator != "abs" else ()
    return Bend(operator, random.randint(-3, 5), terms)


def _reach(
    accesses: Sequence[Access], axis: int, grid: Mapping[str, Integers], extreme: Callable[..., Any]
) -> int:
    """The least or greatest of 0 and the values of the indices that may not leave their tensor."""
    values = [int(extreme(access.indices[axis].values(grid))) for access in accesses if not access.padded]
    return int(extreme([0, *values]))


@dataclass
class _Writer:
    """Writes a case as text; a number may be written by the extent of a tensor that has it."""

    random: Random
    shapes: Mapping[str, tuple[int, ...]]

    def operator(
        self,
        outputs: Sequence[str],
        reductions: Sequence[str],
        extents: Extents,
        accesses: Sequence[Access],
    ) -> str:
        body = " * ".join(self.access(access) for access in accesses)
        if reductions:
            binders = ", ".join(f"{name}={self.number(extents[name])}" for name in reductions)
            body = f"{self.random.choice(REDUCERS)}(lambda {binders}: {body})"
        binders = ", ".join(f"{name}={self.number(extents[name])}" for name in outputs)
        return f"def op(A, B):\n    return lambda {binders}: {body}"

    def access(self, access: Access) -> str:
        element = f"{access.tensor}[{', '.join(map(self.index, access.indices)) or '()'}]"
        return f"pad({element}, 0)" if access.padded else element

    def index(self, index: Index) -> str:
        text = self.sum(index.terms, index.constant)
        for bend in index.bends:
            other = self.sum(bend.terms, bend.number)
            if bend.operator == "abs":
                text = f"abs({text} - ({other}))"
            elif bend.operator in ("//", "%"):
                text = f"({text}) {bend.operator} {self.number(bend.number)}"
            else:
                text = f"{bend.operator}({text}, {other})"
        return f"{text} + {self.sum(index.rest, index.shift)}"

    def sum(self, terms: Sequence[Term], constant: int) -> str:
        return " + ".join(
            [*(f"{self.number(factor)} * {name}" for factor, name in terms), self.number(constant)]
        )

    def number(self, value: int) -> str:
        known = [
            f"{tensor}.shape[{axis}]"
            for tensor, shape in self.shapes.items()
            for axis, extent in enumerate(shape)
            if extent == abs(value)
        ]
        if not known or self.random.random() < 0.7:
            return str(value)
        name = self.random.choice(known)
        return name if value >= 0 else f"(-{name})"
