"""Choose, among the forms that a baseline allows, those that move the fewest bytes.

    variables    s[o] for every class of operations, d[t] for every class of tensors, and c[t, phase] for a
                 copy of t that several readers share: one of the forms in `Allowed`
    objective    minimise    the bytes that operations move for what they read and make, and that copies move
                 and then    the number of steps at which something is repeated, or copied
    constraints  an operation that reads terms reads all that there are, and one that makes terms has as many

The bytes are those of `plan_bytes` for every pair of forms, so their least sum is what the composed plan
costs. Implemented in: `least_forms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Shape
from ....dataflow.graph import Operation, Phase, Role
from ....errors import PlanError
from ...costs.plan_bytes import PartCounts
from ...layouts.copies import Copy
from ...layouts.forms import Partial, Steps
from ...layouts.step_split import Layout
from ...layouts.two_hops import in_two_hops
from ...layouts.uses import Use, touched
from ...solvers.elimination import CostTable
from ...solvers.solve import Optimum, least_cost
from .forms import Allowed

LARGEST = 1 << 62
"""The largest sum of costs that integers of tables may have."""

Table = npt.NDArray[np.int64]


class Forms(NamedTuple):
    """A plan, as `compose` takes it."""

    operations: Mapping[str, Steps]
    """The forms of all operations."""

    tensors: Mapping[str, Steps]
    """The forms of all tensors that overwrite no other."""

    copies: Mapping[str, tuple[Copy, ...]]
    """The copies of tensors."""

    moved_bytes: int
    """The bytes that the composed plan moves."""


class _Priced(NamedTuple):
    """The price of every pair of forms."""

    moved: Table
    """The bytes that move; 0 for a pair that is not possible."""

    repeats: Table
    """The number of steps at which something is repeated, or copied."""

    impossible: npt.NDArray[np.bool_]
    """Whether a pair is not possible."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """A copy that the readers of one phase share."""

    variable: int
    """Its variable."""

    forms: Sequence[Steps]
    """The forms that it may have."""

    weight: int
    """The bytes of one element of each tensor of its class that is read in this phase."""


def least_forms(allowed: Allowed, counts: PartCounts) -> Forms:
    """Return the forms that move the fewest bytes. `counts` are those of the mesh's factors."""
    return _Search(allowed, counts).run()


