"""Values that are not reduced yet: who may hold, read and reduce the terms of a sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph, Operation, Tensor
from ...errors import PlanError
from ...tdl.ast import AnyReducer, Reducer
from .copies import Copies, ReadCopy
from .forms import Form, Partial, Parts, Spread
from .step_split import Layout, OperationParts, reducer_of, split_operation


def is_partial(form: Form | None) -> bool:
    """Tell whether a form has terms."""
    match form:
        case tuple():
            return any(isinstance(entry, Partial) for entry in form)
        case Spread(degrees=degrees):
            return any(isinstance(entry, Partial) for entry, _ in degrees)
        case Parts(boxes=boxes):
            return any(len(part) > 2 for part in boxes)
        case _:
            return False


def check_partial(
    graph: Graph,
    layouts: Mapping[str, Layout],
    strategies: Mapping[str, Form],
    copies: Copies,
    versions: Mapping[tuple[int, int], ReadCopy],
) -> None:
    """Raise PlanError for terms that nothing makes, that nothing can read, or that would never be reduced.

    A tensor that outlives the iteration is reduced. An operation that reads terms is linear in the tensors
    that have them, and reads as many terms as there are. A move makes fewer terms by summing equally many to
    each.
    """
    used = {id(layout): layout for layout in layouts.values()}.values()
    forms: dict[int, Form | None] = {id(form): form for form in strategies.values()}
    forms.update({id(form): form for layout in used for form in (layout.form, layout.via)})
    forms.update({id(copy.form): copy.form for listed in copies.values() for copy in listed})
    if any(map(is_partial, forms.values())):
        _Check(graph, layouts, strategies, copies, versions).run()


@dataclass(slots=True)
class _Check:
    """The check of one plan."""

    graph: Graph
    """The graph that the plan is for."""

    layouts: Mapping[str, Layout]
    """The home of every tensor."""

    strategies: Mapping[str, Form]
    """The form of every operation."""

    copies: Copies
    """The other versions of tensors."""

    versions: Mapping[tuple[int, int], ReadCopy]
    """The copies that operations read, by the numbers of operation and tensor."""

    known: dict[Layout, int] = field(default_factory=dict)
    """The number of terms of each layout seen so far."""

    objects: dict[int, int] = field(default_factory=dict)
    """The same for the homes of tensors, by their identities."""

    def run(self) -> None:
        made: set[int] = set()
        tasks: dict[tuple[Bound, Form], OperationParts] = {}
        objects: dict[tuple[int, int], tuple[OperationParts, AnyReducer | None]] = {}
        reducers: dict[int, AnyReducer | None] = {}
        for each in {id(each): each for each in self.layouts.values()}.values():
            self.objects[id(each)] = self._terms(each)
        partial = self._partial()
        for operation in self.graph.operations:
            key = operation.bound, self.strategies[operation.name]
            same = id(key[0]), id(key[1])
            if same not in objects:
                layout = self.layouts[self.graph.tensors[operation.outputs[0]].name]
                if key not in tasks:
                    tasks[key] = split_operation(*key, layout.factors)
                objects[same] = tasks[key], reducer_of(operation.bound, tasks[key])
            parts, reducer = objects[same]
            if parts.reads > 1 or not partial.isdisjoint(operation.inputs):
                self._check_reads(operation, parts, reducers)
            for output in operation.outputs:
                self._check_made(self.graph.tensors[output], operation, parts)
                reducers[output] = reducer
                made.add(output)
        lasting = {tensor.index for tensor in self.graph.tensors if tensor.role.persistent}
        lasting.update(self.graph.outputs)
        for tensor in self.graph.tensors:
            terms = self._terms(self.layouts[tensor.name])
            if terms > 1 and (tensor.index in lasting or tensor.index not in made):
                why = "outlives the iteration" if tensor.index in made else "is not made by an operation"
                raise PlanError(
                    f"tensor {tensor.name!r} {why}, so it cannot be {terms} partial results; give it a form "
                    "without terms"
                )
            if tensor.name in self.copies:
                self._check_copies(tensor)

    def _partial(self) -> set[int]:
        """Return the tensors of which some version has terms."""
        found = {each.index for each in self.graph.tensors if self._terms(self.layouts[each.name]) > 1}
        return found | {tensor for (_, tensor), copy in self.versions.items() if self._terms(copy.layout) > 1}

    def _check_reads(
        self, operation: Operation, tasks: OperationParts, reducers: Mapping[int, AnyReducer | None]
    ) -> None:
        place, partial = f"operation {operation.name!r}", []
        for position, name in operation.bound.read_places:
            tensor = self.graph.tensors[operation.inputs[position]]
            version = self.versions.get((operation.index, tensor.index))
            layout = self.layouts[tensor.name] if version is None else version.layout
            terms = self._terms(layout)
            if terms == 1:
                continue
            if tasks.reads == 1:
                raise PlanError(
                    f"{place} reads {tensor.name!r}, which is {terms} partial results; give "
                    f"{tensor.name!r} a form to say where they are reduced"
                )
            if terms != tasks.reads:
                raise PlanError(
                    f"{place} reads {tasks.reads} terms, but {tensor.name!r} has {terms}; give both as many"
                )
            if reducers.get(tensor.index) is not Reducer.SUM:
                raise PlanError(
                    f"{place} reads terms of {tensor.name!r}, which are combined by "
                    f"{reducers.get(tensor.index)}; only terms of a sum can be read, so let it read a copy"
                )
            self._check_types(operation, tensor)
            partial.append(name)
        if tasks.reads > 1 and not operation.bound.linear_in(partial):
            if not partial:
                raise PlanError(
                    f"{place} reads {tasks.reads} terms, but its inputs have none; change its form"
                )
            raise PlanError(
                f"{place} reads {tasks.reads} terms, but {operation.bound.description.name} is not linear in "
                f"{' and '.join(partial)}; let it read a copy that is reduced"
            )

    def _terms(self, layout: Layout) -> int:
        found = self.objects.get(id(layout))
        if found is None:
            found = self.known.get(layout)
        if found is None:
            found = self.known[layout] = layout.expanded.terms
        return found

    def _check_types(self, operation: Operation, tensor: Tensor) -> None:
        for output in operation.outputs:
            made = self.graph.tensors[output]
            if made.dtype != tensor.dtype:
                raise PlanError(
                    f"operation {operation.name!r} makes {made.dtype} of {tensor.name!r}, which is "
                    f"{tensor.dtype}, so its terms would be rounded; let it read a copy that is reduced"
                )

    def _check_made(self, tensor: Tensor, operation: Operation, tasks: OperationParts) -> None:
        layout, place = self.layouts[tensor.name], f"tensor {tensor.name!r}"
        here = f"{place}, made by {operation.name!r}"
        home, stop = self._terms(layout), layout.stop
        if stop is not None and tasks.terms > home:
            _check_sums(tasks.terms, self._terms(stop), f"{here}, on the way")
            _check_sums(self._terms(stop), home, here)
        _check_sums(tasks.terms, home, here)

    def _check_copies(self, tensor: Tensor) -> None:
        layout = self.layouts[tensor.name]
        terms = [self._terms(layout)]
        for number, copy in enumerate(self.copies.get(tensor.name, ()), 1):
            terms.append(self._terms(Layout(tensor.shape, copy.form, layout.factors)))
            _check_sums(terms[copy.source], terms[number], f"copy {number} of tensor {tensor.name!r}")


def _check_sums(made: int, wanted: int, place: str) -> None:
    if made % wanted:
        raise PlanError(
            f"{place}: {wanted} terms cannot be made of {made}, equally many summed to each; choose a divisor"
        )
