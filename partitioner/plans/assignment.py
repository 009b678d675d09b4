"""A plan expanded: the tasks of every operation, and the holdings of every version of a tensor.

Forms are how plans are written and searched. What they stand for is here, as values that print themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeVar

from ...analyzer.indices.region import Region, to_region
from ...dataflow.graph import Graph, Operation
from ...errors import PlanError
from ...programs.program import region_text
from ...support.wording import alternatives, counted
from ..costs.movement import Collections, Movements, WorkerRegions
from ..layouts.copies import Copies
from ..layouts.forms import Expanded, Form
from ..layouts.step_split import Layout, split_operation

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an operation."""

    worker: int
    """The worker that computes it."""

    box: Region
    """One interval for each variable of the operation."""

    term: int = 0
    """The number of the partial result that it makes; 0 if there is one."""

    def __str__(self) -> str:
        return _shown(self.worker, self.box, self.term)


@dataclass(frozen=True, slots=True)
class Holding:
    """A part of a tensor."""

    worker: int
    """The worker that holds it."""

    region: Region
    """One interval for each dimension of the tensor."""

    term: int = 0
    """The number of the term of the tensor; 0 if the tensor is reduced."""

    def __str__(self) -> str:
        return _shown(self.worker, self.region, self.term)


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

    What is already in its place is not moved.
    """

    readers: tuple[str, ...]
    """The operations that read it, in the order in which they run."""

    def __str__(self) -> str:
        name = "home" if self.source is None else f"copy {self.number}, of version {self.source}"
        lives = f", read by {', '.join(self.readers)}" if self.readers else ", read by nothing"
        return "\n".join([f"{name}{lives}", *(f"  {holding}" for holding in self.holdings)])


class Tasks(Mapping[str, tuple[Task, ...]]):
    """The tasks of every operation, by name; expanded when asked for."""

    def __init__(self, graph: Graph, strategies: Mapping[str, Form], factors: tuple[int, ...]) -> None:
        self._operations = {operation.name: operation for operation in graph.operations}
        self._strategies = strategies
        self._factors = factors

    def __getitem__(self, name: str) -> tuple[Task, ...]:
        operation = _found("operation", name, self._operations)
        parts = split_operation(operation.bound, self._strategies[name], self._factors)
        return tuple(
            Task(worker, to_region(box), term)
            for worker, box, term in zip(
                parts.workers.tolist(), parts.boxes, parts.term.tolist(), strict=True
            )
        )

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
        found = [Version(0, None, _held(layout.expanded), self._made(name, movements), home)]
        for number, copy in enumerate(copies, 1):
            held = Layout(tensor.shape, copy.form, self._factors)
            regions.append(movements.layout(held))
            hops = _hops(movements, regions[copy.source], regions[number])
            read = tuple(reader for reader in readers if reader in copy.readers)
            found.append(Version(number, copy.source, _held(held.expanded), hops, read))
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
    collections: Collections = movements.collections(made, wanted)
    moves = []
    for target, assemblies in zip(_holdings(wanted), collections, strict=True):
        terms = tuple(
            tuple(Holding(made.workers[part], region, made.term[part]) for part, region in assembly.parts)
            for assembly in assemblies
        )
        here = [Holding(target.worker, target.region, piece.term) for pieces in terms for piece in pieces]
        if len(terms) > 1 or list(terms[0]) != here[:1]:
            moves.append(Move(target, terms))
    return tuple(moves)


def _holdings(regions: WorkerRegions) -> Iterator[Holding]:
    return map(Holding, regions.workers, regions.regions, regions.term)


def _held(parts: Expanded) -> tuple[Holding, ...]:
    boxes = map(to_region, parts.boxes)
    return tuple(map(Holding, parts.workers.tolist(), boxes, parts.term.tolist()))


def _found(what: str, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise PlanError(f"there is no {what} {name!r}{alternatives(name, known)}")
    return known[name]


def _shown(worker: int, box: Region, term: int) -> str:
    return f"worker {worker} {region_text(box)}" + (f" term {term}" if term else "")
