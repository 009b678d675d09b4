"""Proofs about regions with isl, held against running through all elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.analyzer.audit import trial
from tofu.analyzer.audit.elements import elements_read
from tofu.analyzer.audit.finding import Grade, worst
from tofu.analyzer.audit.samples import sample
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.indices.intervals import Interval

pytest.importorskip("islpy")

from tofu.analyzer.audit.proof import Proof, Unproven, prove

Bind = Callable[..., Bound]

GRADES = {
    "window": ("lambda x: Sum(lambda d=3: A[x + d])", Grade.EXACT),
    "padded window": ("lambda x=A.shape[0]: Sum(lambda d=3: pad(A[x + d - 1], 0))", Grade.EXACT),
    "reversed": ("lambda x=A.shape[0]: A[A.shape[0] - 1 - x]", Grade.EXACT),
    "quotient": ("lambda x=2 * A.shape[0]: A[x // 2]", Grade.EXACT),
    "stride": ("lambda x=A.shape[0] // 2: A[2 * x]", Grade.TIGHT),
    "padded stride": ("lambda x=A.shape[0] // 2: pad(A[2 * x - 1], 0)", Grade.TIGHT),
    "stride without holes": ("lambda x=A.shape[0] // 2: Max(lambda d=2: A[2 * x + d])", Grade.TIGHT),
    "remainder": ("lambda x=2 * A.shape[0]: A[x % 4]", Grade.TIGHT),
    "twice the same": ("lambda x=A.shape[0] // 2: A[x] + A[x + 1]", Grade.EXACT),
    "apart": ("lambda x=A.shape[0] - 5: A[x] + A[x + 5]", Grade.TIGHT),
    "difference with itself": ("lambda x=4: A[x - x // 2]", Grade.TIGHT),
    "data": ("lambda x=A.shape[0]: A[A[x]]", Grade.LOOSE),
    "whole row": ("lambda x: A[x] / Sum(lambda k: A[k])", Grade.EXACT),
}


@pytest.mark.parametrize("name", GRADES)
def test_grades(bind: Bind, name: str) -> None:
    body, grade = GRADES[name]
    bound = bind(f"def op(A):\n    return {body}", {"A": (12,)})
    proof = prove(bound.analysis)["A"]
    assert isinstance(proof, Proof)
    assert (proof.grade, proof.missed) == (grade, "")


@pytest.mark.parametrize("name", GRADES)
def test_what_is_proven_holds_when_run_through(bind: Bind, name: str) -> None:
    """A grade for all shapes is never better than what is seen for some."""
    body, grade = GRADES[name]
    for extent in (8, 9, 12):
        bound = bind(f"def op(A):\n    return {body}", {"A": (extent,)})
        given = sample(bound)
        for strategy in bound.strategies:
            for workers in (2, 3):
                if bound.extents[strategy.variable] < workers:
                    continue
                assert trial.missed_element(bound, strategy, workers, given) is None
                seen = trial.grades(bound, strategy, workers, given)["A"]
                assert worst([grade, seen]) is grade


def test_diagonal_is_tight_not_exact(bind: Bind) -> None:
    bound = bind("def op(A):\n    return lambda i: A[i, i]", {"A": (4, 4)})
    assert prove(bound.analysis)["A"] == Proof(Grade.TIGHT)


def test_what_isl_cannot_express_has_a_reason(bind: Bind) -> None:
    bound = bind(
        "def op(A, B):\n    return lambda i, j: A[i * B.shape[1] + j] * B[i, j]", {"A": (12,), "B": (3, 4)}
    )
    answers = prove(bound.analysis)
    assert isinstance(answers["A"], Unproven)
    assert "product" in answers["A"].reason
    assert answers["B"] == Proof(Grade.EXACT)


def test_unsound_bounds_are_refuted_with_a_box(bind: Bind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of the paper's figure 4: subtraction without swapping the bounds."""
    bound = bind("def op(A):\n    return lambda x=A.shape[0]: A[A.shape[0] - 1 - x]", {"A": (7,)})
    monkeypatch.setattr(
        "tofu.analyzer.audit.proof.bounds", lambda form: Interval(form.constant, form.constant)
    )
    prove.cache_clear()
    answer = prove(bound.analysis)["A"]
    prove.cache_clear()
    assert isinstance(answer, Proof)
    assert "reads A outside of its region where" in answer.missed


def test_oracle_agrees_with_reads_counted_by_hand(bind: Bind) -> None:
    text = (
        "def op(A, B):\n    return lambda i, x=4: Sum(lambda d=2: pad(A[i, 2 * x + d - 1], 0) * B[x // 2, d])"
    )
    bound = bind(text, {"A": (2, 9), "B": (2, 2)})
    box = bound.full_box.copy()
    box[1] = 0, 2
    masks = elements_read(bound, box, sample(bound).tensors)
    found = {name: [tuple(place) for place in np.argwhere(mask).tolist()] for name, mask in masks.items()}
    assert found["A"] == [(i, place) for i in range(2) for place in (0, 1, 2)], "-1 is padding"
    assert found["B"] == [(0, 0), (0, 1)]
