"""A plan expanded: the tasks of every operation, and the holdings of every version of a tensor.

Forms are how plans are written and searched. Here are the tasks and holdings that they stand for, as values
that print themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TypeVar

from ...dataflow.graph import Graph, Operation
from ...errors import PlanError
from ...programs.parts import Holding, Task
from ...support.wording import alternatives, counted
from ..costs.movement import Movements, WorkerRegions
from ..layouts.copies import Copies
from ..layouts.forms import Form
from ..layouts.parts import Computed, Held, numbers
from ..layouts.step_split import Layout

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Move:
    """How one holding is filled."""

    target: Holding
    """The holding."""

    terms: tuple[tuple[Holding, ...], ...]
    """For each term that is summed, the parts to read: one term if the holding is only fetched."""

    def __str__(self) -> str:
        sums = ["; ".join(map(str, pieces)) for pieces in self.terms]
        return f"{self.target} from {' + '.join(f'({pieces})' for pieces in sums)}"


@dataclass(frozen=True, slots=True)
class Version:
    """A tensor in one set of holdings."""

    number: int
    """0 is the home; others are copies."""

    source: int | None
    """The version that this one is made from; None for the home."""

    holdings: tuple[Holding, ...]
    """Who holds which parts."""

    hops: tuple[tuple[Move, ...], ...]
    """How it is made: what each worker fetches and sums, hop by hop.

    Parts that are already in their places are not moved.
    """

    readers: tuple[str, ...]
    """The operations that read it, in the order in which they run."""

    def __str__(self) -> str:
        name = "home" if self.source is None else f"copy {self.number}, of version {self.source}"
        lives = f", read by {', '.join(self.readers)}" if self.readers else ", read by nothing"
        return "\n".join([f"{name}{lives}", *(f"  {holding}" for holding in self.holdings)])


class Tasks(Mapping[str, tuple[Task, ...]]):
    """The tasks of every operation, by name; expanded when asked for, equal forms once."""

    def __init__(
        self,
        graph: Graph,
        strategies: Mapping[str, Form],
        factors: tuple[int, ...],
        computed: Computed | None = None,
    ) -> None:
        """`computed` has what was expanded for other plans."""
        self._operations = {operation.name: operation for operation in graph.operations}
        self._strategies = strategies
        self._factors = factors
        self._computed = Computed() if computed is None else computed

    def __getitem__(self, name: str) -> tuple[Task, ...]:
        operation = self._operations.get(name) or _found("operation", name, self._operations)
        return self._computed.of(operation.bound, self._strategies[name], self._factors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._operations)

    def __len__(self) -> int:
        return len(self._operations)

    def __repr__(self) -> str:
        return f"<tasks of {counted(len(self), 'operation')}>"


class Versions(Mapping[str, tuple[Version, ...]]):
    """The versions of every tensor, by name: its home, then its copies; expanded when asked for."""

    def __init__(
        self,
        graph: Graph,
        strategies: Mapping[str, Form],
        layouts: Mapping[str, Layout],
        copies: Copies,
        factors: tuple[int, ...],
        order: Sequence[Operation],
    ) -> None:
        self._strategies = strategies
        self._layouts = layouts
        self._copies = copies
        self._factors = factors
        self._held = Held()
        self._tensors = {tensor.name: tensor for tensor in graph.tensors}
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._readers: dict[int, list[str]] = {}
        for operation in order:
            for tensor in dict.fromkeys(operation.inputs):
                self._readers.setdefault(tensor, []).append(operation.name)

    def __getitem__(self, name: str) -> tuple[Version, ...]:
        tensor = _found("tensor", name, self._tensors)
        movements = Movements(prod(self._factors), self._factors)
        layout, copies = self._layouts[name], self._copies.get(name, ())
        regions = [movements.layout(layout)]
        readers = self._readers.get(tensor.index, [])
        copied = {reader for copy in copies for reader in copy.readers}
        home = tuple(reader for reader in readers if reader not in copied)
        found = [Version(0, None, self._held.of(layout), self._made(name, movements), home)]
        for number, copy in enumerate(copies, 1):
            held = Layout(tensor.shape, copy.form, self._factors)
            regions.append(movements.layout(held))
            hops = _hops(movements, regions[copy.source], regions[number])
            read = tuple(reader for reader in readers if reader in copy.readers)
            found.append(Version(number, copy.source, self._held.of(held), hops, read))
        return tuple(found)

    def _made(self, name: str, movements: Movements) -> tuple[tuple[Move, ...], ...]:
        """Return the hops from the tasks that make a tensor to its home."""
        tensor, layout = self._tensors[name], self._layouts[name]
        maker = self._maker.get(tensor.index)
        if maker is None:
            return ()
        operator = movements.operator(maker.bound, self._strategies[maker.name])
        made, home = operator.outputs[maker.outputs.index(tensor.index)], movements.layout(layout)
        if layout.stop is None or made.terms == home.terms:
            return _hops(movements, made, home)
        return _hops(movements, made, movements.layout(layout.stop), home)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<versions of {counted(len(self), 'tensor')}>"


def _hops(movements: Movements, *regions: WorkerRegions) -> tuple[tuple[Move, ...], ...]:
    """Return the moves from each set of holdings to the next, without those that move nothing."""
    hops = (_moves(made, wanted, movements) for made, wanted in pairwise(regions))
    return tuple(hop for hop in hops if hop)


def _moves(made: WorkerRegions, wanted: WorkerRegions, movements: Movements) -> tuple[Move, ...]:
    """Return how holdings are filled, those excepted that their own worker has already."""
    sources, targets = _holdings(made), _holdings(wanted)
    moves = []
    for target, assemblies in zip(targets, movements.collections(made, wanted), strict=True):
        terms = tuple(
            tuple(replace(sources[part], region=region) for part, region in assembly.parts)
            for assembly in assemblies
        )
        first = terms[0][:1]
        there = [(piece.worker, piece.region) for piece in first] == [(target.worker, target.region)]
        if len(terms) > 1 or len(terms[0]) > 1 or not there:
            moves.append(Move(target, terms))
    return tuple(moves)


def _holdings(regions: WorkerRegions) -> tuple[Holding, ...]:
    return tuple(map(Holding, regions.workers, regions.regions, numbers(regions.term, regions.terms)))


def _found(what: str, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise PlanError(f"there is no {what} {name!r}{alternatives(name, known)}")
    return known[name]
