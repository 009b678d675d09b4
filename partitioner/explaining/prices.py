"""Price the alternatives to a plan's choices by the tables of the search.

An alternative is priced twice. The first price leaves everything else in the plan unchanged. The second lets
every neighbour (the tensors of an operation, the operations of a tensor) choose again, while the neighbours
of those stay unchanged. Tied operations, and tensors that share storage, are one decision and change
together.

The choice of a tensor that is fed by batch is the copy that its readers have, if they read it elsewhere. The
alternatives of another tensor that has a copy are homes, and the copy stays.

Pairs of choices that cannot be, as an operation that would read terms of a tensor that is reduced, are left
out. Assumes: the plan is in steps, with copies as a search makes them, and each class of the problem has one
choice (`why_unpriced`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph
from ..costs.box_counts import impossible
from ..layouts.choices import (
    Counts,
    OperatorChoices,
    TensorChoices,
    operator_choices,
    paired,
    splittable,
    tensor_choices,
)
from ..layouts.form_text import form_text
from ..layouts.forms import At, Form, Steps
from ..layouts.step_split import Dimensions, Layout, Strategies
from ..plans.plan import Plan
from ..problem.constraints import What
from ..problem.factor_graph import copied_bytes
from ..problem.links import Link
from ..problem.moved_bytes import MovedBytes
from ..problem.plan_choices import choices_of, copies_of
from ..problem.problem import Chosen, Problem
from ..problem.sequences import candidates

NEVER = 1 << 52
"""The price of a pair of choices that cannot be: more bytes than any plan moves."""

ALTERNATIVE_LIMIT = 512
"""If there are more sequences, only those near the chosen one are priced, see `near_sequences`."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another choice, and the bytes of the whole plan with it."""

    choice: Steps
    """The choice at each step."""

    held_bytes: int
    """The bytes if nothing else changes."""

    following_bytes: int
    """The bytes if the neighbours choose again."""


def why_unpriced(plan: Plan, problem: Problem) -> str:
    """Say why the tables of the search do not price this plan, or return an empty text."""
    operations = [operation.name for operation in problem.graph.operations]
    tensors = [tensor.name for tensor in problem.graph.tensors]
    found = _not_in_steps("operation", operations, plan.strategies, problem.operation_class)
    fed = {
        tensor.name for tensor in problem.graph.tensors if problem.tensor_class[tensor.index] in problem.fed
    }
    read = {name: replace(plan.layouts[name], form=read_as(plan, name, name in fed)) for name in tensors}
    found = found or _not_in_steps("tensor", tensors, read, problem.tensor_class, plan.space.keep)
    return found or _kept_otherwise(plan, problem)


def _kept_otherwise(plan: Plan, problem: Problem) -> str:
    """Name a tensor with other copies than a search makes for these choices."""
    strategies, dimensions = choices_of(problem, plan)
    made = Chosen(
        problem, plan.factors, tuple(strategies), tuple(dimensions), copies_of(problem, plan)
    ).copies
    for name in sorted({*made, *plan.copies}):
        own, other = made.get(name, ()), plan.copies.get(name, ())
        if [(copy.form, {*copy.readers}) for copy in own] != [(copy.form, {*copy.readers}) for copy in other]:
            return _unpriced(f"this one keeps copies of {name!r}")
    return ""


def read_as(plan: Plan, tensor: str, fed: bool) -> Form:
    """Return the form of a tensor that has alternatives: of what is fed, that which its readers have."""
    return plan.copies[tensor][0].form if fed and tensor in plan.copies else plan.layouts[tensor].form


def _not_in_steps(
    what: str,
    names: Sequence[str],
    choices: Mapping[str, Layout] | Mapping[str, Form],
    classes: Sequence[int],
    hops: bool = False,
) -> str:
    first: dict[int, str] = {}
    for name, number in zip(names, classes, strict=True):
        choice = choices[name]
        form = choice.form if isinstance(choice, Layout) else choice
        if not isinstance(form, tuple) or any(isinstance(entry, At) for entry in form):
            return _unpriced(f"{what} {name!r} is {form_text(form)}")
        if isinstance(choice, Layout) and choice.via is not None and not hops:
            return _unpriced(f"{what} {name!r} is reduced in two hops")
        leader = first.setdefault(number, name)
        if choices[leader] != choice:
            return _unpriced(f"{what}s {leader!r} and {name!r} are tied but have two choices")
    return ""


def _unpriced(reason: str) -> str:
    return (
        f"alternatives are priced only for plans in steps, and {reason}; to compare it with an alternative, "
        "write that plan too and take their difference"
    )


