"""`tofu sync`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from tofu.partitioner import Plan

Tofu = Callable[..., Result]
ASKED = ("sync", "mlp", "--workers", "4")
PARAMETERS = 4 * (784 * 128 + 128 * 64 + 64 * 10 + 128 + 64 + 10)


def test_figures_are_one_object(tofu: Tofu) -> None:
    facts = json.loads(tofu(*ASKED, "--builder", "all-reduce", "--json").output)
    share = {
        "kind": "all-reduce",
        "variables": 6,
        "sparse": 0,
        "variable_bytes": PARAMETERS,
        "gradient_bytes": 6 * PARAMETERS,
        "fetched_bytes": 0,
    }
    assert facts["shares"] == [share]
    assert (facts["cost_bytes"], facts["other_bytes"]) == (6 * PARAMETERS, 0)
    assert (facts["machine"], facts["step_seconds"]) == (None, None)


def test_what_is_printed_is_a_strategy_file_again(tofu: Tofu, tmp_path: Path) -> None:
    made = json.loads(tofu(*ASKED, "--builder", "uneven-partitioned-ps", "--json").output)
    path = tmp_path / "strategy.yaml"
    path.write_text(yaml.safe_dump(made["strategy"]), encoding="utf-8")
    assert json.loads(tofu(*ASKED, "--strategy", str(path), "--json").output) == made


def test_a_plan_is_saved_with_its_origin(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    result = tofu(*ASKED, "--builder", "ps", "--machine", "dgx-1-v100", "--save", str(path))
    assert result.exit_code == 0, result.output
    for part in (
        "2.73 MB moved in one iteration",
        "server",
        "a simulated iteration takes",
        "plan written to",
    ):
        assert part in result.output
    plan = Plan.load(path)
    assert plan.step_seconds is not None
    assert tofu("verify", str(path)).exit_code == 0


def test_a_base_is_a_plan_file_or_a_method(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert (
        tofu("plan", "mlp", "--workers", "4", "--method", "megatron:dp2-tp2", "--save", str(path)).exit_code
        == 0
    )
    found = []
    for base in (str(path), "megatron:dp2-tp2"):
        result = tofu(*ASKED, "--builder", "all-reduce", "--base", base, "--json")
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.output)["cost_bytes"])
    assert found[0] == found[1] < 6 * PARAMETERS


def test_a_file_names_a_base_next_to_it_and_devices(tofu: Tofu, tmp_path: Path) -> None:
    plan, path = tmp_path / "plan.json", tmp_path / "strategy.yaml"
    assert tofu("plan", "mlp", "--workers", "4", "--method", "zero-3", "--save", str(plan)).exit_code == 0
    path.write_text(
        "strategy: 1\nbase: plan.json\nvariables: {'*': {sync: ps, worker: gpu1, proxy: true}}\n",
        encoding="utf-8",
    )
    result = tofu(*ASKED, "--strategy", str(path), "--machine", "dgx-1-v100", "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.output)
    assert made["strategy"]["base"] == str(plan)
    assert made["strategy"]["variables"]["fc1_bias"] == {"sync": "ps", "worker": 1, "proxy": True}
    assert made["cost_bytes"] == 6 * PARAMETERS
    assert tofu(*ASKED, "--strategy", str(path)).exit_code == 2


def test_a_search_prints_its_candidates_and_what_the_gain_depends_on(tofu: Tofu, tmp_path: Path) -> None:
    asked = (*ASKED, "--batch", "8", "--builder", "auto", "--machine", "2x-dgx-h100")
    facts = json.loads(tofu(*asked, "--json").output)
    found = facts["auto"]
    assert facts["merged_seconds"] == found["seconds"] == found["candidates"][0]["seconds"]
    assert found["seconds"] < found["plain_seconds"]
    assert found["gains"][0]["feature"] == "latency"
    assert facts["messages"]["merged"] < facts["messages"]["separate"]
    path = tmp_path / "strategy.json"
    path.write_text(json.dumps(facts["strategy"]), encoding="utf-8")
    again = json.loads(
        tofu(*ASKED, "--batch", "8", "--strategy", str(path), "--machine", "2x-dgx-h100", "--json").output
    )
    assert again["merged_seconds"] == facts["merged_seconds"]
    shown = " ".join(tofu(*asked).output.split())
    for part in (
        "less than plain all-reduce; of this gain depend on",
        "latency:",
        "plain all-reduce",
        "messages",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--builder", "auto"), "give one with --machine"),
        ((), "give one of them"),
        (("--builder", "ps", "--strategy", "s.yaml"), "give one of them"),
        (("--builder", "all-reduec"), "there is no builder 'all-reduec'; did you mean 'all-reduce'"),
        (("--strategy", "none.yaml"), "cannot read the strategy file 'none.yaml'"),
        (
            ("--strategy", "all-reduce"),
            "'all-reduce' is not a strategy file but a builder: give it to --builder",
        ),
        (("--builder", "ps", "--base", "none.json"), "cannot read the plan file 'none.json'"),
        (("--builder", "ps", "--base", "refien"), "nor a method; did you mean 'refine'"),
        (("--builder", "ps", "--batch", "2"), "choose a larger batch or fewer workers"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, options: tuple[str, ...], message: str) -> None:
    result = tofu(*ASKED, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
