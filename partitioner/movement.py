"""Which worker reads which region from whom, for one operation and one tensor, without buffers.

Layers repeat, so lowering asks for the same movements again and again: they are computed once per
operator with its strategies, per source, and per layout.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analyzer.bound import Bound
from ..analyzer.region import Boxes, Region, to_region
from ..errors import PlanError
from ..tdl.ast import AnyReducer
from .cover import Parts, contains, cover, elements
from .splits import SplitLayout
from .tables import Strategies, operator_choices


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRegions:
    """One operator split by one sequence of strategies: everything per worker.

    `term[w]` is the number of the partial result that worker `w` computes, of `terms`; `reducer` combines
    them and is None where the outputs are only concatenated.
    """

    bound: Bound
    boxes: tuple[Region, ...]
    inputs: dict[str, tuple[Region, ...]]
    outputs: tuple[tuple[Region, ...], ...]
    terms: int
    term: tuple[int, ...]
    reducer: AnyReducer | None


@dataclass(frozen=True, slots=True)
class Assembly:
    """A region as disjoint parts; `fetched_elements` of it come from other workers than the reader."""

    parts: Parts
    fetched_elements: int


class Movements:
    """Regions and movements for plans with one sequence of factors."""

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._operators: dict[tuple[Bound, Strategies], OperatorRegions] = {}
        self._layouts: dict[SplitLayout, tuple[Region, ...]] = {}
        self._fetches: dict[tuple[OperatorRegions, str, SplitLayout], tuple[Assembly | None, ...]] = {}
        self._collections: dict[
            tuple[OperatorRegions, int, SplitLayout], tuple[tuple[Assembly, ...], ...]
        ] = {}

    def operator(self, bound: Bound, strategies: Strategies) -> OperatorRegions:
        found = self._operators.get((bound, strategies))
        if found is None:
            choices = operator_choices(bound, [strategies], self._factors)
            found = OperatorRegions(
                bound,
                _regions(choices.boxes[0]),
                {name: _regions(boxes[0]) for name, boxes in choices.inputs.items()},
                tuple(_regions(boxes[0]) for boxes in choices.outputs),
                int(choices.terms[0]),
                tuple(choices.term[0].tolist()),
                _reducer(bound, strategies),
            )
            self._operators[bound, strategies] = found
        return found

    def layout(self, layout: SplitLayout) -> tuple[Region, ...]:
        """The region that each worker owns."""
        found = self._layouts.get(layout)
        if found is None:
            found = self._layouts[layout] = _regions(layout.regions)
        return found

    def fetches(
        self, operator: OperatorRegions, name: str, layout: SplitLayout
    ) -> tuple[Assembly | None, ...]:
        """Per worker the assembly of an input, or None where its own shard holds all it needs."""
        key = (operator, name, layout)
        found = self._fetches.get(key)
        if found is None:
            owned = self.layout(layout)
            found = self._fetches[key] = tuple(
                None if elements(owned[w]) and contains(owned[w], needed) else _assembly(needed, owned, w)
                for w, needed in enumerate(operator.inputs[name])
            )
        return found

    def collections(
        self, operator: OperatorRegions, output: int, layout: SplitLayout
    ) -> tuple[tuple[Assembly, ...], ...]:
        """Per worker and term the assembly of the region of an output that it owns."""
        key = (operator, output, layout)
        found = self._collections.get(key)
        if found is None:
            produced = operator.outputs[output]
            by_term = [
                [r if term == mine else None for r, mine in zip(produced, operator.term, strict=True)]
                for term in range(operator.terms)
            ]
            found = self._collections[key] = tuple(
                tuple(_assembly(owned, held, w) for held in by_term) if elements(owned) else ()
                for w, owned in enumerate(self.layout(layout))
            )
        return found


def _regions(boxes: Boxes) -> tuple[Region, ...]:
    return tuple(to_region(box) for box in boxes)


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
        raise PlanError(f"{bound.description.name} cannot be reduced by {both} at once")
    return reducers.pop() if reducers else None