class Prices:
    """The prices of a plan's alternatives; shared results are computed once."""

    def __init__(self, plan: Plan, problem: Problem) -> None:
        """Prepare to price a plan for which `why_unpriced` has no reason."""
        self._problem = problem
        self._graph: Graph = problem.graph
        self._plan = plan
        self._objective = MovedBytes()
        self._classes: dict[What, Sequence[int]] = {
            "operator": problem.operation_class,
            "tensor": problem.tensor_class,
        }
        self._first = {what: _first(classes) for what, classes in self._classes.items()}
        self._links = {what: _by_class(problem.links, what) for what in self._classes}
        self._operator_choices: dict[tuple[Bound, Strategies], tuple[OperatorChoices, bool]] = {}
        self._copies = copies_of(problem, plan)
        self._tensor_choices: dict[tuple[Any, ...], tuple[TensorChoices, bool]] = {}
        self._totals: dict[tuple[What, int], Counts] = {}

    def alternatives(self, what: What, index: int) -> tuple[tuple[Alternative, ...], bool]:
        """Return alternatives, the one with least `following_bytes` first, and whether these are all."""
        number = self._classes[what][index]
        choices, complete = self._operator(number) if what == "operator" else self._tensor(number)
        held, following = self._priced(what, number, len(choices.sequences))
        base = self._plan.cost_bytes - int(held[0])
        priced = [
            Alternative(sequence, base + int(alone), base + int(both))
            for sequence, alone, both in zip(choices.sequences, held, following, strict=True)
            if alone < NEVER
        ]
        order = sorted(range(len(priced)), key=lambda i: (priced[i].following_bytes, priced[i].held_bytes, i))
        return tuple(priced[i] for i in order), complete

    def fed(self, tensor: int) -> bool:
        """Tell whether a loader decides who holds a tensor; its alternatives are copies for its readers."""
        return self._problem.tensor_class[tensor] in self._problem.fed

    def _priced(self, what: What, number: int, choices: int) -> tuple[Counts, Counts]:
        """Price each choice of a class: with all else held, and with the neighbours choosing again."""
        other: What = "tensor" if what == "operator" else "operator"
        held, following = np.zeros((2, choices), np.int64)
        for neighbour, links in _by_class(self._links[what][number], other).items():
            mine = np.sum([self._table(link, what) for link in links], axis=0)
            elsewhere = self._total(other, neighbour) - mine[0]
            held += mine[:, 0]
            following += (mine + elsewhere).min(axis=1) - elsewhere[0]
        copied = self._copied(number) if what == "tensor" else 0
        return held + copied, following + copied

    def _total(self, what: What, number: int) -> Counts:
        """Count the bytes that move for each choice of a class, with all neighbours held."""
        key = (what, number)
        if key not in self._totals:
            tables = [self._table(link, what)[:, 0] for link in self._links[what][number]]
            self._totals[key] = np.sum(tables, axis=0)
            if what == "tensor":
                self._totals[key] = self._totals[key] + self._copied(number)
        return self._totals[key]

    def _copied(self, number: int) -> Counts | int:
        """Count the bytes that move to copy a tensor, for each choice; 0 if it has no copy."""
        problem = self._problem
        if number not in (problem.fed - problem.unmoved) | problem.copied:
            return 0
        return copied_bytes(problem, number, self._tensor(number)[0])

    def _table(self, link: Link, what: What) -> Counts:
        """Tabulate bytes by the choices of one side of a link, then the other, the plan's choices first."""
        operator, tensor = self._operator(link.operator)[0], self._tensor(link.tensor)[0]
        table = self._objective.table(operator, tensor, link.use, link.weight)
        wrong = impossible(operator, tensor, link.use, self._problem.summed.get(operator.bound, frozenset()))
        if wrong is not None:
            table = np.where(wrong, NEVER, table)
        return table if what == "operator" else table.T

    def _operator(self, number: int) -> tuple[OperatorChoices, bool]:
        """Return choices of an operator, the chosen one first, and whether they are all that exist."""
        bound, factors = self._problem.operators[number], self._plan.factors
        name = self._graph.operations[self._first["operator"][number]].name
        chosen: Strategies = self._plan.strategies[name]  # type: ignore[assignment]
        key = (bound, chosen)
        if key not in self._operator_choices:
            sequences, complete = candidates(splittable(bound), factors, chosen, ALTERNATIVE_LIMIT)
            self._operator_choices[key] = operator_choices(bound, sequences, factors), complete
        return self._operator_choices[key]

    def _tensor(self, number: int) -> tuple[TensorChoices, bool]:
        """Return choices of a tensor, the chosen one first, and whether they are all that exist."""
        shape, factors = self._problem.shapes[number], self._plan.factors
        name = self._graph.tensors[self._first["tensor"][number]].name
        chosen: Dimensions = read_as(self._plan, name, number in self._problem.fed)  # type: ignore[assignment]
        copy = self._copies.get(number)
        stops = number in self._problem.stops
        key = shape, chosen, copy, stops
        if key not in self._tensor_choices:
            sequences, complete = candidates(
                dict(enumerate(shape)), factors, chosen, ALTERNATIVE_LIMIT, self._plan.space.replicate
            )
            homes = tensor_choices(shape, sequences, factors, stops)
            if copy is not None:
                alone = np.array([sequence == copy for sequence in sequences])
                layout = tensor_choices(shape, [copy], factors)
                homes = paired(homes, layout, np.arange(len(sequences)), np.where(alone, -1, 0))
            self._tensor_choices[key] = homes, complete
        return self._tensor_choices[key]


def _first(classes: Sequence[int]) -> dict[int, int]:
    """Return the first index that is in each class."""
    found: dict[int, int] = {}
    for index, number in enumerate(classes):
        found.setdefault(number, index)
    return found


def _by_class(links: Iterable[Link], side: What) -> dict[int, list[Link]]:
    """Group links by the class on one side, in order of appearance."""
    found: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        found[link.operator if side == "operator" else link.tensor].append(link)
    return found
