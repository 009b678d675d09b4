"""Which regions are known to hold only elements that are read, and what is said of others."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "body",
    [
        "lambda x: a[x]",
        "lambda x: a[x + 2]",
        "lambda x: a[a.shape[0] - 1 - x]",
        "lambda x: a[x // 2]",
        "lambda x=5: Sum(lambda d=2: a[2 * x + d])",
        "lambda x=10: a[x] + a[x + 1] + a[x + 2]",
        "lambda x=5: a[x] + a[5]",
        "lambda x=12: pad(a[x - 1], 0) + pad(a[x + 1], 0)",
        "lambda x=36: a[x % 12]",
        "lambda x: a[x] * a[0]",
    ],
)
def test_tight(bind, body):
    bound = bind(f"def f(a):\n    return {body}", {"a": (12,)})
    assert bound.tight
    assert bound.looseness == ()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("lambda x=3: a[x - x]", "'x' occurs more than once in the index of axis 0"),
        ("lambda x: a[x + x % 2]", "'x' occurs more than once in the index of axis 0"),
        ("lambda x=6: a[2 * x]", "the index of axis 0 steps over elements"),
        ("lambda x=3: Sum(lambda d=2: a[3 * x + d])", "the index of axis 0 steps over elements"),
        ("lambda x: a[a[x]]", "the index of axis 0 depends on data"),
        ("lambda x=3: a[x] + a[x + 5]", "several accesses"),
    ],
)
def test_loose(bind, body, reason):
    bound = bind(f"def f(a):\n    return {body}", {"a": (12,)})
    assert not bound.tight
    (loose,) = bound.looseness
    assert loose.tensor == "a"
    assert reason in loose.reason
    assert bound.description.source[loose.span.start : loose.span.end].startswith("a[")


def test_a_diagonal_is_not_a_box(bind):
    bound = bind("def f(a):\n    return lambda x: a[x, x]", {"a": (5, 5)})
    assert "'x' moves more than one axis" in bound.looseness[0].reason
    assert bind("def f(a):\n    return lambda x: a[x, x]", {"a": (1, 1)}).tight
