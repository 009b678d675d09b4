"""Constraints on a plan: choices that it must make, and labels that it may not split along.

    pin fc1_weight=0,0,1        tensor fc1_weight along dimensions 0, 0 and 1, one per step
    pin fc1.product=n,*,-       the operation along n, then as is best, then repeated on every worker
    pin conv*_weight=0          all steps of all tensors so named
    forbid data:1               dimension 1 of data is never split
    forbid fc1.product:k        the reduction of this operation is never split

Names may be shell patterns. Tied operations, and tensors that share storage, are decided together, so a
constraint on one of them holds for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from ...errors import PlanError
from ...support.checked_argument import require
from ...support.wording import alternatives
from ..layouts.choices import splittable
from ..layouts.step_split import Choice
from .problem import Problem
from .restrictions import FREE, Restriction, Restrictions

What = Literal["operator", "tensor"]

_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Pin:
    """Requires a choice of everything that a name matches."""

    name: str
    """A name or a shell pattern."""

    choice: Choice
    """One entry per step, or one for all steps: a label, None to replicate, or `FREE`."""

    what: What | None = None
    """Whether tensors or operators are meant; None if the choice tells."""

    def __str__(self) -> str:
        return f"pin {self.name}={','.join('-' if c is None else str(c) for c in self.choice)}"


@dataclass(frozen=True, slots=True)
class Forbid:
    """Forbids a split of everything that a name matches, at every step."""

    name: str
    """A name or a shell pattern."""

    label: str | int
    """The index variable or dimension that must not be split."""

    def __str__(self) -> str:
        return f"forbid {self.name}:{self.label}"


Constraint = Pin | Forbid


def parse_constraint(text: str) -> Constraint:
    """Read `pin NAME=CHOICE,...` or `forbid NAME:LABEL`. Raises PlanError showing what was expected."""
    verb, _, rest = text.strip().partition(" ")
    match verb:
        case "pin":
            return parse_pin(rest)
        case "forbid":
            return parse_forbid(rest)
        case _:
            raise PlanError(f"a constraint starts with pin or forbid; found {text!r}")


def parse_pin(text: str) -> Pin:
    """Read `NAME=CHOICE,...`: a dimension's number, an index variable, `-` to replicate, or `*` for any."""
    name, equals, choices = text.strip().rpartition("=")
    entries = [entry.strip() for entry in choices.split(",")]
    if not (name and equals and all(entries)):
        raise PlanError(
            f"expected a pin NAME=CHOICE,... such as fc1_weight=0,0,1 or fc1.product=n,*,-; found {text!r}"
        )
    return Pin(name, tuple(None if entry == "-" else _label(entry, text) for entry in entries))


def parse_forbid(text: str) -> Forbid:
    """Read `NAME:LABEL`, a dimension's number or an index variable."""
    name, colon, label = text.strip().rpartition(":")
    if not (name and colon and label) or label == FREE:
        raise PlanError(f"expected NAME:LABEL such as data:1 or fc1.product:k; found {text!r}")
    return Forbid(name, _label(label, text))


def _label(entry: str, text: str) -> str | int:
    if entry.isdecimal() and entry.isascii() and len(entry) <= 3:
        return int(entry)
    if entry == FREE or entry.isidentifier():
        return entry
    raise PlanError(f"{entry!r} in {text!r} is not a dimension's number, an index variable, - or {FREE}")


def restricted(problem: Problem, factors: tuple[int, ...], constraints: Sequence[Constraint]) -> Problem:
    """Return the problem with the choices that the constraints leave. An input that they name is fed so.

    Raises PlanError for an unknown name or label, with a suggestion, and if the constraints cannot all hold.
    The message then names a smallest set of constraints that clash.
    """
    collected = _Collected(problem, factors)
    for constraint in constraints:
        expected = "a constraint, such as 'pin fc1_weight=0' or a Forbid"
        require(isinstance(constraint, Constraint), constraint, "a constraint", expected, PlanError)
        collected.add(constraint)
    restrictions = collected.restrictions()
    named = restrictions.tensors.keys()
    fed, unmoved = problem.fed - named, problem.unmoved - named
    return replace(
        problem,
        restrictions=restrictions,
        fed=fed,
        copied=problem.copied - named,
        activations=problem.activations - named,
        unmoved=unmoved,
    )


