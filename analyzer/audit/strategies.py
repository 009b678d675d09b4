"""The audit of an operator's strategies: regions, offsets, and how parts make the whole."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..bind.bound import Bound
from ..bind.staged_bound import StagedBound
from ..strategies.strategy import Strategy
from . import trial
from .elements import Subject, indexed_by_data
from .finding import Check, Counterexample, Finding, Grade, Verdict, worst
from .laws import concat_law, reduce_law, used_as_value
from .samples import ANYTHING, Domain, Sample, sample
from .shrink import Bind, neighbours, smallest, tried

if TYPE_CHECKING:
    from .proof import Proof, Unproven

Select = Callable[[Subject], Sequence[Strategy]]
Test = Callable[[Subject, Strategy, int, Sample], Counterexample | None]
Report = Callable[[str, Check, str | None], object]
"""Called with the description, the check that begins, and the variable of the strategy that is checked."""

OPAQUE = "it calls functions whose inside is unknown"
NO_ISL = "islpy is not installed (pip install islpy)"


def unheard(description: str, check: Check, variable: str | None) -> None:
    """Ignore the progress of an audit."""


def offered(subject: Subject) -> Sequence[Strategy]:
    """Return the strategies that the analysis offers."""
    return subject.strategies


@dataclass(frozen=True)
class Case:
    """An operator to audit."""

    name: str
    """The name under which findings report the operator."""

    bind: Bind
    """Binds the operator to other shapes, for smaller counterexamples."""

    subject: Subject
    """The operator, bound to the shapes to start with."""

    workers: tuple[int, ...] = (2, 3)
    """The numbers of workers to try."""

    select: Select = field(default=offered)
    """Returns the strategies to audit; those that the analysis offers, unless tests plant others."""

    domain: Domain = ANYTHING
    """The data for which the operator is defined."""

    report: Report = unheard
    """Called with the name, the check that begins, and the variable of the strategy that is checked."""

    @cached_property
    def given(self) -> Sample:
        """Data for the shapes to start with."""
        return sample(self.subject, self.domain)

    def sample(self, subject: Subject) -> Sample:
        """Return data for these or other shapes."""
        return self.given if subject is self.subject else sample(subject, self.domain)

    def counts(self, strategy: Strategy) -> list[int]:
        """Return numbers of workers that a strategy can be tried with."""
        return [count for count in self.workers if count <= strategy.bound.extents[strategy.variable]]

    def indices(self, subject: Subject) -> Sample:
        """Return data that says which elements are read: none, unless elements are used as indices."""
        return self.sample(subject) if indexed_by_data(subject) else Sample({}, None, {})

    def failing(
        self, strategy: Strategy, test: Test, data: Callable[[Subject], Sample] | None = None
    ) -> Callable[[Subject], Counterexample | None]:
        """Return a test of one strategy over all worker counts, for any shapes.

        `data` are samples by default.
        """

        def fails(subject: Subject) -> Counterexample | None:
            given = (data or self.sample)(subject)
            for other in self.select(subject):
                if (other.variable, other.kind) == (strategy.variable, strategy.kind):
                    for workers in self.counts(other):
                        found = test(subject, other, workers, given)
                        if found is not None:
                            return found
            return None

        return fails

    def failure(
        self, strategy: Strategy, test: Test, data: Callable[[Subject], Sample] | None = None
    ) -> Counterexample | None:
        """Return the smallest counterexample of a test of one strategy over all worker counts."""
        fails = self.failing(strategy, test, data)
        found = fails(self.subject)
        return None if found is None else smallest(self.subject, self.bind, fails, found)


def audit_strategies(case: Case) -> Iterator[Finding]:
    """Yield findings about every strategy of an operator."""
    for strategy in case.select(case.subject):
        case.report(case.name, Check.REGIONS, strategy.variable)
        yield _regions(case, strategy)
        yield from _offset(case, strategy)
        case.report(case.name, Check(strategy.kind), strategy.variable)
        yield _combination(case, strategy)


def _regions(case: Case, strategy: Strategy) -> Finding:
    def finding(
        verdict: Verdict, reason: str, grades: Mapping[str, Grade], failure: Counterexample | None = None
    ) -> Finding:
        return Finding(case.name, Check.REGIONS, verdict, reason, strategy.variable, grades, failure)

    missed = case.failure(strategy, trial.missed_element, case.indices)
    if missed is not None:
        return finding(Verdict.REFUTED, "regions must hold every element read", {}, missed)
    proofs, why_not = _proofs(strategy)
    proven = {tensor: proof.grade for tensor, proof in proofs.items()}
    unsound = next((proof for proof in proofs.values() if proof.missed), None)
    if unsound is not None:
        return finding(Verdict.REFUTED, "isl found a box", proven, Counterexample(unsound.missed))
    grades = {
        tensor: worst([proven.get(tensor, grade), grade])
        for tensor, grade in _tried_grades(case, strategy).items()
    }
    if not why_not:
        return finding(Verdict.PROVEN, "isl, for all shapes and boxes", grades)
    missed = _missed_nearby(case, strategy, case.subject.reads - proven.keys())
    if missed is not None:
        return finding(Verdict.REFUTED, "regions must hold every element read", grades, missed)
    counts = ", ".join(map(str, case.counts(strategy)))
    return finding(Verdict.TRIED, f"run through for {counts} workers; {why_not}", grades)


def _tried_grades(case: Case, strategy: Strategy) -> dict[str, Grade]:
    given = case.indices(case.subject)
    seen = [trial.grades(case.subject, strategy, workers, given) for workers in case.counts(strategy)]
    return {tensor: worst(entry[tensor] for entry in seen) for tensor in sorted(case.subject.reads)}


def _missed_nearby(case: Case, strategy: Strategy, tensors: Container[str]) -> Counterexample | None:
    """Return a failure for shapes near the given ones, for tensors without a proof."""
    fails = case.failing(strategy, partial(trial.missed_element, only=tensors), case.indices)
    failures = (tried(case.bind, shapes, fails) for shapes in neighbours(case.subject))
    return next((failure for failure in failures if failure is not None), None)


def _proofs(strategy: Strategy) -> tuple[Mapping[str, Proof], str]:
    """Return what isl proves of a strategy's regions, and why it does not prove them all."""
    bound = strategy.bound
    if not from_analysis(strategy):
        return {}, "its regions do not come from the analysis"
    if find_spec("islpy") is None:
        return {}, NO_ISL
    from .proof import Proof, prove

    def of(part: Bound) -> tuple[dict[str, Proof], str]:
        answers: Mapping[str, Proof | Unproven] = prove(part.analysis)
        proofs = {tensor: answer for tensor, answer in answers.items() if isinstance(answer, Proof)}
        reasons = [answer.reason for answer in answers.values() if not isinstance(answer, Proof)]
        return proofs, "; ".join(dict.fromkeys(reasons))

    assert isinstance(bound, Bound | StagedBound)
    answers = [of(part) for part in bound.stage_bounds]
    if len(answers) == 1:
        return answers[0]
    unsound = [proof for proofs, _ in answers for proof in proofs.values() if proof.missed]
    reasons = "; ".join(dict.fromkeys(reason for _, reason in answers if reason))
    return ({"a stage": unsound[0]} if unsound else {}), reasons


