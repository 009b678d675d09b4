"""The benchmarks for cards without one: commands that are made, and small ones that the host runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import moving, step_race, training
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.bench_device import Stand, seconds_of
from tofu.operators.emit.datatypes import encoded
from tofu.runtime.cuda import inspection

from ..runtime.cuda.guards import intact
from ..runtime.cuda.host_machine import Compiled, HostMachine

NEVER = 1e9


@dataclass(frozen=True)
class HostStand(Stand):
    """One card, which is the host."""

    new_machine: Callable[..., Any] = HostMachine

    def machine(self, workers: int, tf32: bool = False) -> Any:
        return self.new_machine(workers)

    def _memory(self, card: int) -> tuple[int, int]:
        return 10, 100


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def stand(kernels: Compiled) -> HostStand:
    return HostStand(1, 0.0, NEVER, partial(HostMachine, kernels=kernels))


def test_all_commands_are_made_without_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list", "--small", "--save", str(tmp_path / "gpu.json")])
    printed = capsys.readouterr().out
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert "none is run" in printed
    assert results["not_measured"] == {"PyTorch": "nothing is run"}
    assert (results["cards"], results["wrong"]) == ([], {})
    assert len(results["moving"]) == len(moving.cases(small=True))
    for case in results["moving"]:
        assert case["commands"] == 1
        assert case["case"] in printed
        assert "seconds" not in case
    assert results["training"].keys() == step_race.SMALL_MODELS.keys()
    for steps in results["training"].values():
        assert steps.keys() == {setting.title for setting in training.SETTINGS}
        for step in steps.values():
            assert 0 < sum(step["arena_bytes"]) <= step["planned_bytes"]
            assert step["commands"]["KernelLaunch"] >= step["kernels"] > 0
            assert "seconds" not in step


def test_without_a_card_there_is_nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_cards", lambda: (None, (), "install it"))
    with pytest.raises(SystemExit, match=r"(?s)--list runs without.*driver: was not found; install it"):
        main([])


@pytest.mark.parametrize("case", moving.cases(small=True), ids=lambda case: case.title)
def test_moving_moves_what_it_says(case: moving.Case, stand: HostStand) -> None:
    machine = stand.machine(1)
    rng = np.random.default_rng(1)
    target, *sources = [machine.allocate(0, case.nbytes) for _ in range(1 + moving.MOST_PIECES)]
    commands, moved = moving.made(case, target, sources)
    machine.load(0, commands)
    length = case.shape[case.axis] if case.axis is not None else 0
    pieces = []
    for number, source in zip(range(case.pieces), sources, strict=False):
        shape = list(case.shape)
        if case.axis is not None:
            shape[case.axis] = length * (number + 1) // case.pieces - length * number // case.pieces
        values = encoded(rng.integers(-8, 9, shape), case.type)
        machine.write(0, source, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        pieces.append(values)
    for command in commands:
        machine.issue(0, command)
    found = machine.read(0, target, case.nbytes).view(pieces[0].dtype).reshape(case.shape)
    expected = sum(pieces) if case.axis is None else np.concatenate(pieces, case.axis)
    np.testing.assert_array_equal(found, expected)
    assert moved == (case.pieces + 1 if case.axis is None else 2) * case.nbytes
    assert intact(machine)


def test_what_is_measured_is_one_of_many_repeats(stand: HostStand) -> None:
    machine = stand.machine(1)
    issued = 0

    def issue() -> None:
        nonlocal issued
        issued += 1

    assert 0 < seconds_of(machine, issue, 10) < 1
    assert issued == 11
    assert machine.captures == 1


def test_steps_are_timed_and_compared(stand: HostStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the host in the card's place; PyTorch is not there, and that is said."""
    monkeypatch.setattr(step_race.peer, "missing", lambda interpreter: "no module named torch")
    monkeypatch.setattr(training, "STEPS", 1)
    models = {"RNN": step_race.SMALL_MODELS["RNN-1-16"]}
    outcome = step_race.trained(stand, models, "python")
    assert outcome.wrong == {}
    assert outcome.omitted == {"PyTorch": "no module named torch"}
    steps = outcome.results["RNN"]
    assert len({step["losses"][0] for step in steps.values()}) <= 2  # one worker, and eight
    for step in steps.values():
        assert step["seconds"] > 0
        assert step["losses"][2] < step["losses"][0]
        assert (step["engine_bytes"], step["process_bytes"]) == (0, 90)


def test_what_there_is_no_time_for_is_said(stand: HostStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_race.peer, "missing", lambda interpreter: None)
    late = HostStand(1, -NEVER, 1.0)
    outcome = step_race.trained(late, {"RNN": step_race.SMALL_MODELS["RNN-1-16"]}, "python")
    assert set(outcome.omitted.values()) == {"out of time"}
    assert len(outcome.omitted) == len(training.SETTINGS) + 4
    assert outcome.results == {"RNN": {}}


def test_steps_that_compute_something_else_are_named() -> None:
    results = {
        "Tofu": {"losses": [2.0]},
        "near": {"losses": [2.001]},
        "far": {"losses": [2.1]},
        "none": {"losses": [float("nan")]},
        "TF32": {"losses": [2.01]},
    }
    assert step_race.disagreements(results).keys() == {"far", "none"}


@pytest.mark.gpu
def test_small_sizes_are_measured_on_a_card(tmp_path: Path) -> None:
    main(["--small", "--save", str(tmp_path / "gpu.json")])
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["cards"]
    assert results["wrong"] == {}
    assert set(results["not_measured"]) <= {"PyTorch"}
    assert all(case["part_of_copy"] > 0 for case in results["moving"])
    for steps in results["training"].values():
        assert all(step["seconds"] > 0 for step in steps.values())
        assert len(steps) >= len(training.SETTINGS)
