"""`tofu frontier`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Tofu = Callable[..., Result]
ASKED = ("frontier", "mlp", "--machine", "dgx-1-v100")


def test_points_are_printed_drawn_and_saved(tofu: Tofu, tmp_path: Path) -> None:
    plot, plans = tmp_path / "f.svg", tmp_path / "plans"
    result = tofu(*ASKED, "-w", "1,2", "--plot", str(plot), "--save", str(plans), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.output)
    assert {point["workers"] for point in facts["points"]} == {1, 2}
    assert [point["workers"] for point in facts["lower"]] == [1, 2]
    assert len(list(plans.iterdir())) == len(facts["points"])
    assert "2 workers" in plot.read_text()
    fastest = [point for point in facts["points"] if point["workers"] == 2][-1]
    number = sum(point["workers"] == 2 for point in facts["points"])
    again = tofu("simulate", str(plans / f"2-{number}.json"), "--machine", "dgx-1-v100", "--json")
    assert json.loads(again.output)["seconds"] == fastest["seconds"]
    # plans of another run would be mixed with them
    refused = tofu(*ASKED, "-w", "2", "--save", str(plans))
    assert refused.exit_code == 2
    assert f"has {len(facts['points'])} plans of an earlier run, such as '1-1.json'" in refused.stderr


def test_the_table_says_what_is_proven(tofu: Tofu) -> None:
    text = tofu(*ASKED, "-w", "2").output
    assert "every plan in steps over 2 workers takes at least" in text


def test_the_cost_model_of_tensoropt_is_printed_with_what_plans_take(tofu: Tofu) -> None:
    asked = (*ASKED, "-w", "2", "--cost-model", "tensoropt")
    facts = json.loads(tofu(*asked, "--json").output)
    assert facts["cost_model"] == "tensoropt"
    for point in facts["points"]:
        assert point["arena_bytes"] > point["peak_bytes"]
        assert point["simulated_seconds"] != point["seconds"]
    text = tofu(*asked).output
    for word in ("simulated", "arena", "by the cost model 'tensoropt', every plan that may replicate any"):
        assert word in text


def test_mistakes_end_with_status_2(tofu: Tofu, tmp_path: Path) -> None:
    for wrong, message in (
        (("-w", "2,x"), "expected worker counts from 1"),
        (("-w", "0"), "expected worker counts from 1"),
        (("-w", "9"), "has 8"),
        (
            ("-w", "3", "--machine", "pcie-8"),
            "use a number of workers that are, or `tofu plan` with the objective 'bytes'",
        ),
        (("--plot", str(tmp_path / "f.txt")), ".svg or .png"),
        (("--plot", str(tmp_path / "no" / "f.svg")), "there is no folder"),
        (("--memory", "1kB"), "no plan is searched within 1,000 bytes"),
        (("--memory", "lots"), "memory"),
        (("--save", "/dev/null/plans"), "'/dev/null' is not a folder"),
        (("--method", "data-parallel"), "finds one plan"),
        (("--cost-model", "guessed"), "'guessed' is not one of 'simulated', 'tensoropt'"),
        (("--method", "nothing"), "there is no search method 'nothing'"),
    ):
        result = tofu(*ASKED, *wrong)
        assert result.exit_code == 2, result.output
        assert message in result.stderr
    assert tofu("frontier", "mlp").exit_code == 2
