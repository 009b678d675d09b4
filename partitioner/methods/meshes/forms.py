"""The forms that a baseline allows for every class of operations and tensors on a mesh.

A form has one entry for each step. Steps between groups have an entry that follows from what a class is.
Steps within groups have one that the search chooses, the same at all of them:

    between groups    along the batch; a term of a sum over the batch; nothing; for what is updated, the first
                      variable that fits
    within groups     a variable or dimension of features, or nothing
    both              for models with tables, the same variable or dimension at all steps

A parameter that is contracted or looked up is split within groups, and so is an operation that contracts
one. With `sequence`, whatever else has samples is split within groups as well, along any dimension. If no
entry fits, the step repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ....analyzer.bind.bound import Bound
from ....dataflow.graph import Phase, Role
from ....tdl.ast import AnyReducer, Reducer
from ...layouts.forms import Label, Partial, Steps
from ...problem.problem import Problem
from ...problem.sequences import by_batch
from .axes import Axes
from .mesh import Mesh

LEARNED = (Role.PARAMETER, Role.STATE, Role.ACCUMULATOR)


@dataclass(frozen=True, slots=True)
class Style:
    """A way to train in parallel."""

    name: str
    """The name by which users choose it."""

    split_parameters: bool = False
    """Whether groups share out parameters, and fetch them whenever they are read."""

    splits_features: bool = False
    """Whether parameters are split within groups, or over all workers if they are looked up."""

    refetches: bool = True
    """Whether what the forward pass fetched is dropped, and fetched again for the backward pass."""

    sequence: bool = False
    """Whether nothing with samples is repeated within groups that can be split."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The forms that are allowed."""

    problem: Problem
    """The graph's classes."""

    axes: Axes
    """The purpose of dimensions."""

    mesh: Mesh
    """The mesh."""

    style: Style
    """The way to train."""

    factors: tuple[int, ...]
    """The number of parts that each step makes."""

    @property
    def widest(self) -> int:
        """Return the most parts into which a parameter can be split that is contracted or looked up."""
        axes, problem = self.axes, self.problem
        contracted = (problem.operators[n].extents[v] for n, names in axes.contracting.items() for v in names)
        looked_up = (extent for number in axes.tables for extent in problem.shapes[number])
        return max((*contracted, *looked_up), default=0)

    def operation(self, number: int, phase: Phase, writes: Iterable[Role]) -> list[Steps]:
        """Return the forms of a class of operations; `writes` are the roles of what it overwrites."""
        axes, bound = self.axes, self.problem.operators[number]
        extents: dict[Label, int] = {v: bound.extents[v] for v in bound.splits}
        features = [v for v in extents if self.style.sequence or v not in axes.data_variables[number]]
        samples = axes.samples.variable.get(number)
        contracting = axes.contracting.get(number, ())
        between: Sequence[Label | Partial] = [] if samples is None else [samples]
        if phase is Phase.UPDATE and not set(LEARNED).isdisjoint(writes):
            between = list(extents)
        elif number in axes.term_readers:
            between = [Partial()]
        must = bool(contracting) or (self.style.sequence and samples is not None)
        everywhere = number in axes.table_readers or not contracting
        found = self._forms(extents, between, contracting or features, must, everywhere)
        if number in axes.sum_readers and not contracting:
            found += self._of_terms(extents, between)
        one_way = [form for form in found if len(_reducers(bound, form)) < 2]
        return one_way or [self._form(extents, between, None)]

    def tensor(self, number: int, role: Role) -> list[Steps]:
        """Return the forms of a class of tensors."""
        axes, problem, style = self.axes, self.problem, self.style
        shape = problem.shapes[number]
        extents: dict[Label, int] = dict(enumerate(shape))
        samples = axes.samples.dimension.get(number)
        if number in problem.fed:
            return [by_batch(shape, self.factors)]
        if role in (Role.AUXILIARY, Role.SCALAR):
            return [self._nothing]
        features = [d for d in extents if style.sequence or d not in axes.data_dimensions[number]]
        between: Sequence[Label | Partial] = [] if samples is None else [samples]
        must = style.sequence and samples is not None
        if role in LEARNED:
            between = list(extents) if role is not Role.PARAMETER or style.split_parameters else []
            must = number in axes.contracted | axes.tables
        elif number in axes.samples.terms:
            between = [Partial()]
        elif samples is None and role is Role.GRADIENT and number not in axes.read_by_sample:
            between = list(extents)
        everywhere = role is not Role.PARAMETER or number in axes.tables
        found = self._forms(extents, between, features, must, everywhere)
        if number in axes.sums:
            found += self._of_terms(extents, between)
        return [*found, self._nothing] if role is Role.DATA else found

    def copies(self, forms: Sequence[Steps], role: Role) -> list[Steps]:
        """Return the forms of copies of a tensor: its own, and wider ones."""
        found = dict.fromkeys(forms)
        found.update(dict.fromkeys(self._without(form, within=True) for form in forms))
        if role in (Role.PARAMETER, Role.DATA) or self._has_tables:
            found.update(dict.fromkeys([self._without(form, within=False) for form in found]))
        return list(found)

    @property
    def _nothing(self) -> Steps:
        return (None,) * len(self.factors)

    @property
    def _has_tables(self) -> bool:
        return self.style.splits_features and bool(self.axes.tables) and self.mesh.data > 1

    def _without(self, form: Steps, within: bool) -> Steps:
        """Return a form that repeats at the steps within groups, or at those between them."""
        return tuple(
            None if inside == within else entry for entry, inside in zip(form, self.mesh.within, strict=True)
        )

    def _forms(
        self,
        extents: Mapping[Label, int],
        between: Sequence[Label | Partial],
        features: Sequence[Label],
        must: bool,
        everywhere: bool,
    ) -> list[Steps]:
        """Return the forms with each of `features` within groups, and nothing if it may or has to be."""
        steps = prod(f for f, inside in zip(self.factors, self.mesh.within, strict=True) if inside)
        split = [label for label in features if extents[label] >= steps] if steps > 1 else []
        found = [self._form(extents, between, label) for label in split]
        if not (must and split):
            found.append(self._form(extents, between, None))
        if self._has_tables and everywhere:
            all_steps = prod(self.factors)
            found += [(label,) * len(self.factors) for label in features if extents[label] >= all_steps]
        return list(dict.fromkeys(found))

    def _of_terms(self, extents: Mapping[Label, int], between: Sequence[Label | Partial]) -> list[Steps]:
        """Return the form with terms of a sum within groups."""
        return [self._form(extents, between, Partial())] if self.mesh.tensor > 1 else []

    def _form(
        self, extents: Mapping[Label, int], between: Sequence[Label | Partial], within: Label | Partial | None
    ) -> Steps:
        """Return the form with an entry within groups, and the first that fits at each step between them.

        Another entry than that within groups goes first: parts of a part then lie in it.
        """
        left = dict(extents)
        if within is not None and not isinstance(within, Partial):
            left[within] //= self.mesh.tensor
            between = sorted(between, key=lambda entry: entry == within)
        entries: list[Label | Partial | None] = []
        for factor, inside in zip(self.factors, self.mesh.within, strict=True):
            if inside:
                entries.append(within)
                continue
            entry = next((e for e in between if isinstance(e, Partial) or left[e] >= factor), None)
            if entry is not None and not isinstance(entry, Partial):
                left[entry] //= factor
            entries.append(entry)
        return tuple(entries)


def _reducers(bound: Bound, form: Steps) -> set[AnyReducer | None]:
    """Return the reducers of the partial results that a form makes."""
    reducers = {bound.reducer(entry) for entry in form if isinstance(entry, str)} - {None}
    return reducers | {Reducer.SUM} if any(isinstance(entry, Partial) for entry in form) else reducers
