"""Plans in which every operation runs on one group of workers, split inside it as a smaller plan says.

A group of one worker runs whole operations. A tensor is held by the group that makes it, in the layout of the
smaller plan. Another group whose operations read it copies it, in the same layout, and keeps the copy until
its last reader: a tensor reaches a group once. If one worker reads it for one operation, it is fetched for
that operation alone. Data stay where the smaller plan has them, on the group that reads them first, or split
by batch over all workers if they are fed so. A tensor that is read and never overwritten is on every group
that reads it. Some operations and tensors may be shared by more workers instead, by all or by as many
neighbours as divide all, which fetch their parts of what they read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....dataflow.graph import Graph, Operation, Role
from ....errors import PlanError
from ...layouts.copies import Copy
from ...layouts.forms import At, Form, Label, Partial, Parts, Spread
from ...layouts.step_split import prime_factors
from ...plans.compose import compose
from ...plans.plan import Plan
from ...plans.space import Space
from ...problem.sequences import by_batch


@dataclass(frozen=True, slots=True)
class Inside:
    """How the workers of one group share each operation and each tensor."""

    operations: Mapping[str, Form]
    """The form of every operation."""

    tensors: Mapping[str, Form]
    """The form of every tensor that has memory of its own."""

    workers: int
    """The workers of a group."""


WHOLE = Spread((), (0,))
"""All of it, on the only worker of a group."""


def whole_operations(graph: Graph) -> Inside:
    """Return the way of groups with one worker."""
    names = [tensor.name for tensor in graph.tensors if tensor.alias is None]
    return Inside(
        dict.fromkeys([each.name for each in graph.operations], WHOLE), dict.fromkeys(names, WHOLE), 1
    )


def inside_of(graph: Graph, plan: Plan) -> Inside:
    """Return the forms of a plan for one group. Copies are left out: groups fetch inside themselves again."""
    tensors = {t.name: plan.layouts[t.name].form for t in graph.tensors if t.alias is None}
    return Inside(plan.strategies, tensors, plan.workers)


def grouped_plan(
    graph: Graph,
    inside: Inside,
    groups: int,
    group_of: Sequence[int],
    order: Sequence[str] | None,
    space: Space,
    shared: Inside | None = None,
) -> Plan:
    """Return the plan in which each operation runs on the group that `group_of` lists for its index.

    The operations and tensors of `shared` are shared as it says, by the neighbours of a worker of the group.
    """
    nothing = Inside({}, {}, groups * inside.workers)
    return _Grouped(graph, inside, groups, group_of, order, space, shared or nothing).plan()


class _Grouped:
    """The forms of one graph, made once for each group."""

    def __init__(
        self,
        graph: Graph,
        inside: Inside,
        groups: int,
        group_of: Sequence[int],
        order: Sequence[str] | None,
        space: Space,
        shared: Inside,
    ) -> None:
        self._graph = graph
        self._inside = inside
        self._group_of = group_of
        self._order = order
        self._space = space
        self._shared = shared
        self._workers = groups * inside.workers
        self._known: dict[tuple[int, tuple[int, ...], int], Form] = {}
        self._roots = graph.roots

    def plan(self) -> Plan:
        """Compose the plan."""
        shared, inside = self._shared, self._inside
        operations = {
            each.name: self._on(shared, shared.operations[each.name], (self._sharing(each),))
            if each.name in shared.operations
            else self._on(inside, inside.operations[each.name], (self._group_of[each.index],))
            for each in self._graph.operations
        }
        homes, sharing = self._homes(), self._shared_homes()
        tensors: dict[str, Form] = {}
        for tensor in self._graph.tensors:
            if tensor.alias is None:
                fed = tensor.role is Role.DATA and self._space.feed == "batch"
                if fed:
                    form: Form = by_batch(tensor.shape, prime_factors(self._workers))
                elif tensor.name in shared.tensors:
                    form = self._on(shared, shared.tensors[tensor.name], sharing[tensor.index])
                else:
                    form = self._on(inside, inside.tensors[tensor.name], homes[tensor.index])
                tensors[tensor.name] = form
        return compose(
            self._graph, self._workers, operations, tensors, copies=self._copies(homes), order=self._order
        )

    def _sharing(self, operation: Operation) -> int:
        """Return the number of the neighbours that share an operation."""
        return self._group_of[operation.index] * self._inside.workers // self._shared.workers

    def _shared_homes(self) -> dict[int, tuple[int, ...]]:
        """Return the numbers of the neighbours that hold each shared tensor: makers, or readers, or one."""
        made: dict[int, tuple[int, ...]] = {}
        readers: dict[int, dict[int, None]] = {}
        for operation in self._graph.operations:
            if operation.name in self._shared.operations:
                number = self._sharing(operation)
                made.update((self._roots[tensor], (number,)) for tensor in operation.outputs)
                for tensor in operation.inputs:
                    readers.setdefault(self._roots[tensor], {})[number] = None
        found = {tensor: tuple(sorted(numbers)) for tensor, numbers in readers.items()} | made
        data = [tensor for tensor in found if self._graph.tensors[tensor].role is Role.DATA]
        return found | {tensor: found[tensor][:1] for tensor in data}

    def _homes(self) -> dict[int, tuple[int, ...]]:
        """Return the groups that hold each tensor with memory of its own; none if more workers share it."""
        graph, group_of = self._graph, self._group_of
        whole = [each for each in graph.operations if each.name not in self._shared.operations]
        found: dict[int, tuple[int, ...]] = {
            tensor.index: () for tensor in graph.tensors if tensor.name in self._shared.tensors
        }
        for operation in whole:
            for tensor in operation.outputs:
                found[self._roots[tensor]] = (group_of[operation.index],)
        for operation in whole:
            for tensor in operation.outputs:
                root, group = self._roots[tensor], group_of[operation.index]
                if found[root] != (group,):
                    raise PlanError(
                        f"operation {operation.name!r} runs in group {group}, but overwrites "
                        f"{graph.tensors[root].name!r} of group {found[root][0]}; put both into one"
                    )
        readers: dict[int, dict[int, None]] = {}
        for operation in whole:
            for tensor in operation.inputs:
                if tensor not in found and self._roots[tensor] == tensor:
                    readers.setdefault(tensor, {})[group_of[operation.index]] = None
        for each in graph.tensors:
            if each.alias is None and each.index not in found:
                groups = tuple(sorted(readers.get(each.index, {0: None})))
                found[each.index] = groups[:1] if each.role is Role.DATA else groups
        return found

    def _copies(self, homes: Mapping[int, tuple[int, ...]]) -> dict[str, list[Copy]]:
        """Return the copies of tensors that other groups read, or that are fed and read more than once."""
        readers: dict[int, dict[int, list[str]]] = {}
        for operation in self._graph.operations:
            if operation.name in self._shared.operations:
                continue
            group = self._group_of[operation.index]
            for tensor in dict.fromkeys(
                [operation.inputs[place] for place, _ in operation.bound.read_places]
            ):
                root = self._roots[tensor]
                fed = self._graph.tensors[root].role is Role.DATA and self._space.feed == "batch"
                if fed or group not in homes[root]:
                    readers.setdefault(tensor, {}).setdefault(group, []).append(operation.name)
        found: dict[str, list[Copy]] = {}
        for number, by_group in readers.items():
            name = self._graph.tensors[self._roots[number]].name
            form = self._inside.tensors[name]
            listed = [
                Copy(self._on(self._inside, form, (group,)), tuple(names))
                for group, names in by_group.items()
                if len(names) > 1 or self._inside.workers > 1
            ]
            if listed:
                found[self._graph.tensors[number].name] = listed
        return found

    def _on(self, inside: Inside, form: Form, groups: tuple[int, ...]) -> Form:
        """Return a form of one group's workers as that of some groups, which all do the same."""
        if inside.workers == self._workers:
            return form
        key = id(form), groups, inside.workers
        if key not in self._known:
            self._known[key] = _shifted(form, groups, inside.workers)
        return self._known[key]


def _shifted(form: Form, groups: Sequence[int], size: int) -> Form:
    match form:
        case Spread(degrees=degrees, workers=workers):
            pass
        case tuple() if not any(isinstance(entry, At) for entry in form):
            labels = [entry for entry in form if not isinstance(entry, At)]
            degrees, workers = tuple(zip(labels, prime_factors(size), strict=True)), tuple(range(size))
        case Parts(boxes=boxes):
            return Parts(tuple([
                (group * size + worker, *rest) for group in groups for worker, *rest in boxes
            ]))  # fmt: skip
        case _:
            raise PlanError(f"a group cannot share {form} out; use a plan in steps")
    everywhere: tuple[tuple[Label | Partial | None, int], ...] = ((None, len(groups)),)
    return Spread(
        (*(everywhere if len(groups) > 1 else ()), *degrees),
        tuple([group * size + worker for group in groups for worker in workers]),
    )
