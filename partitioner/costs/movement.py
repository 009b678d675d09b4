"""Find which worker reads which region from whom, for one operation and one tensor, without buffers.

    fetches(needed, held)[w]        disjoint pieces of held regions that cover needed[w]
    collections(made, wanted)[w]    for each term to sum, disjoint pieces of made regions that cover wanted[w]

Regions have terms. A fetch takes one term. A collection goes from `T` terms to `t`, a divisor of `T`: each
wanted term is the sum of `T / t` terms that follow each other.

Layers repeat, so lowering asks for the same movements many times. They are computed once per operator with
its form, per use, and per layout. Implemented in: `Movements`, `cover.covers` (pieces).

Assumes: the owned regions cover the tensor, and the boxes of every term the outputs (`Plan.verify`).
Guarantees: the elements of all pieces from other workers are those that `box_counts` counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Region, to_region
from ...errors import PlanError
from ...programs.cover import Holder, Parts, contains, covers, elements
from ...programs.program import region_text
from ...tdl.ast import AnyReducer
from ..layouts.forms import Form
from ..layouts.step_split import Layout, reducer_of, split_operation


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRegions:
    """Regions of one tensor on workers. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each region; a worker may have several regions or none."""

    regions: tuple[Region, ...]
    """The regions."""

    elements: tuple[int, ...]
    """The number of elements of each region."""

    term: tuple[int, ...]
    """The number of each region's term."""

    terms: int
    """The number of terms; 1 if the tensor is reduced."""


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

    reads: tuple[tuple[Region | None, ...], ...]
    """For each task, the regions that it reads, parameter by parameter; None for one that is not read."""

    siblings: tuple[tuple[int, ...], ...]
    """For each task, the numbers of the other tasks of its worker."""

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
        self._known: dict[tuple[object, ...], WorkerRegions] = {}
        self._operators: dict[tuple[Bound, Form], OperatorRegions] = {}
        self._layouts: dict[Layout, WorkerRegions] = {}
        self._fetches: dict[tuple[WorkerRegions, WorkerRegions], Fetches] = {}
        self._kept: dict[tuple[WorkerRegions, WorkerRegions], tuple[int | None, ...]] = {}
        self._collections: dict[tuple[WorkerRegions, WorkerRegions], Collections] = {}

    def operator(self, bound: Bound, form: Form) -> OperatorRegions:
        found = self._operators.get((bound, form))
        if found is None:
            parts = split_operation(bound, form, self._factors)
            workers = tuple(parts.workers.tolist())
            reads = bound.input_regions(parts.boxes)
            read = tuple(parts.read.tolist()), parts.reads
            made = tuple(parts.term.tolist()), parts.terms
            inputs = {name: self._regions(workers, reads[name], *read) for name in bound.reads}
            unread = (None,) * len(workers)
            regions = [
                inputs[name].regions if name in inputs else unread for name in bound.description.tensor_names
            ]
            found = OperatorRegions(
                bound,
                workers,
                tuple(map(to_region, parts.boxes)),
                inputs,
                tuple([self._regions(workers, boxes, *made) for boxes in bound.output_regions(parts.boxes)]),
                tuple([tuple([each[task] for each in regions]) for task in range(len(workers))]),
                _siblings(workers),
                reducer_of(bound, parts),
            )
            self._operators[bound, form] = found
        return found

    def layout(self, layout: Layout) -> WorkerRegions:
        """Return the regions in which a tensor is held; empty regions are not held."""
        found = self._layouts.get(layout)
        if found is None:
            parts = layout.expanded
            held = [
                (worker, region, term)
                for worker, region, term in zip(
                    parts.workers.tolist(), map(to_region, parts.boxes), parts.term.tolist(), strict=True
                )
                if elements(region)
            ]
            workers, regions, term = zip(*held, strict=True) if held else ((), (), ())
            found = self._layouts[layout] = self._interned(workers, regions, term, parts.terms)
        return found

    def fetches(self, needed: WorkerRegions, held: WorkerRegions) -> Fetches:
        """Return, for each task, its worker's holding that has all of its region, or what to assemble."""
        found = self._fetches.get((needed, held))
        if found is None:
            by_term = _by_term(held)
            own: dict[tuple[int, int], list[int]] = {}
            for number, (worker, term) in enumerate(zip(held.workers, held.term, strict=True)):
                own.setdefault((worker, term), []).append(number)
            terms = needed.term if held.terms > 1 else (0,) * len(needed.workers)
            local = [
                next((n for n in own.get((worker, term), ()) if contains(held.regions[n], region)), None)
                for worker, region, term in zip(needed.workers, needed.regions, terms, strict=True)
            ]
            wanting: list[list[int]] = [[] for _ in by_term]
            for task, holding in enumerate(local):
                if holding is None:
                    wanting[terms[task]].append(task)
            assembled: dict[int, Assembly] = {}
            for tasks, holders in zip(wanting, by_term, strict=True):
                assembled |= zip(tasks, self._assemblies(needed, tasks, holders), strict=True)
            found = self._fetches[needed, held] = tuple(
                [assembled[task] if holding is None else holding for task, holding in enumerate(local)]
            )
        return found

    def kept(self, made: WorkerRegions, held: WorkerRegions) -> tuple[int | None, ...]:
        """Return, for each region that is made, the number of its worker's holding of exactly that."""
        found = self._kept.get((made, held))
        if found is None:
            parts = zip(held.workers, held.regions, held.term, strict=True)
            free = {part: number for number, part in enumerate(parts)} if made.terms == held.terms else {}
            found = self._kept[made, held] = tuple([
                free.pop(part, None) for part in zip(made.workers, made.regions, made.term, strict=True)
            ])  # fmt: skip
        return found

    def collections(self, made: WorkerRegions, wanted: WorkerRegions) -> Collections:
        """Return, for each wanted region, an assembly of every term that is summed to it."""
        found = self._collections.get((made, wanted))
        if found is None:
            each = made.terms // wanted.terms
            readers: list[list[int]] = [[] for _ in range(wanted.terms)]
            for number, term in enumerate(wanted.term):
                readers[term].append(number)
            sums: list[list[Assembly]] = [[] for _ in wanted.workers]
            for term, holders in enumerate(_by_term(made)):
                numbers = readers[term // each]
                for number, assembly in zip(numbers, self._assemblies(wanted, numbers, holders), strict=True):
                    sums[number].append(assembly)
            found = self._collections[made, wanted] = tuple(map(tuple, sums))
        return found

    def _assemblies(
        self, wanted: WorkerRegions, numbers: Sequence[int], holders: Mapping[int, Holder]
    ) -> list[Assembly]:
        """Return what is assembled from holders for the regions of these numbers."""
        readers = [(wanted.workers[number], wanted.regions[number]) for number in numbers]
        found = covers(readers, holders, self._workers)
        return [_assembly(*each, parts, holders) for each, parts in zip(readers, found, strict=True)]

    def _regions(
        self, workers: tuple[int, ...], boxes: Boxes, term: tuple[int, ...], terms: int
    ) -> WorkerRegions:
        return self._interned(workers, tuple(map(to_region, boxes)), term, terms)

    def _interned(
        self, workers: tuple[int, ...], regions: tuple[Region, ...], term: tuple[int, ...], terms: int
    ) -> WorkerRegions:
        key = workers, regions, term, terms
        found = self._known.get(key)
        if found is None:
            counts = tuple(map(elements, regions))
            found = self._known[key] = WorkerRegions(workers, regions, counts, term, terms)
        return found


def _assembly(reader: int, target: Region, parts: Parts | None, holders: Mapping[int, Holder]) -> Assembly:
    if parts is None:
        raise PlanError(
            f"worker {reader} needs {region_text(target)}, but no worker holds some of it; hold "
            "all that is read"
        )
    fetched = 0
    for number, region in parts:
        if holders[number][0] != reader:
            fetched += elements(region)
    return Assembly(parts, fetched)


def _siblings(workers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return, for each task, the numbers of the other tasks of its worker."""
    of_worker: dict[int, list[int]] = {}
    for task, worker in enumerate(workers):
        of_worker.setdefault(worker, []).append(task)
    return tuple([
        tuple([other for other in of_worker[worker] if other != task]) for task, worker in enumerate(workers)
    ])  # fmt: skip


def _by_term(held: WorkerRegions) -> list[dict[int, Holder]]:
    """Return the holders of each term by their numbers."""
    found: list[dict[int, Holder]] = [{} for _ in range(held.terms)]
    for number, (worker, region, term) in enumerate(zip(held.workers, held.regions, held.term, strict=True)):
        found[term][number] = worker, region
    return found
