"""All indices and extents of one description together have a budget, which texts of many accesses reach."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.errors import DescriptionError

from ...hangs import no_hang


def total(terms: list[str]) -> str:
    """The sum of some terms, in balanced parentheses: a plain chain would be nested too deeply."""
    while len(terms) > 1:
        terms = [f"({' + '.join(terms[at : at + 2])})" for at in range(0, len(terms), 2)]
    return terms[0]


@pytest.mark.parametrize(
    ("term", "count", "said"),
    [
        ("a[i % {0}]", 1500, "all indices and extents up to this one take 16,[0-9]+ operations"),
        (
            "a[i % 9{0} % 7{0} % 5{0}]",
            200,
            "all indices and extents up to this one take 16,[0-9]+ operations",
        ),
        ("Sum(lambda k{0}=2: a[i] + k{0})", 500, "501 index variables in 2,499 parts"),
        (
            "Sum(lambda k=a.shape[0] % {0}9999 % {0}999 % {0}99 % {0}9: a[i])",
            240,
            "all indices and extents up to this one",
        ),
    ],
)
def test_texts_that_would_take_seconds_are_refused(term: str, count: int, said: str) -> None:
    body = total([term.format(number) for number in range(2, 2 + count)])
    description = tdl.parse(f"def f(a):\n    return lambda i=9: {body}")
    with no_hang(), pytest.raises(DescriptionError, match=rf"f:2:[0-9]+: {said}"):
        analyze(description)


def test_sums_of_many_plain_terms_stay_within_the_budget() -> None:
    body = total(["a[i]"] * 1000 + ["a[i + 1]"] * 500)
    analyze(tdl.parse(f"def f(a):\n    return lambda i=8: {body}")).bind({"a": (9,)})
