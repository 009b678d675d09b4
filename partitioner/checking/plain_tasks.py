"""The tasks of an operation under a form: what each reads and makes, as plain regions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region, to_region
from ...errors import PlanError
from ...programs.plain_regions import check_tiling
from ...tdl.ast import Reducer
from ..layouts.forms import Form
from .plain_forms import PlainParts, plain_parts, terms_of


class PlainTasks:
    """One operator's tasks on the workers of the first steps: the checked regions of each."""

    def __init__(self, bound: Bound, form: Form, factors: Sequence[int], place: str) -> None:
        variables = list(bound.variables)
        whole = tuple((0, bound.extents[variable]) for variable in variables)
        parts = plain_parts(form, whole, variables, factors, prod(factors), place)
        boxes = [box for _, box, _ in parts]
        if not parts:
            raise PlanError(f"{place} is computed by no worker")
        check_terms(whole, parts, f"{place}, its iterations")
        cut = [v for axis, v in enumerate(variables) if any(box[axis] != whole[axis] for box in boxes)]
        for variable in cut:
            if bound.kind(variable) is None:
                offered = [v for v in variables if bound.kind(v) is not None]
                raise PlanError(
                    f"{place}: {bound.description.name} has no strategy along {variable!r}; its strategies "
                    f"are along {', '.join(offered) or 'no variable'}"
                )
        reduced = [variable for variable in cut if bound.kind(variable) == "reduce"]
        self.reads = terms_of(parts)
        reducers = {str(bound.reducer(variable)): f"{variable}" for variable in reduced}
        if self.reads > 1:
            reducers.setdefault(str(Reducer.SUM), "the terms that it reads")
        if len(reducers) > 1:
            listed = " and ".join(f"{reducer} over {variable}" for reducer, variable in reducers.items())
            raise PlanError(f"{place}: its partial results would be combined by {listed}; choose one")
        self.reducer = bound.reducer(reduced[0]) if reduced else Reducer.SUM if self.reads > 1 else None
        axes = [variables.index(variable) for variable in reduced]
        array = np.array(boxes, np.int64).reshape(len(boxes), len(variables), 2)
        regions = bound.input_regions(array)
        self.workers = [worker for worker, _, _ in parts]
        self.read = [term for _, _, term in parts]
        self.inputs = {name: _regions(regions[name]) for name in bound.reads}
        within: dict[Region, int] = {}
        for box in boxes:
            within.setdefault(tuple(box[axis] for axis in axes), len(within))
        terms = [term * len(within) + within[tuple(box[axis] for axis in axes)] for _, box, term in parts]
        self.outputs: list[PlainParts] = [
            tuple(zip(self.workers, _regions(produced), terms, strict=True))
            for produced in bound.output_regions(array)
        ]
        for output, shape in zip(self.outputs, bound.output_shapes, strict=True):
            check_terms(tuple((0, extent) for extent in shape), output, f"{place}, what it produces")


def check_terms(whole: Region, parts: PlainParts, place: str) -> None:
    """Raise PlanError unless the parts of every term tile the whole."""
    by_term: dict[int, list[Region]] = {}
    for _, region, term in parts:
        by_term.setdefault(term, []).append(region)
    for term in range(terms_of(parts)):
        here = place if terms_of(parts) == 1 else f"{place}, term {term}"
        check_tiling(whole, by_term.get(term, []), here)


def _regions(boxes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[Region, ...]:
    return tuple(to_region(box) for box in boxes)
