"""`tofu profile` measures programs once, and `tofu simulate` uses the times."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from tofu.machines.machine_file import load_machine
from tofu.runtime import numpy_engine, processor, profiling
from tofu.runtime.processor import machine_name

from ..machines.test_profile_file import MACHINE
from ..written_plans import mixed, training_graph

Tofu = Callable[..., Result]
SMALL = ("mlp", "--batch", "8")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    known = replace(MACHINE, name=machine_name())
    monkeypatch.setattr(profiling, "measure_processor", lambda: known)
    monkeypatch.setattr(processor, "measure_processor", lambda: known)
    monkeypatch.setattr(numpy_engine, "processors", lambda: 2)
    return tmp_path / "here.yaml"


def test_what_was_measured_is_used(tofu: Tofu, path: Path) -> None:
    first = tofu("profile", *SMALL, "--save", str(path))
    assert first.exit_code == 0
    assert "mlp on 2 workers: " in first.output
    assert first.output.endswith(f"its times in {path.with_name('here.profile.json')}\n")
    again = json.loads(tofu("profile", *SMALL, "--save", str(path), "--json").output)
    assert again["machine"] == machine_name()
    (row,) = again["programs"]
    assert row["measured"] == 0 < row["known"]
    found = json.loads(tofu("simulate", *SMALL, "--workers", "2", "--machine", str(path), "--json").output)
    assert found["times"] == "measured"
    assert found["time_shares"]["measured"]["instructions"] > row["known"]
    other = tofu("simulate", "mlp", "--batch", "24", "--workers", "2", "--machine", str(path)).output
    assert "of the time), fitted for" in " ".join(other.split())


def test_several_models_and_numbers_of_workers(tofu: Tofu, path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    mixed(training_graph()).save(plan)
    shown = tofu("profile", "mlp", str(plan), "-w", "1,2", "--save", str(path), "--json")
    rows = json.loads(shown.output)["programs"]
    assert [(row["model"], row["workers"]) for row in rows] == [("mlp", 1), ("mlp", 2), ("mlp", 4)]
    profile = load_machine(str(path)).profile
    assert profile is not None
    assert [each.threads for each in profile.engines] == [1, 2]


def test_doctor_saves_the_processor(tofu: Tofu, path: Path) -> None:
    shown = tofu("doctor", "--no-copies", "--save", str(path))
    assert shown.output.endswith(f"machine file written to {path}\n")
    assert load_machine(str(path)).name == machine_name()
    simulated = json.loads(tofu("simulate", *SMALL, "-w", "2", "--machine", str(path), "--json").output)
    assert simulated["times"] == "estimated"


def test_mistakes_end_in_a_message(tofu: Tofu, path: Path, tmp_path: Path) -> None:
    elsewhere, unwritten = tmp_path / "elsewhere.yaml", tmp_path / "unwritten.yaml"
    elsewhere.write_text(
        "{machine: other, kind: k80, levels: [{name: gpu, bandwidth: 9 GB/s}], devices: [a]}"
    )
    for arguments, says in (
        ((), "Missing argument"),
        (SMALL, "--save"),
        ((*SMALL, "--save", str(tmp_path / "here.json")), "must end in .yaml or .yml"),
        ((*SMALL, "--save", str(tmp_path / "no" / "here.yaml")), "there is no folder"),
        ((*SMALL, "--save", str(tmp_path)), "it is a folder"),
        ((*SMALL, "--save", str(elsewhere)), f"describes 'other', but this machine is '{machine_name()}'"),
        (("mlq", "--save", str(unwritten)), "did you mean 'mlp'"),
        (("mlp", "mlq", "--save", str(unwritten)), "did you mean 'mlp'"),
        (("mlp", "--method", "spartn", "--save", str(unwritten)), "did you mean 'spartan'"),
        (("mlp", "--workers", "0", "--save", str(unwritten)), "--workers"),
        (("missing.json", "--save", str(unwritten)), "missing.json"),
    ):
        result = tofu("profile", *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert says in " ".join(result.output.split()), result.output
    assert not unwritten.exists()
