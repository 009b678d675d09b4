"""Find which worker reads which region from whom, for one operation and one tensor, without buffers.

    fetches(needed, owned)[w]          disjoint pieces of owned regions that cover needed[w]
    collections(produced, owned)[w]    for each term, disjoint pieces of produced regions that cover owned[w]

Layers repeat, so lowering asks for the same movements many times. They are computed once per operator with
its form, per use, and per layout. Implemented in: `Movements`, `cover.cover` (pieces).

Assumes: the owned regions cover the tensor, and the boxes of every term the outputs (`Plan.verify`).
Guarantees: the elements of all pieces from other workers are those that `box_counts` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Region, to_region
from ...errors import PlanError
from ...tdl.ast import AnyReducer
from ..layouts.forms import Form
from ..layouts.step_split import Layout, OperationParts, split_operation
from .cover import Holder, Parts, contains, cover, elements


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRegions:
    """Regions of one tensor on workers. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each region; a worker may have several regions or none."""

    regions: tuple[Region, ...]
    """The regions."""

    elements: tuple[int, ...]
    """The number of elements of each region."""


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRegions:
    """One operator split into tasks."""

    bound: Bound
    """The operator, bound to shapes."""

    workers: tuple[int, ...]
    """Each task's worker."""

    boxes: tuple[Region, ...]
    """Each task's box of the iteration space."""

    inputs: dict[str, WorkerRegions]
    """For each parameter, the regions that the tasks read."""

    outputs: tuple[WorkerRegions, ...]
    """For each output, the regions that the tasks produce."""

    terms: int
    """The number of partial results; 1 if the outputs are only concatenated."""

    term: tuple[int, ...]
    """The number of the partial result that each task computes."""

    reducer: AnyReducer | None
    """Combines the partial results; None if the outputs are only concatenated."""


class Assembly(NamedTuple):
    """A region that one worker reads, as disjoint parts."""

    parts: Parts
    """The holders to read from, by number, with the region of each part."""

    fetched_elements: int
    """The number of elements that come from workers other than the reader."""


Fetches = tuple[int | Assembly, ...]
"""For each task, the number of its worker's holding that has all of its region, or what to assemble."""

Collections = tuple[tuple[Assembly, ...], ...]


class Movements:
    """Regions and movements for plans over `workers` workers. Equal regions are one object."""

    def __init__(self, workers: int, factors: tuple[int, ...]) -> None:
        self._workers = workers
        self._factors = factors
        self._known: dict[tuple[tuple[int, ...], tuple[Region, ...]], WorkerRegions] = {}
        self._operators: dict[tuple[Bound, Form], OperatorRegions] = {}
        self._layouts: dict[Layout, WorkerRegions] = {}
        self._fetches: dict[tuple[WorkerRegions, WorkerRegions], Fetches] = {}
        self._spread: dict[tuple[WorkerRegions, WorkerRegions], tuple[Assembly, ...]] = {}
        self._collections: dict[tuple[WorkerRegions, tuple[int, ...], WorkerRegions], Collections] = {}

    def operator(self, bound: Bound, form: Form) -> OperatorRegions:
        found = self._operators.get((bound, form))
        if found is None:
            parts = split_operation(bound, form, self._factors)
            workers = tuple(parts.workers.tolist())
            reads = bound.input_regions(parts.boxes)
            found = OperatorRegions(
                bound,
                workers,
                tuple(map(to_region, parts.boxes)),
                {name: self._regions(workers, reads[name]) for name in bound.reads},
                tuple([self._regions(workers, boxes) for boxes in bound.output_regions(parts.boxes)]),
                parts.terms,
                tuple(parts.term.tolist()),
                _reducer(bound, parts),
            )
            self._operators[bound, form] = found
        return found

    def layout(self, layout: Layout) -> WorkerRegions:
        """Return the regions in which a tensor is held; what is empty is not held."""
        found = self._layouts.get(layout)
        if found is None:
            held = [
                (worker, region)
                for worker, region in zip(layout.workers, map(to_region, layout.regions), strict=True)
                if elements(region)
            ]
            found = self._interned(
                tuple([worker for worker, _ in held]), tuple([region for _, region in held])
            )
            self._layouts[layout] = found
        return found

    def fetches(self, needed: WorkerRegions, owned: WorkerRegions) -> Fetches:
        """Return, for each task, its worker's holding that has all of its region, or what to assemble."""
        found = self._fetches.get((needed, owned))
        if found is None:
            holders = list(zip(owned.workers, owned.regions, strict=True))
            of_worker: dict[int, list[int]] = {}
            for number, worker in enumerate(owned.workers):
                of_worker.setdefault(worker, []).append(number)
            found = self._fetches[needed, owned] = tuple([
                self._fetch(worker, region, of_worker.get(worker, []), holders)
                for worker, region in zip(needed.workers, needed.regions, strict=True)
            ])  # fmt: skip
        return found

    def collections(self, operator: OperatorRegions, output: int, owned: WorkerRegions) -> Collections:
        """Return, for each holding and term, the assembly of its region of an output."""
        produced = operator.outputs[output]
        key = (produced, operator.term, owned)
        found = self._collections.get(key)
        if found is None:
            made = list(zip(produced.workers, produced.regions, strict=True))
            by_term = [
                [each if term == own else None for each, own in zip(made, operator.term, strict=True)]
                for term in range(operator.terms)
            ]
            found = self._collections[key] = tuple(
                tuple(self._assembly(worker, region, held) for held in by_term)
                for worker, region in zip(owned.workers, owned.regions, strict=True)
            )
        return found

    def spread(self, owned: WorkerRegions, held: WorkerRegions) -> tuple[Assembly, ...]:
        """Return, for each holding in `owned`, its assembly from what others hold."""
        key = (owned, held)
        found = self._spread.get(key)
        if found is None:
            holders = list(zip(held.workers, held.regions, strict=True))
            found = self._spread[key] = tuple(
                self._assembly(worker, region, holders)
                for worker, region in zip(owned.workers, owned.regions, strict=True)
            )
        return found

    def _fetch(self, worker: int, region: Region, own: list[int], holders: list[Holder]) -> int | Assembly:
        for number in own:
            if contains(holders[number][1], region):
                return number
        return self._assembly(worker, region, holders)

    def _assembly(self, reader: int, target: Region, holders: list[Holder] | list[Holder | None]) -> Assembly:
        parts = cover(target, holders, reader, self._workers)
        if parts is None:
            raise PlanError(
                f"worker {reader} needs {target}, but no worker holds all of it: the layout has gaps"
            )
        fetched = 0
        for number, region in parts:
            holder = holders[number]
            if holder is not None and holder[0] != reader:
                fetched += elements(region)
        return Assembly(parts, fetched)

    def _regions(self, workers: tuple[int, ...], boxes: Boxes) -> WorkerRegions:
        return self._interned(workers, tuple(map(to_region, boxes)))

    def _interned(self, workers: tuple[int, ...], regions: tuple[Region, ...]) -> WorkerRegions:
        found = self._known.get((workers, regions))
        if found is None:
            found = WorkerRegions(workers, regions, tuple(map(elements, regions)))
            self._known[workers, regions] = found
        return found


def _reducer(bound: Bound, parts: OperationParts) -> AnyReducer | None:
    reducers = {reducer for v in parts.reduced if (reducer := bound.reducer(v)) is not None}
    if len(reducers) > 1:
        both = " and ".join(sorted(map(str, reducers)))
        raise PlanError(
            f"{bound.description.name} cannot be reduced by {both} at once; split it along other variables"
        )
    return reducers.pop() if reducers else None
