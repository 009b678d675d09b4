"""The audit of many operators, and the figures of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...analyzer.audit.finding import Finding, Grade, Verdict
from .report import Audit


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Audits of several operators. A description is a stage, a gradient or an update of one of them."""

    audits: tuple[Audit, ...]

    @classmethod
    def of(cls, audits: Iterable[Audit]) -> Catalogue:
        """Return a catalogue of finished audits."""
        return cls(tuple(audits))

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """Every claim that does not hold."""
        return tuple(finding for audit in self.audits for finding in audit.refuted)

    @property
    def grades(self) -> dict[Grade, int]:
        """Descriptions by the worst grade of their regions."""
        found = Counter(grade for audit in self.audits for grade in audit.grades.values())
        return {grade: found[grade] for grade in Grade}

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """Findings by verdict."""
        found = Counter(finding.verdict for audit in self.audits for finding in audit.findings)
        return {verdict: found[verdict] for verdict in Verdict}

    def data(self) -> dict[str, Any]:
        """Return plain data, figures first."""
        return {
            "operators": len(self.audits),
            "descriptions": sum(self.grades.values()),
            "grades": {grade.value: count for grade, count in self.grades.items()},
            "verdicts": {verdict.value: count for verdict, count in self.verdicts.items()},
            "refuted": len(self.refuted),
            "audits": [audit.data() for audit in self.audits],
        }

    def summary(self) -> Iterator[str]:
        """Yield the figures in two lines."""
        grades = ", ".join(f"{count} {grade}" for grade, count in self.grades.items())
        yield f"{len(self.audits)} operators; regions of {sum(self.grades.values())} descriptions: {grades}"
        yield "claims: " + ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
