"""Machine files are read strictly, and machines know what lies between two devices."""

from __future__ import annotations

import json

import pytest

from tofu.errors import MachineError
from tofu.machines.machine import uniform
from tofu.machines.machine_file import PRESETS, decode_machine, load_machine
from tofu.machines.quantities import quantity

GOOD = {
    "machine": "box",
    "levels": [{"name": "socket", "bandwidth": "19.2 GB/s"}, {"name": "gpu", "bandwidth": 15.75e9}],
    "devices": [["a", "b"], ["c", "d", "e"]],
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_say_how_fast_devices_and_links_are(name):
    machine = load_machine(name)
    assert machine.name == name
    count = 4 if name.endswith("-node") else 8
    assert len(machine.devices) == len(machine.kinds) == count
    assert machine.memory_bytes > 10e9
    assert len(machine.fan_out(count)) == len(machine.levels)
    assert machine.kind(0).rate("float32") > 1e12
    assert all(level.latency_seconds > 0 for level in machine.levels)


def test_figures_of_the_papers_testbed():
    machine = load_machine("p2.8xlarge")
    assert [level.bytes_per_second for level in machine.levels] == [21e9]
    assert machine.memory_bytes == 12e9


def test_the_groups_of_every_level():
    assert load_machine("pcie-8").groups == (
        (0, 0, 0, 0, 1, 1, 1, 1),
        (0, 0, 1, 1, 2, 2, 3, 3),
        (0, 1, 2, 3, 4, 5, 6, 7),
    )


def test_fewer_workers_use_the_first_devices():
    machine = load_machine("pcie-8")
    assert machine.fan_out(8) == (2, 2, 2)
    assert machine.fan_out(4) == (1, 2, 2)
    assert machine.fan_out(2) == (1, 1, 2)
    assert machine.fan_out(1) == (1, 1, 1)
    for workers, level in ((6, "switch"), (3, "gpu"), (5, "switch|gpu")):
        with pytest.raises(MachineError, match=f"not divided evenly at level '({level})'"):
            machine.fan_out(workers)
    with pytest.raises(MachineError, match="9 workers need 9 devices, but machine 'pcie-8' has 8"):
        machine.check_workers(9)


def test_uniform_machines_are_those_of_a_file():
    made = uniform("pcie-8", [("socket", 2, 19.2e9), ("switch", 2, 15.75e9), ("gpu", 2, 15.75e9)])
    read = load_machine("pcie-8")
    assert (made.groups, made.devices) == (read.groups, read.devices)
    assert [(each.name, each.bytes_per_second) for each in made.levels] == [
        (each.name, each.bytes_per_second) for each in read.levels
    ]


def test_groups_may_differ_in_size():
    machine = decode_machine(GOOD)
    assert machine.groups == ((0, 0, 1, 1, 1), (0, 1, 2, 3, 4))
    assert [level.bytes_per_second for level in machine.levels] == [19.2e9, 15.75e9]
    assert machine.memory_bytes is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"devices": []}, "at least one device"),
        ({"devices": [["a"], []]}, r"devices\[1\] has no gpu"),
        ({"devices": [["a", "b"], ["b"]]}, r"devices\[1\]\[0\]: two devices are named 'b'"),
        ({"devices": ["a", "b"]}, r"devices\[0\] is a; expected a list"),
        ({"devices": [[["a"]]]}, "must be a name"),
        ({"devices": [[1]]}, "must be a name"),
        ({"devices": [[f"gpu{i}" for i in range(5000)]]}, "more than 4096 devices"),
        ({"levels": []}, "1 to 16 entries"),
        ({"levels": [{"name": f"l{i}", "bandwidth": 1} for i in range(17)]}, "1 to 16 entries"),
        (
            {"levels": [{"name": "x", "bandwidth": 1}, {"name": "x", "bandwidth": 1}]},
            "two levels are named 'x'",
        ),
        ({"levels": [{"name": "x", "bandwidth": -1}]}, "must be positive"),
        ({"levels": [{"name": "x", "bandwidth": 0}]}, "must be positive"),
        ({"levels": [{"name": "x", "bandwidth": "-21 GB/s"}]}, "such as 21 GB/s"),
        ({"levels": [{"name": "x", "bandwidth": "21 parsecs"}]}, "such as 21 GB/s"),
        ({"levels": [{"name": "x", "bandwidth": True}]}, "number of bytes"),
        ({"levels": [{"name": "x", "bandwidth": 1e40}]}, "at most 10"),
        ({"levels": [{"name": "x", "bandwidth": float("nan")}]}, "must be positive"),
        ({"levels": [{"name": "x"}]}, "lacks 'bandwidth'"),
        ({"levels": [{"name": "x", "band_width": 1, "bandwidth": 1}]}, "did you mean 'bandwidth'"),
        ({"machine": ""}, "must be a name"),
        ({"memory": "12 GB/s"}, "such as 12 GB"),
        ({"memoyr": 3}, "did you mean 'memory'"),
    ],
)
def test_mistakes_are_named(change, says):
    with pytest.raises(MachineError, match=says):
        decode_machine({**GOOD, **change})


@pytest.mark.parametrize("value", [[], None, "text", 3])
def test_files_of_something_else_are_refused(value):
    with pytest.raises(MachineError, match="expected an object"):
        decode_machine(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("machine: a\nmachine: b\n", "'machine' occurs twice"),
        ("machine: a\nlevels: [{name: x, bandwidth: .nan}]\ndevices: [a]\n", "not a number"),
        ("machine: &a b\nlevels: *a\n", "alias"),
        ("[" * 5000, "nested|YAML"),
        ("#" * (1 << 17), "larger than"),
    ],
)
def test_files_are_read_with_distrust(tmp_path, text, says):
    path = tmp_path / "machine.yaml"
    path.write_text(text)
    with pytest.raises(MachineError, match=says):
        load_machine(str(path))


def test_files_in_both_notations(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(GOOD))
    assert load_machine(str(path)) == decode_machine(GOOD)
    path.write_text(json.dumps({**GOOD, "devices": []}))
    with pytest.raises(MachineError, match=r"machine\.json' cannot be used: devices has no socket"):
        load_machine(str(path))
    with pytest.raises(MachineError, match="did you mean 'dgx-h100'"):
        load_machine("dgx-h10")


@pytest.mark.parametrize(
    ("text", "count"), [("12GB", 12e9), ("1.5 GiB", 1.5 * 2**30), ("7 B", 7), (512, 512)]
)
def test_quantities(text, count):
    assert quantity(text, "memory") == count
