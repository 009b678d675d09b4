"""`tofu explain`, `tofu diff` and `tofu verify` find the graph that a plan file was made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tofu.partitioner.plans.form_document import decode_form

from ..written_plans import COPY, FORMS, READERS, SWAPPED, WORKERS, mixed, placed, training_graph

Tofu = Callable[..., Result]


@pytest.fixture
def plan(tofu: Tofu, tmp_path: Path) -> str:
    path = str(tmp_path / "plan.json")
    arguments = ("--workers", "4", "--batch", "16", "--optimizer", "adam", "--save", path)
    assert tofu("plan", "mlp", *arguments).exit_code == 0
    return path


def test_the_model_is_known_from_the_file(tofu: Tofu, plan: str) -> None:
    assert json.loads(tofu("verify", plan, "--json").output)["model"] == "mlp"
    facts = json.loads(tofu("explain", plan, "fc1.product", "--json").output)
    assert facts["what"] == "operator"
    assert {"choice", "bytes", "moved", "alternatives"} <= facts.keys()
    chosen = next(entry for entry in facts["alternatives"] if entry["choice"] == facts["choice"])
    assert chosen["held_bytes"] == facts["plan_bytes"]
    assert {entry["operation"] for entry in facts["moved"]} == {"fc1.product"}


def test_a_page_names_choice_cost_and_alternatives(tofu: Tofu, plan: str) -> None:
    output = tofu("explain", plan, "fc1_weight").output
    for part in ("tensor fc1_weight", "split on dimensions", "What moves", "Alternatives", "all else held"):
        assert part in output
    assert "tensor fc1.product" in tofu("explain", plan, "fc1.product", "--as", "tensor").output


def test_without_a_name_every_weight_is_listed(tofu: Tofu, plan: str) -> None:
    layers = {each["weight"]: each for each in json.loads(tofu("explain", plan, "--json").output)["layers"]}
    assert list(layers) == ["fc1_weight", "fc2_weight", "fc3_weight"]
    for name, layer in layers.items():
        chosen = json.loads(tofu("explain", plan, name, "--json").output)
        parts = [1, 1]
        for dimension in chosen["choice"]:
            if dimension is not None:
                parts[dimension] *= 2
        assert layer["weight_parts"] == parts
    output = " ".join(tofu("explain", plan).output.split())
    assert "bytes are those of one layer" in output
    for name, layer in layers.items():
        cut = [
            f"{n}/{p}" if p > 1 else str(n)
            for n, p in zip(layer["shape"], layer["weight_parts"], strict=True)
        ]
        assert f"{name} │ {' x '.join(cut)} │ {layer['operator']}" in output


def test_two_plans_side_by_side(tofu: Tofu, plan: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.json")
    arguments = ("--workers", "4", "--batch", "16", "--optimizer", "adam", "--method", "all-row")
    assert tofu("plan", "mlp", *arguments, "--save", other).exit_code == 0
    facts = json.loads(tofu("diff", plan, other, "--json").output)
    assert facts["methods"] == ["recursive", "all-row"]
    assert facts["operators"]
    assert "operators differ" in tofu("diff", plan, other).output
    assert "the same choices" in tofu("diff", plan, plan).output


def test_mistakes_end_in_one_message(tofu: Tofu, plan: str, tmp_path: Path) -> None:
    document = json.loads(Path(plan).read_text(encoding="utf-8"))
    nameless, code = tmp_path / "nameless.json", tmp_path / "code.json"
    code.write_text(json.dumps({**document, "source": {**document["source"], "model": "mine.py:build"}}))
    del document["source"]
    nameless.write_text(json.dumps(document))
    for arguments, says in (
        (("explain", plan, "fc1_weigth"), "did you mean 'fc1_weight'"),
        (("explain", str(nameless), "fc1_weight"), "name MODEL"),
        (("verify", str(code)), "not run because a file says so"),
        (("explain", plan, "fc1_weight", "--batch", "8"), "fingerprint"),
        (("explain", plan, "--as", "tensor"), "--as is for a name"),
        (("diff", plan, "missing.json"), "missing.json"),
    ):
        result = tofu(*arguments)
        assert result.exit_code == 2, arguments
        assert says in result.output
    named = tofu("verify", str(nameless), "mlp", "--batch", "16", "--optimizer", "adam")
    assert named.exit_code == 0
    options = ("--batch", "16", "--optimizer", "adam")
    for path in (str(nameless), str(code)):
        listed = tofu("explain", path, "mlp", *options)
        assert listed.exit_code == 0, path
        assert "activations move" in listed.output
        assert tofu("explain", path, "fc1_weight", "mlp", *options).output.startswith("tensor fc1_weight")


@pytest.fixture
def written(tmp_path: Path) -> tuple[str, str]:
    """The files of two plans that are not in steps."""
    paths = str(tmp_path / "placed.json"), str(tmp_path / "mixed.json")
    graph = training_graph()
    placed(graph).save(paths[0])
    mixed(graph).save(paths[1])
    return paths


def test_plans_of_any_form_are_explained(tofu: Tofu, written: tuple[str, str]) -> None:
    for name, form in FORMS.items():
        facts = json.loads(tofu("explain", written[1], name, "--as", "operator", "--json").output)
        assert decode_form(facts["choice"], str, WORKERS, name) == form
        assert facts["alternatives"] == []
        assert facts["unpriced"]
    assert facts["parts"][0] == {"worker": 1, "box": [[0, 8], [0, 128]], "term": None, "read": None}
    (copy,) = json.loads(tofu("explain", written[1], "fc2_weight", "--json").output)["copies"]
    assert decode_form(copy["form"], int, WORKERS, "copy") == COPY.form
    assert copy["readers"] == list(READERS)
    text = tofu("explain", written[1], "relu1").output
    assert text.startswith("operator relu1 (i0: 16, i1: 128) is split along i0,@1, one per step")
    assert "without a part: workers 0, 2" in text
    listed = json.loads(tofu("explain", written[1], "--json").output)["layers"]
    layers = {each["weight"]: each for each in listed}
    assert layers["fc2_weight"]["workers"] == [0, 2]
    assert "computed by" in tofu("explain", written[0]).output


def test_plans_of_any_form_are_compared_and_verified(tofu: Tofu, written: tuple[str, str], plan: str) -> None:
    facts = json.loads(tofu("diff", *written, "--json").output)
    changed = {change["name"]: change["choices"] for change in facts["operators"]}
    for name, form in FORMS.items():
        assert decode_form(changed[name][1], str, WORKERS, name) == form
    assert [entry["operation"] for entry in facts["order"]] == list(reversed(SWAPPED))
    assert [entry["tensor"] for entry in facts["copies"]] == ["fc2_weight"]
    assert "the same choices" in tofu("diff", written[1], written[1]).output
    assert "different graphs" in tofu("diff", plan, written[0]).output
    for path in written:
        assert json.loads(tofu("verify", path, "--json").output)["verified"] is True
