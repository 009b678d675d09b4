"""All that an audit says of the strategies of an operator."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tofu import tdl
from tofu.analyzer.audit.finding import Finding
from tofu.analyzer.audit.strategies import Case, audit_strategies
from tofu.analyzer.bind.staged_bound import bind

pytest.importorskip("islpy")

Shapes = Mapping[str, tuple[int, ...]]
SUMS = "Sum is associative and commutative"
ALL = "isl, for all shapes and boxes"


def audited(text: str, shapes: Shapes) -> list[Finding]:
    description = tdl.parse(text)
    subject = bind(description, shapes)
    return list(audit_strategies(Case("op", lambda other: bind(description, other), subject)))


def summary(findings: list[Finding]) -> list[tuple[str | None, str, str, str]]:
    return [(found.variable, found.check.value, found.verdict.value, found.reason) for found in findings]


def test_what_is_proven() -> None:
    findings = audited("def op(x):\n    return lambda i: Sum(lambda k: x[i, k] * k)", {"x": (4, 6)})
    assert summary(findings) == [
        ("i", "regions", "proven", ALL),
        ("i", "concat", "proven", findings[1].reason),
        ("k", "regions", "proven", ALL),
        ("k", "offset", "proven", "'k' is used as a value, and marked so"),
        ("k", "reduce", "proven", SUMS),
    ]
    assert findings[0].grades == {"x": "exact"}
    assert all(found.operator == "op" and found.counterexample is None for found in findings)


def test_what_is_tried() -> None:
    """Data decides what is read, and a custom reducer promises what is not proven."""
    text = """
def op(x, at):
    Add = Reducer(lambda a, b: a + b, 0)
    return lambda i: Add(lambda k: x[at[k], i])
"""
    findings = audited(text, {"x": (4, 3), "at": (2,)})
    assert [entry[:3] for entry in summary(findings)] == [
        ("i", "regions", "proven"),
        ("i", "concat", "proven"),
        ("k", "regions", "proven"),
        ("k", "reduce", "tried"),
    ]
    assert findings[3].reason == "interpreted on whole numbers, 2 workers"
    assert findings[2].grades == {"x": "loose", "at": "exact"}


def test_functions_of_which_nothing_is_known() -> None:
    text = "def op(x):\n    inverse = Opaque()\n    return lambda b, i, j: inverse(x[b, :, :])[i, j]"
    findings = audited(text, {"x": (3, 2, 2)})
    assert ("b", "regions", "proven", ALL) in summary(findings)
    assert all(found.counterexample is None for found in findings)


def test_stages_are_proven_each() -> None:
    text = """
def op(x):
    twice = lambda i: 2 * x[i]
    return lambda i=x.shape[0] - 1: twice[i] + twice[i + 1]
"""
    findings = audited(text, {"x": (7,)})
    assert [entry[:3] for entry in summary(findings)] == [
        ("i", "regions", "proven"),
        ("i", "concat", "proven"),
    ]
    assert findings[0].reason == ALL
    assert findings[0].grades == {"x": "exact"}
