"""Findings of audits, as text and as plain data."""

from __future__ import annotations

import json
import math

import pytest

from tofu.analyzer.audit.finding import Check, Counterexample, Finding, Grade, Verdict, worst

EXAMPLES = {
    "op: is wrong; with no tensors": Counterexample("op: is wrong"),
    "is wrong; expected 0.5, found nan; with x (2, 3), y ()": Counterexample(
        "is wrong", {"x": (2, 3), "y": ()}, expected=0.5, found=math.nan
    ),
    "is wrong; expected nothing, found 3; with x (2,)": Counterexample("is wrong", {"x": (2,)}, found=3),
    "is wrong; expected 0.3333333333, found nothing; with x (2,)": Counterexample(
        "is wrong", {"x": (2,)}, expected=1 / 3
    ),
    "is wrong; 3 workers; with x (2,)": Counterexample("is wrong", {"x": (2,)}, workers=3),
    "is wrong; worker 0 of 3; with x (2,)": Counterexample("is wrong", {"x": (2,)}, workers=3, worker=0),
    "is wrong; region of x [0:2, 1:3]; with x (4, 4)": Counterexample(
        "is wrong", {"x": (4, 4)}, tensor="x", region=((0, 2), (1, 3)), place=(3, 0)
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_counterexamples_say_what_is_known(text: str) -> None:
    assert str(EXAMPLES[text]) == text


def test_counterexamples_as_data() -> None:
    assert Counterexample("is wrong").data() == {"message": "is wrong", "shapes": {}}
    known = Counterexample("is wrong", {"x": (4, 4)}, 3, 0, "x", ((0, 2), (1, 3)), (3, 0), 0.5, 2)
    assert known.data() == {
        "message": "is wrong",
        "shapes": {"x": [4, 4]},
        "workers": 3,
        "worker": 0,
        "tensor": "x",
        "region": [[0, 2], [1, 3]],
        "place": [3, 0],
        "expected": 0.5,
        "found": 2,
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_can_carry_values_that_are_not_finite(value: float) -> None:
    data = Counterexample("is wrong", expected=1.0, found=value).data()
    assert json.loads(json.dumps(data, allow_nan=False))["found"] == str(value)


def test_findings_as_data() -> None:
    counterexample = Counterexample("is wrong", {"x": (2,)})
    grades = {"x": Grade.EXACT, "y": Grade.LOOSE, "z": Grade.TIGHT}
    regions = Finding("op", Check.REGIONS, Verdict.PROVEN, "isl", "i", grades)
    assert regions.data() == {
        "operator": "op",
        "check": "regions",
        "variable": "i",
        "verdict": "proven",
        "reason": "isl",
        "grade": "loose",
        "grades": {"x": "exact", "y": "loose", "z": "tight"},
    }
    assert Finding("op", Check.REPLAY, Verdict.REFUTED, "tried", counterexample=counterexample).data() == {
        "operator": "op",
        "check": "C: replay",
        "variable": None,
        "verdict": "refuted",
        "reason": "tried",
        "counterexample": counterexample.data(),
    }


def test_only_regions_have_a_grade() -> None:
    assert Finding("op", Check.REGIONS, Verdict.TRIED, "").grade is Grade.EXACT
    assert Finding("op", Check.CONCAT, Verdict.TRIED, "", grades={"x": Grade.LOOSE}).grade is None


def test_the_worst_grade() -> None:
    assert worst([Grade.TIGHT, Grade.LOOSE, Grade.EXACT]) is Grade.LOOSE
    assert worst([Grade.EXACT, Grade.TIGHT]) is Grade.TIGHT
    assert worst([]) is Grade.EXACT
