"""The page that lists the model zoo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tofu import models
from tofu.cli.models import command
from tofu.models.families import FAMILIES
from tofu.reports.models import ModelFacts, markdown, model_facts

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_is_up_to_date() -> None:
    """Where it is not: `tofu models --markdown > docs/models.md`."""
    assert PAGE.read_text(encoding="utf-8") == markdown(model_facts())


def test_a_row() -> None:
    facts = ModelFacts("net-2", 1_234_567, 8, ((3, 4), (5,)), ("image", "classes"), "A Paper, 2019")
    row = "| `net-2` | 1,234,567 | 8 | 3 x 4 and 5 | image, classes | A Paper, 2019 |"
    assert row in markdown([facts]).splitlines()


def test_command() -> None:
    runner = CliRunner()
    assert runner.invoke(command, []).output.split() == list(models.names())
    assert json.loads(runner.invoke(command, ["--json"]).output) == {"models": list(models.names())}


def test_sizes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tofu.reports.models.FAMILIES", FAMILIES[:2])
    runner = CliRunner()
    printed = runner.invoke(command, ["--sizes"]).output.splitlines()
    assert [line.split()[:3] for line in printed] == [
        ["mlp", "109,386", "parameters,"],
        ["lenet", "431,080", "parameters,"],
    ]
    listed = json.loads(runner.invoke(command, ["--sizes", "--json"]).output)["models"]
    assert [(each["name"], each["parameters"], each["batch"]) for each in listed] == [
        ("mlp", 109386, 64),
        ("lenet", 431080, 64),
    ]