class _Search:
    """The factor graph of one mesh."""

    def __init__(self, allowed: Allowed, counts: PartCounts) -> None:
        problem = allowed.problem
        self.allowed = allowed
        self.problem = problem
        self.phases: list[Phase] = [Phase.FORWARD] * len(problem.operators)
        writes: list[set[Role]] = [set() for _ in problem.operators]
        for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True):
            self.phases[number] = operation.phase
            overwritten = [problem.graph.tensors[tensor].alias for tensor in operation.outputs]
            writes[number] |= {problem.graph.tensors[a].role for a in overwritten if a is not None}
        roles: dict[int, Role] = {}
        for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True):
            roles.setdefault(number, tensor.role)
        self.operations = [
            allowed.operation(number, phase, writes[number]) for number, phase in enumerate(self.phases)
        ]
        self.tensors = [allowed.tensor(number, role) for number, role in sorted(roles.items())]
        self.domains = [len(forms) for forms in (*self.operations, *self.tensors)]
        self.shared: dict[tuple[int, Phase], _Shared] = {}
        for (number, phase), (readers, weight) in self._readers().items():
            forms = allowed.copies(self.tensors[number], roles[number])
            if readers > 1 and len(forms) > 1:
                self.shared[number, phase] = _Shared(len(self.domains), forms, weight)
                self.domains.append(len(forms))
        self.ticks = 1 + 2 * len(self.domains) * len(allowed.factors)
        self.counts = counts
        self.layouts: dict[tuple[Shape, Steps], Layout] = {}
        self.known: dict[object, _Priced] = {}

    def run(self) -> Forms:
        solved, moved_bytes = self._solved(self._tables())
        graph, count = self.problem.graph, len(self.operations)
        chosen = [
            forms[value]
            for forms, value in zip((*self.operations, *self.tensors), solved.assignment, strict=False)
        ]
        copies: dict[str, tuple[Copy, ...]] = {}
        readers: dict[tuple[int, Phase], list[str]] = {}
        for operation in graph.operations:
            for tensor in _read(operation):
                readers.setdefault((tensor, self._share(operation.phase)), []).append(operation.name)
        for (tensor, phase), names in readers.items():
            number = self.problem.tensor_class[tensor]
            shared = self.shared.get((number, phase))
            if shared is not None:
                form = shared.forms[solved.assignment[shared.variable]]
                if form != chosen[count + number]:
                    name = graph.tensors[tensor].name
                    copies[name] = (*copies.get(name, ()), Copy(form, tuple(names)))
        return Forms(
            {o.name: chosen[n] for o, n in zip(graph.operations, self.problem.operation_class, strict=True)},
            {
                tensor.name: chosen[count + number]
                for tensor, number in zip(graph.tensors, self.problem.tensor_class, strict=True)
                if tensor.alias is None
            },
            copies,
            moved_bytes,
        )

    def _solved(self, tables: Sequence[tuple[tuple[int, int], _Priced]]) -> tuple[Optimum, int]:
        """Return the assignment of the least cost, and the bytes that it moves.

        An impossible pair costs more than the best assignment. If bytes are too many for that, they are
        counted in units of the largest number that divides all of them, and then without what repeats.
        Raises PlanError if they are still too many.
        """
        priced = list({id(each): each for _, each in tables}.values())
        common = max(int(np.gcd.reduce([np.gcd.reduce(each.moved, axis=None) for each in priced])), 1)
        impossible = sum(bool(each.impossible.any()) for _, each in tables)
        too_much = LARGEST // (2 * impossible + 1)
        largest = sum(int(each.moved.max(initial=0)) for _, each in tables)
        for unit, ticks in ((1, self.ticks), (common, self.ticks), (common, 1)):
            if largest // unit * ticks > LARGEST // 4:
                continue
            costs = {
                id(each): np.where(
                    each.impossible, too_much, each.moved // unit * ticks + each.repeats * (ticks > 1)
                )
                for each in priced
            }
            solved = least_cost(self.domains, [CostTable(scope, costs[id(each)]) for scope, each in tables])
            if solved.cost < too_much:
                return solved, solved.cost // ticks * unit
        raise PlanError(
            f"{self.problem.graph.name!r} moves too many bytes on the mesh {self.allowed.mesh} for whole "
            "numbers of 64 bits; choose another mesh or method"
        )

    def _share(self, phase: Phase) -> Phase:
        """Return the phase with which the readers of one phase share copies."""
        refetches = self.allowed.style.refetches or phase is Phase.UPDATE
        return phase if refetches else Phase.FORWARD

    def _shared(self, tensor: int, operator: int) -> _Shared | None:
        return self.shared.get((tensor, self._share(self.phases[operator])))

    def _readers(self) -> dict[tuple[int, Phase], tuple[int, int]]:
        """Return, for classes of tensors, the readers that share a copy and the bytes of an element."""
        found: dict[tuple[int, Phase], tuple[int, int]] = {}
        seen: set[tuple[int, Phase]] = set()
        for operation in self.problem.graph.operations:
            if operation.phase is Phase.UPDATE:
                continue
            for tensor in _read(operation):
                key = self.problem.tensor_class[tensor], self._share(operation.phase)
                readers, weight = found.get(key, (0, 0))
                fresh = (tensor, key[1]) not in seen
                seen.add((tensor, key[1]))
                itemsize = self.problem.graph.tensors[tensor].itemsize
                found[key] = readers + 1, weight + itemsize * fresh
        return found

    def _tables(self) -> list[tuple[tuple[int, int], _Priced]]:
        """Return the tables of bytes; the first table of a variable also has what it repeats."""
        count, tables, repeats = len(self.operations), [], set(range(len(self.domains)))
        summed = self.allowed.axes.samples.terms | self.allowed.axes.sums
        for operator, tensor, use, weight in self.problem.links:
            shared = None if isinstance(use, int) else self._shared(tensor, operator)
            held = count + tensor if shared is None else shared.variable
            forms = self.tensors[tensor] if shared is None else shared.forms
            bound, shape = self.problem.operators[operator], self.problem.shapes[tensor]
            scope = operator, held
            first = operator in repeats, held in repeats and shared is None
            repeats -= {*scope}
            allowed = tuple(self.operations[operator]), tuple(forms)
            key = bound, shape, *allowed, use, weight, first, tensor in summed
            if key not in self.known:
                moved = self._moved(bound, self.operations[operator], shape, forms, use, tensor in summed)
                mine = np.array([_repeated(f) * first[0] for f in self.operations[operator]])
                theirs = np.array([_repeated(f) * first[1] for f in forms])
                self.known[key] = _Priced(moved * weight * (moved > 0), mine[:, None] + theirs, moved < 0)
            tables.append((scope, self.known[key]))
        for (tensor, _), shared in self.shared.items():
            shape, forms = self.problem.shapes[tensor], self.tensors[tensor]
            of_copy = shape, tuple(forms), tuple(shared.forms), shared.weight
            if of_copy not in self.known:
                self.known[of_copy] = self._copied(shape, forms, shared)
            tables.append(((count + tensor, shared.variable), self.known[of_copy]))
        return tables

    def _moved(
        self,
        bound: Bound,
        operations: Sequence[Steps],
        shape: Shape,
        tensors: Sequence[Steps],
        use: Use,
        summed: bool,
    ) -> Table:
        """Count the elements that move for every pair of forms; -1 if the pair is not possible.

        `summed` says whether the tensor may have terms, which an operation then reads, all or none.
        """
        table = np.full((len(operations), len(tensors)), -1, np.int64)
        for row, form in enumerate(operations):
            tasks = self.counts.tasks(bound, form)
            for column, held in enumerate(tensors):
                if isinstance(use, int):
                    possible = tasks.terms % self._terms(held) == 0
                else:
                    possible = not summed or _has_terms(form) == _has_terms(held)
                if possible:
                    layout = self.counts.held(self._layout(shape, held))
                    table[row, column] = self.counts.moved(tasks, layout, use)
        return table

    def _copied(self, shape: Shape, homes: Sequence[Steps], shared: _Shared) -> _Priced:
        """Return the bytes that move to make a copy, for every pair of forms."""
        table = np.full((len(homes), len(shared.forms)), -1, np.int64)
        repeats = np.zeros_like(table)
        for row, home in enumerate(homes):
            for column, form in enumerate(shared.forms):
                if self._terms(home) % self._terms(form) == 0:
                    moved = self.counts.copied(self._layout(shape, form), self._layout(shape, home))
                    table[row, column] = moved * shared.weight
                    repeats[row, column] = (form != home) * (1 + _repeated(form))
        return _Priced(table * (table > 0), repeats, table < 0)

    def _layout(self, shape: Shape, form: Steps) -> Layout:
        key = shape, form
        if key not in self.layouts:
            self.layouts[key] = in_two_hops(Layout(shape, form, self.allowed.factors))
        return self.layouts[key]

    def _terms(self, form: Steps) -> int:
        steps = zip(form, self.allowed.factors, strict=True)
        return prod(factor for entry, factor in steps if isinstance(entry, Partial))


def _has_terms(form: Steps) -> tuple[bool, ...]:
    return tuple(isinstance(entry, Partial) for entry in form)


def _repeated(form: Steps) -> int:
    return sum(entry is None or isinstance(entry, Partial) for entry in form)


def _read(operation: Operation) -> list[int]:
    return [tensor for tensor, use in touched(operation) if not isinstance(use, int)]
