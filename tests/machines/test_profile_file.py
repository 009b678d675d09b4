"""Profiles are read strictly, and belong to one machine and one version."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tofu.errors import MachineError
from tofu.machines.device_kind import DeviceKind
from tofu.machines.machine import Level, Machine
from tofu.machines.machine_file import load_machine
from tofu.machines.profile import EngineTimes, Host, MeasuredTime, Profile, WakeTime, check_host
from tofu.machines.profile_file import load_profile, profile_path, save_profile
from tofu.machines.write_machine import save_machine
from tofu.operators.kernels_version import kernels_version

HOST = Host("some processor", 2, "2.0", "openblas", kernels_version("numpy"))
KIND = DeviceKind("processor", 10**9, 2.5e9, (("float32", 8e9),), 2e-6, in_turn=True, wake_seconds=3e-6)
MACHINE = Machine("box", (Level("core", 1e9, 1e-6),), ("core0", "core1"), ((0, 1),), 10**9, (KIND,) * 2)


def profile(path: Path) -> Profile:
    times = {"def f": {(2, 3): MeasuredTime(1e-3, 1e-5, (1, 6)), (): MeasuredTime(2e-3, 0.0, (1, 0))}}
    return Profile("box", HOST, (EngineTimes("numpy", 2, 1, WakeTime(3, 2e-5), times),), str(path))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "box.yaml"
    save_machine(MACHINE, path)
    save_profile(profile(profile_path(path)), profile_path(path))
    return path


def test_machines_and_profiles_are_read_as_written(saved: Path) -> None:
    found = load_machine(str(saved))
    assert found.profile == profile(profile_path(saved))
    assert replace(found, profile=None) == MACHINE
    profile_path(saved).unlink()
    assert load_machine(str(saved)) == MACHINE


def test_times_for_another_number_of_threads_are_refused(saved: Path) -> None:
    found = load_machine(str(saved)).profile
    assert found is not None
    assert found.times(2).kinds["def f"][2, 3].seconds == 1e-3
    with pytest.raises(MachineError, match=r"has times for 2 threads, but .* run on 1; .* --workers 1"):
        found.times(1)


def test_times_of_another_machine_or_version_are_refused(saved: Path) -> None:
    path = profile_path(saved)
    with pytest.raises(MachineError, match=r"measured on machine 'box', but .* describes 'other'"):
        load_profile(path, "other")
    old = replace(profile(path), host=replace(HOST, kernels="0123456789ab"))
    save_profile(old, path)
    with pytest.raises(MachineError, match=f"kernels 0123456789ab, but .* has kernels {HOST.kernels}"):
        load_machine(str(saved))
    with pytest.raises(MachineError, match=r"with processors 2, but here it is 4; delete the profile"):
        check_host(HOST, replace(HOST, processors=4), "box.profile.json")


def test_devices_of_several_kinds_have_no_profile(saved: Path) -> None:
    text = saved.read_text().replace("[core0, core1]", "[core0, {name: core1, kind: k80}]")
    saved.write_text(text)
    with pytest.raises(MachineError, match=r"machine 'box' has k80, processor; give all devices one `kind`"):
        load_machine(str(saved))


Change = Callable[[Any], object]


def _engine(document: Any) -> Any:
    return document["engines"][0]


def _other(document: Any) -> Any:
    return {**_engine(document), "engine": "cuda", "threads": 1}


def _row(document: Any) -> Any:
    return _engine(document)["kinds"]["def f"][0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format=2), "its format is 2, but this version of Tofu reads 1"),
        (lambda d: d.pop("machine"), "the file lacks 'machine'"),
        (lambda d: d.update(engines=[]), "it has no times"),
        (lambda d: d["engines"].append(_engine(d)), "engines has two entries for 2 threads"),
        (lambda d: _engine(d).update(kinds={}), r"engines\[0\].kinds has no times"),
        (lambda d: _engine(d).update(wakes=[1]), r"engines\[0\].wakes has 1 entries, not 2"),
        (lambda d: _engine(d).update(threads=0), r"engines\[0\].threads is 0"),
        (lambda d: _engine(d)["kinds"].update({"def g(a)": []}), r"kinds\['g'\] has no times"),
        (
            lambda d: _row(d).__setitem__(2, -1.0),
            r"kinds\['f'\]\[0\]\[2\] is -1.0; it must lie between 0 and 1000000",
        ),
        (lambda d: _row(d).__setitem__(2, 10**400), r"kinds\['f'\]\[0\]\[2\] is too large for a number"),
        (lambda d: _row(d).__setitem__(2, 0), r"\[0\]\[2\] is 0 seconds; a time is longer"),
        (lambda d: _row(d).__setitem__(3, None), r"\[0\]\[3\] is null; it must be a number"),
        (lambda d: _row(d).__setitem__(0, [2, -3]), r"\[0\]\[0\] is -3"),
        (lambda d: _row(d).__setitem__(1, [1, 6, 7]), r"\[1\]\[1\] has 2 amounts, but .* 3"),
        (lambda d: _row(d).pop(), r"\[0\] has 3 entries, not 4"),
        (lambda d: _row(d).__setitem__(0, []), r"\[1\] has the sizes of an entry before it"),
        (lambda d: d["measured_on"].update(numpy=2), "measured_on.numpy is 2; it must be a string"),
        (lambda d: d["measured_on"].update(processors=0), "measured_on.processors is 0"),
        (
            lambda d: _engine(d).update(engine="tpu"),
            r"engines\[0\].engine is 'tpu'; it must be numpy or processes or cuda",
        ),
        (lambda d: _engine(d).update(engine="cuda"), "measured_on .*'card'"),
        (lambda d: d["engines"].append(_other(d)), r"engines\[1\].engine is 'cuda'; it must be numpy"),
    ],
)
def test_malformed_profiles(saved: Path, change: Change, says: str) -> None:
    path = profile_path(saved)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(MachineError, match=f"box.profile.json' cannot be used: .*{says}"):
        load_machine(str(saved))


def test_text_that_is_not_json(saved: Path) -> None:
    for text, says in (("", "not JSON"), ("[" * 10**6, "nested too deeply"), ("[]", "an object")):
        profile_path(saved).write_text(text)
        with pytest.raises(MachineError, match=says):
            load_machine(str(saved))


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"'box.json' is not the name of a machine file.*\.yaml"):
        save_machine(MACHINE, Path("box.json"))
    with pytest.raises(MachineError, match=r"cannot write the machine file .*No such file"):
        save_machine(MACHINE, tmp_path / "missing" / "box.yaml")
    missing = tmp_path / "missing" / "box.profile.json"
    with pytest.raises(MachineError, match=r"cannot write the profile .*No such file"):
        save_profile(profile(missing), missing)
