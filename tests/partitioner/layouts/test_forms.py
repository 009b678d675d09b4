"""Forms expand to the same parts as the checker's own reading of them, and say what does not fit."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.errors import PlanError
from tofu.partitioner.checking.plain_forms import plain_parts, terms_of
from tofu.partitioner.layouts.forms import At, Cut, Form, Partial, Parts, Spread, expand

FACTORS = (3, 2)
WORKERS = 6
EXTENTS = (7, 4, 5)
WHOLE = tuple((0, extent) for extent in EXTENTS)
labels = st.integers(0, len(EXTENTS) - 1)
workers = st.integers(0, WORKERS - 1)


@st.composite
def steps(draw: st.DrawFn) -> Form:
    return tuple(
        draw(st.one_of(st.none(), st.just(Partial()), labels, st.builds(At, st.integers(0, factor - 1))))
        for factor in FACTORS
    )


@st.composite
def spreads(draw: st.DrawFn) -> Form:
    degrees = tuple(
        draw(st.lists(st.tuples(st.none() | labels | st.just(Partial()), st.integers(1, 3)), max_size=2))
    )
    count = int(np.prod([degree for _, degree in degrees], dtype=int))
    return Spread(
        degrees, tuple(draw(st.permutations(range(3 * WORKERS)))[i] % WORKERS for i in range(count))
    )


@st.composite
def cuts(draw: st.DrawFn) -> Form:
    along = draw(labels)
    bounds = tuple(sorted(draw(st.sets(st.integers(1, EXTENTS[along] - 1), max_size=3))))
    return Cut(along, bounds, tuple(draw(workers) for _ in range(len(bounds) + 1)))


@given(st.one_of(steps(), spreads(), cuts()))
def test_forms_expand_as_the_checker_reads_them(form: Form) -> None:
    expanded = expand(form, np.array(WHOLE, np.int64), lambda label: int(label), FACTORS)
    found = [
        (worker, tuple((low, up) for low, up in box.tolist()), term)
        for worker, box, term in zip(
            expanded.workers.tolist(), expanded.boxes, expanded.term.tolist(), strict=True
        )
    ]
    if len(set(found)) < len(found):
        with pytest.raises(PlanError, match="the same part on one worker twice"):
            plain_parts(form, WHOLE, range(3), FACTORS, WORKERS, "it")
        return
    plain = plain_parts(form, WHOLE, range(3), FACTORS, WORKERS, "it")
    assert list(plain) == found
    assert terms_of(plain) == expanded.terms
    assert plain_parts(Parts(tuple(found)), WHOLE, range(3), FACTORS, WORKERS, "it") == plain


def test_terms_are_the_digits_of_the_partial_entries() -> None:
    whole = np.array(WHOLE, np.int64)
    both = expand((Partial(), Partial()), whole, lambda label: int(label), FACTORS)
    assert (both.term.tolist(), both.terms) == ([0, 1, 2, 3, 4, 5], 6)
    inner = expand((0, Partial()), whole, lambda label: int(label), FACTORS)
    assert (inner.term.tolist(), inner.terms) == ([0, 1, 0, 1, 0, 1], 2)
    outer = expand(Spread(((Partial(), 2), (1, 2)), (0, 1, 2, 3)), whole, lambda label: int(label), FACTORS)
    assert (outer.term.tolist(), outer.terms) == ([0, 0, 1, 1], 2)


def test_parts_of_a_scalar() -> None:
    parts = expand(Spread(((None, 2),), (1, 4)), np.zeros((0, 2), np.int64), lambda label: 0, FACTORS)
    assert parts.workers.tolist() == [1, 4]
    assert parts.boxes.shape == (2, 0, 2)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ((0,), "1 choice for 2 steps"),
        ((0, At(2)), "there is no group 2 of 2"),
        (Spread(((0, 2),), (0,)), "2 parts are spread over 1 worker; name one for each"),
        (Spread(((0, 2),), (0, 6)), "there is no worker 6; workers are numbered 0 to 5"),
        (Cut(0, (5, 3), (0, 1, 2)), "bounds [5, 3] do not cut 0 to 7 into 3 parts"),
        (Cut(0, (9,), (0, 1)), "bounds [9] do not cut 0 to 7 into 2 parts"),
        (Cut(0, (3,), (0,)), "into 1 parts"),
        (Parts(((0, ((0, 7),)),)), "every box needs 3 intervals"),
        (Parts(((0, ((0, 7),)), (1, ((0, 7), (0, 2))))), "every box needs 3 intervals"),
        (Parts(((0, WHOLE, 1), (1, WHOLE, 2))), "terms are numbered [1, 2]; number them from 0 without gaps"),
    ],
)
def test_forms_that_do_not_fit(form: Form, says: str) -> None:
    with pytest.raises(PlanError, match=re.escape(says)):
        expand(form, np.array(WHOLE, np.int64), lambda label: int(label), FACTORS)
