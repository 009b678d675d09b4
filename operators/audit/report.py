"""The result of an audit: a value that prints itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...analyzer.audit.finding import Check, Finding, Grade, Verdict, worst


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """Everything found about one operator, with its stages and gradients."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """Claims that do not hold, each with its counterexample."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.REFUTED)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Findings by verdict."""
        found = Counter(finding.verdict for finding in self.findings)
        return {verdict: found[verdict] for verdict in Verdict}

    @property
    def grades(self) -> dict[str, Grade]:
        """For each description (stage or gradient) the worst grade of its regions."""
        found: dict[str, list[Grade]] = {}
        for finding in self.findings:
            if finding.check is Check.REGIONS:
                found.setdefault(finding.operator, []).extend(finding.grades.values())
        return {name: worst(grades) for name, grades in found.items()}

    def __repr__(self) -> str:
        return f"<audit of {self.name}: {self._counted()}>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def data(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "operator": self.name,
            "counts": {verdict.value: count for verdict, count in self.counts.items()},
            "grades": {name: grade.value for name, grade in self.grades.items()},
            "findings": [finding.data() for finding in self.findings],
        }

    def _counted(self) -> str:
        return (
            ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count) or "no claims"
        )

    def _lines(self) -> Iterator[str]:
        """Yield the counts, then all findings, the descriptions with refuted claims first."""
        yield f"{self.name}: {self._counted()}"
        groups = [list(group) for _, group in groupby(self.findings, key=lambda finding: finding.operator)]
        for members in sorted(groups, key=lambda group: all(f.verdict is not Verdict.REFUTED for f in group)):
            yield f"  {members[0].operator}"
            rows = [(f.variable or "kernel", f.check.value, _verdict(f), f.reason) for f in members]
            widths = [max(len(row[column]) for row in rows) for column in range(3)]
            for finding, row in zip(members, rows, strict=True):
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
                yield f"    {'  '.join(cells)}  {row[3]}"
                if finding.counterexample is not None:
                    yield f"      {finding.counterexample}"


def _verdict(finding: Finding) -> str:
    if finding.grade is None or finding.verdict is Verdict.REFUTED:
        return finding.verdict.value
    return f"{finding.verdict}, {finding.grade}"
