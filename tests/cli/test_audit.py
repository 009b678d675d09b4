from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tofu import operators

Tofu = Callable[..., Result]


def test_reports_every_strategy(tofu: Tofu) -> None:
    result = tofu("audit", "dot")
    assert result.exit_code == 0, result.output
    assert "Sum is associative and commutative" in result.output
    assert "A: whole" in result.output


def test_several_operators_end_in_their_figures(tofu: Tofu) -> None:
    *_, regions, claims = tofu("audit", "dot", "tanh", "--workers", "2").output.strip().split("\n")
    assert regions.startswith("2 operators; regions of 5 descriptions: ")
    assert " exact" in regions
    assert claims.startswith("claims: ")
    assert " proven, " in claims
    assert ", 0 refuted, " in claims


def test_json_begins_with_the_figures(tofu: Tofu) -> None:
    report = json.loads(tofu("audit", "dot", "tanh", "--workers", "2", "--json").output)
    assert report["operators"] == 2
    assert report["refuted"] == 0
    assert report["descriptions"] == sum(report["grades"].values()) == 5
    assert set(report["grades"]) == {"exact", "tight", "loose"}
    assert report["verdicts"]["proven"] + report["verdicts"]["tried"] > 40
    assert {audit["operator"] for audit in report["audits"]} == {"dot", "tanh"}


def test_a_wrong_name_is_told_before_the_first_audit(tofu: Tofu) -> None:
    result = tofu("audit", "dot", "dott")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean 'dot'?" in result.stderr


def test_file_with_shapes(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "half.tdl"
    path.write_text("def half(data):\n    return lambda i=data.shape[0] // 2: data[2 * i]", encoding="utf-8")
    result = tofu("audit", str(path), "--shape", "data=8")
    assert result.exit_code == 0, result.output
    assert "half" in result.output


def test_refuted_claims_end_in_status_1(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that always writes ones stands for a library kernel that is wrong."""
    monkeypatch.setattr("tofu.operators.derive.derive", lambda call: lambda: call.outputs[0].fill(1.0))
    result = tofu("audit", "tanh")
    assert result.exit_code == 1
    assert "refuted" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name the operators to audit, or give --all"),
        (("dot", "--all"), "name the operators to audit, or give --all"),
        (("Convolutoin",), "did you mean 'Convolution'?"),
        (("dot", "--workers", "1"), "from 2 to 4096"),
        (("dot", "--workers", "2,x"), "such as 2,3, found '2,x'"),
        (("dot", "tanh", "--shape", "lhs=2,2"), "need exactly one operator"),
        (("missing.tdl",), "cannot be read"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, arguments: tuple[str, ...], says: str) -> None:
    result = tofu("audit", *arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_nothing_in_the_library_is_refuted(tofu: Tofu) -> None:
    result = tofu("audit", "--all", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["refuted"] == 0
    assert report["operators"] == len(operators.names())
    assert report["grades"]["exact"] > report["grades"]["tight"] + report["grades"]["loose"]
