"""Find which worker reads which region from whom, for one operation and one tensor, without buffers.

    fetches(needed, owned)[w]          disjoint pieces of owned regions that cover needed[w]
    collections(produced, owned)[w]    for each term, disjoint pieces of produced regions that cover owned[w]

Layers repeat, so lowering asks for the same movements many times. They are computed once per operator with
its strategies, per source, and per layout. Implemented in: `Movements`, `cover.cover` (pieces).

Assumes: the owned regions cover the tensor, and the boxes of every term the outputs (`Plan.verify`).
Guarantees: the elements of all pieces from other workers are those that `box_counts` counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Region, to_region
from ...errors import PlanError
from ...tdl.ast import AnyReducer
from ..layouts.choices import operator_choices
from ..layouts.step_split import SplitLayout, Strategies
from .cover import Parts, contains, cover, elements


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRegions:
    """A region of one tensor per worker. Compared by identity."""

    regions: tuple[Region, ...]
    """Each worker's region."""

    elements: tuple[int, ...]
    """The number of elements of each region."""


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRegions:
    """One operator split by one sequence of strategies."""

    bound: Bound
    """The operator, bound to shapes."""

    boxes: tuple[Region, ...]
    """Each worker's box of the iteration space."""

    inputs: dict[str, WorkerRegions]
    """For each parameter, the regions that the workers read."""

    outputs: tuple[WorkerRegions, ...]
    """For each output, the regions that the workers produce."""

    terms: int
    """The number of partial results; 1 if the outputs are only concatenated."""

    term: tuple[int, ...]
    """The number of the partial result that each worker computes."""

    reducer: AnyReducer | None
    """Combines the partial results; None if the outputs are only concatenated."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """A region that one worker reads, as disjoint parts."""

    parts: Parts
    """The workers to read from, with the region of each part."""

    fetched_elements: int
    """The number of elements that come from workers other than the reader."""


Fetches = tuple[Assembly | None, ...]
Collections = tuple[tuple[Assembly, ...], ...]


class Movements:
    """Regions and movements for plans with one sequence of factors. Equal regions are one object."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._known: dict[tuple[Region, ...], WorkerRegions] = {}
        self._operators: dict[tuple[Bound, Strategies], OperatorRegions] = {}
        self._layouts: dict[SplitLayout, WorkerRegions] = {}
        self._fetches: dict[tuple[WorkerRegions, WorkerRegions], Fetches] = {}
        self._collections: dict[tuple[WorkerRegions, tuple[int, ...], WorkerRegions], Collections] = {}

    def operator(self, bound: Bound, strategies: Strategies) -> OperatorRegions:
        found = self._operators.get((bound, strategies))
        if found is None:
            choices = operator_choices(bound, [strategies], self._factors)
            found = OperatorRegions(
                bound,
                tuple(to_region(box) for box in choices.boxes[0]),
                {name: self._regions(boxes[0]) for name, boxes in choices.inputs.items()},
                tuple(self._regions(boxes[0]) for boxes in choices.outputs),
                int(choices.terms[0]),
                tuple(choices.term[0].tolist()),
                _reducer(bound, strategies),
            )
            self._operators[bound, strategies] = found
        return found

    def layout(self, layout: SplitLayout) -> WorkerRegions:
        """Return the region that each worker owns."""
        found = self._layouts.get(layout)
        if found is None:
            found = self._layouts[layout] = self._regions(layout.regions)
        return found

    def fetches(self, needed: WorkerRegions, owned: WorkerRegions) -> Fetches:
        """Return each worker's assembly of the region it needs; None if its own shard holds all of it."""
        found = self._fetches.get((needed, owned))
        if found is None:
            found = self._fetches[needed, owned] = tuple(
                None if count and contains(mine, region) else _assembly(region, owned.regions, w)
                for w, (region, mine, count) in enumerate(
                    zip(needed.regions, owned.regions, owned.elements, strict=True)
                )
            )
        return found

    def collections(self, operator: OperatorRegions, output: int, owned: WorkerRegions) -> Collections:
        """Return, for each worker and term, the assembly of the region of an output that it owns."""
        produced = operator.outputs[output]
        key = (produced, operator.term, owned)
        found = self._collections.get(key)
        if found is None:
            by_term = [
                [
                    region if term == mine else None
                    for region, mine in zip(produced.regions, operator.term, strict=True)
                ]
                for term in range(operator.terms)
            ]
            found = self._collections[key] = tuple(
                tuple(_assembly(region, held, w) for held in by_term) if count else ()
                for w, (region, count) in enumerate(zip(owned.regions, owned.elements, strict=True))
            )
        return found

    def _regions(self, boxes: Boxes) -> WorkerRegions:
        regions = tuple(to_region(box) for box in boxes)
        found = self._known.get(regions)
        if found is None:
            found = self._known[regions] = WorkerRegions(regions, tuple(map(elements, regions)))
        return found


def _assembly(target: Region, held: tuple[Region, ...] | list[Region | None], reader: int) -> Assembly:
    parts = cover(target, held, reader)
    if parts is None:
        raise PlanError(f"worker {reader} needs {target}, but no worker holds all of it: the layout has gaps")
    return Assembly(parts, sum(elements(region) for source, region in parts if source != reader))


def _reducer(bound: Bound, strategies: Strategies) -> AnyReducer | None:
    chosen = (bound.reducer(v) for v in strategies if v is not None and bound.kind(v) == "reduce")
    reducers = {reducer for reducer in chosen if reducer is not None}
    if len(reducers) > 1:
        both = " and ".join(sorted(map(str, reducers)))
        raise PlanError(
            f"{bound.description.name} cannot be reduced by {both} at once; split it along other variables"
        )
    return reducers.pop() if reducers else None