def from_analysis(strategy: Strategy) -> bool:
    """Return whether boxes and regions are those of the analysis, and so covered by what is
    proven about it.
    """
    kind = type(strategy.bound)
    for base in (Bound, StagedBound):
        if issubclass(kind, base):
            own = all(
                getattr(kind, name) is getattr(base, name)
                for name in ("split", "input_regions", "output_regions")
            )
            return own and type(strategy) is Strategy
    return False


def _offset(case: Case, strategy: Strategy) -> Iterator[Finding]:
    """Yield a variable used as a value: a kernel must know where its box starts."""
    if not used_as_value(case.subject.stage_bounds[-1].description, strategy.variable):
        return
    reason = f"'{strategy.variable}' is used as a value"
    if strategy.needs_offset:
        yield Finding(case.name, Check.OFFSET, Verdict.PROVEN, reason + ", and marked so", strategy.variable)
        return
    example = Counterexample(f"{reason}, but the strategy hands no offset to the kernel", case.subject.shapes)
    yield Finding(case.name, Check.OFFSET, Verdict.REFUTED, reason, strategy.variable, {}, example)


def _combination(case: Case, strategy: Strategy) -> Finding:
    check = Check(strategy.kind)
    reason = f"parts must {'make' if check is Check.CONCAT else 'reduce to'} the whole"

    def test(subject: Subject, chosen: Strategy, workers: int, given: Sample) -> Counterexample | None:
        uncovered = trial.wrong_cover(subject, chosen, workers)
        return uncovered or (None if law or opaque else trial.wrong_result(subject, chosen, workers, given))

    opaque = bool(case.subject.description.opaques)
    law = _law(case.subject, strategy) if from_analysis(strategy) else None
    failure = case.failure(strategy, test)
    if failure is not None:
        return Finding(case.name, check, Verdict.REFUTED, reason, strategy.variable, {}, failure)
    if law is not None:
        return Finding(case.name, check, Verdict.PROVEN, law, strategy.variable)
    if opaque:
        return Finding(case.name, check, Verdict.NOT_APPLICABLE, OPAQUE, strategy.variable)
    counts = ", ".join(map(str, case.counts(strategy)))
    return Finding(
        case.name, check, Verdict.TRIED, f"interpreted on whole numbers, {counts} workers", strategy.variable
    )


def _law(subject: Subject, strategy: Strategy) -> str | None:
    last = subject.stage_bounds[-1].description
    if strategy.kind == "concat":
        return concat_law(last, strategy.variable)
    if strategy.reducer is None:
        return None
    return reduce_law(last, strategy.variable, strategy.reducer)