class _Subject:
    """One class of operations or tensors, and the constraints on it."""

    def __init__(self, what: str, extents: Iterable[tuple[str | int, int]]) -> None:
        self.what = what
        self.names: list[str] = []
        self.extents = dict(extents)
        self.constraints: list[Constraint] = []

    def restriction(self, factors: tuple[int, ...]) -> Restriction:
        if _conflict(self, self.constraints, factors) is not None:
            raise PlanError(_explained(self, _smallest(self, factors), factors))
        return _combined(self.constraints, factors)


class _Collected:
    def __init__(self, problem: Problem, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._operators = [_Subject("operator", splittable(bound).items()) for bound in problem.operators]
        self._tensors = [_Subject("tensor", enumerate(shape)) for shape in problem.shapes]
        self._by_name: dict[str, dict[str, _Subject]] = {"operator": {}, "tensor": {}}
        graph = problem.graph
        for operation, number in zip(graph.operations, problem.operation_class, strict=True):
            self._enter(operation.name, self._operators[number])
        for tensor, number in zip(graph.tensors, problem.tensor_class, strict=True):
            self._enter(tensor.name, self._tensors[number])

    def _enter(self, name: str, subject: _Subject) -> None:
        self._by_name[subject.what][name] = subject
        subject.names.append(name)

    def add(self, constraint: Constraint) -> None:
        if isinstance(constraint, Pin) and len(constraint.choice) not in (1, len(self._factors)):
            raise PlanError(
                f"{constraint} has {len(constraint.choice)} entries; give one for each of the "
                f"{len(self._factors)} steps {self._factors}, or one for all"
            )
        subjects, labels = self._subjects(constraint), _labels(constraint)
        fitting = [s for s in subjects if all(label in s.extents for label in labels)]
        if not fitting or (len(fitting) < len(subjects) and not _PATTERN.search(constraint.name)):
            first = subjects[0]
            missing = next(label for label in labels if label not in first.extents)
            raise PlanError(
                f"{constraint}: {first.what} {first.names[0]!r} cannot be split along {missing!r}; "
                f"choose one of {', '.join(map(str, first.extents))}"
                if first.extents
                else f"{constraint}: {first.what} {first.names[0]!r} cannot be split along anything"
            )
        for subject in fitting:
            subject.constraints.append(constraint)

    def restrictions(self) -> Restrictions:
        return Restrictions(
            self._factors,
            {n: s.restriction(self._factors) for n, s in enumerate(self._operators) if s.constraints},
            {n: s.restriction(self._factors) for n, s in enumerate(self._tensors) if s.constraints},
        )

    def _subjects(self, constraint: Constraint) -> list[_Subject]:
        """Return the classes that a constraint is about: tensors for dimensions, operations for variables."""
        labels = _labels(constraint)
        if len({type(label) for label in labels}) > 1:
            raise PlanError(
                f"{constraint} names both dimensions and index variables; "
                "give dimensions for a tensor, index variables for an operator"
            )
        kinds = ["tensor" if isinstance(label, int) else "operator" for label in labels[:1]]
        if isinstance(constraint, Pin) and constraint.what is not None:
            kinds = [constraint.what]
        tables = [self._by_name[what] for what in kinds or ["operator", "tensor"]]
        found = [named[constraint.name] for named in tables if constraint.name in named]
        if not found and _PATTERN.search(constraint.name):
            matching = (named[n] for named in tables for n in named if fnmatchcase(n, constraint.name))
            found = list(dict.fromkeys(matching))
        if not found:
            what = kinds[0] if kinds else "operator or tensor"
            known = [name for named in tables for name in named]
            hint = self._other_kind(constraint.name) or alternatives(constraint.name, known)
            raise PlanError(f"{constraint}: there is no {what} {constraint.name!r}{hint}")
        if not kinds and len({subject.what for subject in found}) > 1:
            raise PlanError(
                f"{constraint} could be about operators or tensors; pin a dimension or an index variable "
                f"at at least one step"
            )
        return found

    def _other_kind(self, name: str) -> str:
        """Suggest the tensor or operator of this name if the choice fits only the other kind."""
        for what, named in self._by_name.items():
            if name in named:
                labels = ", ".join(map(str, named[name].extents)) or "nothing"
                return f"; the {what} of that name is split along {labels}"
        return ""


def _labels(constraint: Constraint) -> list[str | int]:
    """Return the dimensions or index variables that a constraint names."""
    named = constraint.choice if isinstance(constraint, Pin) else (constraint.label,)
    return [label for label in named if label is not None and label != FREE]


def _per_step(pin: Pin, factors: tuple[int, ...]) -> Choice:
    return pin.choice * len(factors) if len(pin.choice) == 1 else pin.choice


def _combined(constraints: Iterable[Constraint], factors: tuple[int, ...]) -> Restriction:
    """Return the restriction that some constraints without contradictions make together."""
    pins: list[str | int | None] = [FREE] * len(factors)
    forbidden: set[str | int] = set()
    for constraint in constraints:
        match constraint:
            case Pin():
                pins = [
                    new if old == FREE else old
                    for old, new in zip(pins, _per_step(constraint, factors), strict=True)
                ]
            case Forbid(label=label):
                forbidden.add(label)
    return Restriction(tuple(pins), frozenset(forbidden))


def _conflict(subject: _Subject, constraints: Sequence[Constraint], factors: tuple[int, ...]) -> str | None:
    """Say why these constraints cannot all hold for one class; None if they can."""
    pinned: list[str | int | None] = [FREE] * len(factors)
    forbidden = {c.label for c in constraints if isinstance(c, Forbid)}
    for pin in constraints:
        if not isinstance(pin, Pin):
            continue
        for step, label in enumerate(_per_step(pin, factors)):
            if label == FREE:
                continue
            if pinned[step] not in (FREE, label):
                return (
                    f"step {step + 1} cannot split it along both {_shown(pinned[step])} and {_shown(label)}"
                )
            if label in forbidden:
                return f"step {step + 1} would split it along {label}, which is forbidden"
            pinned[step] = label
    left = dict(subject.extents)
    for step, (label, factor) in enumerate(zip(pinned, factors, strict=True)):
        if label is None or label == FREE:
            continue
        if left[label] < factor:
            return f"at step {step + 1} only {left[label]} are left along {label}, too few for {factor} parts"
        left[label] //= factor
    return None


def _smallest(subject: _Subject, factors: tuple[int, ...]) -> list[Constraint]:
    """Return a set of clashing constraints that clash only together."""
    kept = list(subject.constraints)
    for constraint in subject.constraints:
        without = [other for other in kept if other is not constraint]
        if _conflict(subject, without, factors) is not None:
            kept = without
    return kept


def _explained(subject: _Subject, clashing: Sequence[Constraint], factors: tuple[int, ...]) -> str:
    reason = _conflict(subject, clashing, factors)
    also = f" (decided together with {', '.join(subject.names[1:4])})" if len(subject.names) > 1 else ""
    listed = "; ".join(map(str, clashing))
    cannot = "these constraints cannot all hold" if len(clashing) > 1 else "this constraint cannot hold"
    return f"{cannot} for {subject.what} {subject.names[0]!r}{also}: {listed}: {reason}; drop or change one"


def _shown(label: str | int | None) -> str:
    return "-" if label is None else str(label)
