"""The counts of the operator library, and the page that lists it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tofu.cli.operators import command
from tofu.operators import get, names
from tofu.reports.operators import PAPER, OperatorFacts, counts, facts_of, markdown, operator_facts

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_the_page_is_up_to_date() -> None:
    """Where it is not: `tofu operators --markdown > docs/operators.md`."""
    assert PAGE.read_text() == markdown(operator_facts())


def test_what_an_operator_is_follows_from_its_analysis() -> None:
    kinds = {name: facts_of(get(name)).kind for name in ("tanh", "dot", "transpose", "linalg_potrf")}
    assert kinds == {"tanh": "element-wise", "dot": "reduction", "transpose": "", "linalg_potrf": "opaque"}


def test_counts() -> None:
    facts = [
        OperatorFacts("a", (), (), 1, True, False, False, ""),
        OperatorFacts("b", (), (), 2, False, True, True, ""),
        OperatorFacts("c", (), (), 1, False, False, True, ""),
    ]
    expected = {"total": 3, "describable": 2, "elementwise": 1, "opaque": 1, "output_reduction": 2}
    assert counts(facts) == expected


def test_command() -> None:
    report = json.loads(CliRunner().invoke(command, ["--json"]).output)
    assert report["counts"]["total"] == len(names()) == len(report["operators"])
    assert report["counts"]["describable"] + report["counts"]["opaque"] == report["counts"]["total"]
    assert report["paper"] == dict(PAPER)
    assert "element-wise" in CliRunner().invoke(command, []).output


def test_narrow_tables_keep_names_whole() -> None:
    lines = CliRunner(env={"COLUMNS": "60"}).invoke(command, []).output.splitlines()
    assert max(map(len, lines)) == 60
    first = "".join(line.split("│")[1].strip() for line in lines if "│" in line)
    assert "BilinearSampler" in first
    assert "…" not in "".join(lines)
