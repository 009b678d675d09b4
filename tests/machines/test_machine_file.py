"""Machine files are read strictly, and machines know what lies between two devices."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tofu.errors import MachineError
from tofu.machines.machine import uniform
from tofu.machines.machine_file import PRESETS, decode_machine, load_machine
from tofu.machines.quantities import quantity, rate, seconds

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
        ({"levels": [{"name": "x", "bandwidth": 10**400}]}, "must be positive and at most"),
        ({"levels": [{"name": "x", "bandwidth": -(10**400)}]}, "must be positive and at most"),
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


def test_several_of_a_preset_are_joined_by_its_network():
    machine = load_machine("3x-dgx-h100")
    assert machine.level_names == ("node", "gpu")
    assert machine.fan_out(24) == (3, 8)
    assert (machine.devices[0], machine.devices[23]) == ("node0.gpu0", "node2.gpu7")
    assert machine.groups[0] == (0,) * 8 + (1,) * 8 + (2,) * 8
    assert len(machine.kinds) == 24
    assert load_machine("16x-p100-node").fan_out(64) == (16, 4)
    with pytest.raises(MachineError, match="'pcie-8' states no `network`"):
        load_machine("2x-pcie-8")
    with pytest.raises(MachineError, match="0 times 'dgx-h100' has 0 devices"):
        load_machine("0x-dgx-h100")
    with pytest.raises(
        MachineError, match="9999 times 'dgx-h100' has 79992 devices; a machine has 1 to 4096"
    ):
        load_machine("9999x-dgx-h100")


def test_paths_use_the_links_of_the_groups_that_differ():
    machine = load_machine("pcie-8")
    near, far = machine.path(0, 1), machine.path(1, 6)
    assert near.lanes == ("gpu0 out", "gpu1 in")
    assert far.lanes == ("socket 0 out", "switch 0 out", "gpu1 out", "socket 1 in", "switch 3 in", "gpu6 in")
    assert far.bytes_per_second == 15.75e9
    assert far.latency_seconds == pytest.approx(5.7e-6)
    assert far.seconds(15_750) == pytest.approx(6.7e-6)


def test_devices_take_rails_by_their_number():
    machine = load_machine("2x-dgx-h100")
    assert machine.path(3, 12).lanes == (
        "node 0 rail 3 out",
        "node0.gpu3 out",
        "node 1 rail 4 in",
        "node1.gpu4 in",
    )
    assert machine.path(3, 12).bytes_per_second == 50e9
    assert machine.path(3, 4).bytes_per_second == 450e9


def graph_of(*links, devices=("a", "b", "c", "d")):
    written = [
        {"between": list(ends), "bandwidth": bandwidth, "latency": "1 us"} for ends, bandwidth in links
    ]
    return decode_machine({"machine": "graph", "devices": list(devices), "links": written})


def test_paths_over_links_are_short_then_wide():
    """From a to d there are two ways over one switch and a wider way over two devices."""
    machine = graph_of(
        (("a", "slow"), 1e9), (("slow", "d"), 9e9), (("a", "fast"), 3e9), (("fast", "d"), 2e9),
        (("a", "b"), 1e10), (("b", "c"), 1e10), (("c", "d"), 1e10),
    )  # fmt: skip
    path = machine.path(0, 3)
    assert path.lanes == ("a to fast", "fast to d")
    assert path.bytes_per_second == 2e9
    assert path.latency_seconds == pytest.approx(2e-6)
    assert machine.path(3, 0).lanes == ("d to fast", "fast to a")
    assert machine.path(0, 2).lanes == ("a to b", "b to c")


def test_messages_take_one_rail_of_a_link():
    document = {
        "machine": "star",
        "devices": ["a", "b", "c"],
        "links": [
            {"between": ["a", "hub"], "bandwidth": "4 GB/s", "rails": 4},
            {"between": ["b", "hub"], "bandwidth": "8 GB/s", "rails": 2},
            {"between": ["c", "hub"], "bandwidth": "3 GB/s"},
        ],
    }
    machine = decode_machine(document)
    assert machine.path(0, 1).lanes == ("a to hub rail 1", "hub to b rail 1")
    assert machine.path(0, 2).lanes == ("a to hub rail 2", "hub to c")
    assert machine.path(0, 1).bytes_per_second == machine.path(2, 0).bytes_per_second == 1e9
    assert machine.path(1, 2).bytes_per_second == 3e9
    document["links"][0]["rails"] = 0
    with pytest.raises(MachineError, match=r"links\[0\].rails is 0"):
        decode_machine(document)


def test_links_may_go_in_circles():
    names = [f"gpu{i}" for i in range(7)]
    torus = graph_of(
        *(((a, b), 1e9) for a, b in zip(names, names[1:] + names[:1], strict=True)), devices=names
    )
    assert torus.path(1, 5).lanes == ("gpu1 to gpu0", "gpu0 to gpu6", "gpu6 to gpu5")
    with pytest.raises(MachineError, match="'graph' lists links instead of levels"):
        torus.fan_out(7)
    assert torus.outermost_groups(3) == ((0,), (1,), (2,))


def test_a_link_for_each_pair_has_no_latency():
    machine = decode_machine({**GOOD, "link_per_pair": True})
    path = machine.path(0, 4)
    assert (path.lanes, path.bytes_per_second, path.latency_seconds) == (("a to e",), 15.75e9, 0.0)


def test_outermost_groups_are_those_of_the_first_level_that_has_several():
    machine = load_machine("pcie-8")
    assert machine.level_names == ("socket", "switch", "gpu")
    assert machine.outermost_groups(8) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert machine.outermost_groups(4) == ((0, 1), (2, 3))
    assert machine.outermost_groups(1) == ((0,),)


def test_workers_may_share_devices():
    machine = decode_machine({**GOOD, "workers": ["c", "c", "a"]})
    assert machine.devices_of(3) == (2, 2, 0)
    assert machine.worker_groups(3) == ((1, 1, 0), (2, 2, 0))
    assert machine.outermost_groups(3) == ((0, 1), (2,))
    with pytest.raises(MachineError, match="places 3 workers on devices, not 4"):
        machine.check_workers(4)
    with pytest.raises(MachineError, match="first 2 workers of machine 'box' share 1 device, so"):
        machine.fan_out(2)


OWN = {"rates": {"float32": "2 TFLOP/s"}, "memory_bandwidth": "90 GB/s", "kernel_start": 0, "memory": "4 GB"}


def test_devices_may_differ_in_kind():
    devices = [["a", {"name": "b", "kind": "own"}], ["c"]]
    machine = decode_machine({**GOOD, "devices": devices, "kind": "v100", "kinds": {"own": OWN}})
    assert [kind.name for kind in machine.kinds] == ["v100", "own", "v100"]
    assert machine.kind(1).rate("float32") == 2e12
    assert machine.kind(1).start_seconds == 0
    assert machine.memory_bytes == 4e9
    assert machine.memory_of(3) == (16e9, 4e9, 16e9)
    assert replace(machine, worker_devices=(0, 1, 0)).memory_of(3) == (8e9, 4e9, 8e9)
    stated = decode_machine(
        {**GOOD, "devices": devices, "kind": "v100", "kinds": {"own": OWN}, "memory": "5 GB"}
    )
    assert stated.memory_of(3) == (5e9,) * 3
    with pytest.raises(MachineError, match=r"'own' has no rate for float16.*it has float32"):
        machine.kind(1).rate("float16")
    with pytest.raises(MachineError, match="'box' does not say how fast its devices are"):
        decode_machine(GOOD).kind(0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "v10"}, "kind is 'v10', which is not a kind of device; did you mean 'v100'"),
        ({"kind": 3}, "kind is '3', which is not a kind"),
        (
            {"devices": [[{"name": "a", "kind": "v100"}, "b"], ["c"]]},
            "device 'b' has no kind, but others have",
        ),
        ({"devices": [[{"name": "a"}]]}, r"devices\[0\]\[0\] lacks 'kind'"),
        ({"kinds": {"own": OWN}}, "kinds has own, but no device has a kind"),
        ({"kinds": []}, r"kinds is \[\]; expected an object"),
        ({"kinds": {"own": {**OWN, "rates": {}}}}, r"kinds.own.rates is \{\}; expected a rate for each"),
        (
            {"kinds": {"own": {**OWN, "rates": {"float32": 0}}}},
            "kinds.own.rates.float32 is 0; it must be positive",
        ),
        (
            {"kinds": {"own": {**OWN, "rates": {"float32": "inf"}}}},
            "rates.float32 is 'inf'; write it with its unit",
        ),
        ({"kinds": {"own": {**OWN, "rates": {"float32": True}}}}, "write a number of operations"),
        (
            {"kinds": {"own": {**OWN, "rates": {"int8": 1}}}},
            "rates has 'int8', which is not a type that graphs",
        ),
        ({"kinds": {"own": {**OWN, "kernel_start": "2 days"}}}, "units are s, ms, us, ns"),
        ({"kinds": {"own": {**OWN, "kernel_start": -1}}}, "kernel_start is -1; it must be positive"),
        ({"kinds": {"own": {**OWN, "kernel_start": False}}}, "write a number of seconds"),
        ({"kinds": {"own": {**OWN, "memory_bandwidth": "9 GB"}}}, "such as 21 GB/s"),
        ({"levels": [{"name": "x", "bandwidth": 1, "latency": "-2 us"}]}, r"levels\[0\].latency is '-2 us'"),
        ({"levels": [{"name": "x", "bandwidth": 1, "rails": 0}]}, "rails is 0; it must be a number from 1"),
        ({"network": {"bandwidths": 1}}, "network lacks 'bandwidth'"),
        ({"link_per_pair": "yes"}, "link_per_pair is yes; it must be true or false"),
        ({"workers": []}, "workers must be a list of 1 to 4096"),
        ({"workers": ["a", "x"]}, r"workers\[1\] is 'x', which is not a device"),
        ({"links": []}, "both 'levels' and 'links'"),
        ({"levels": None}, "levels must be a list"),
    ],
)
def test_mistakes_in_what_devices_do_are_named(change, says):
    with pytest.raises(MachineError, match=says):
        decode_machine({**GOOD, **change})


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ([(("a", "a"), 1)], r"links\[0\].between is \['a', 'a'\]; a link joins two different"),
        ([(("a",), 1)], r"links\[0\].between is \['a'\]; a link joins two"),
        ([(("a", "b", "c"), 1)], "must be a list of 1 to 2"),
        ([(("a", "b"), 0)], r"links\[0\].bandwidth is 0; it must be positive"),
        ([(("a", "b"), 1), (("b", "a"), 1)], r"links\[1\]: 'b' and 'a' have a link already"),
        ([(("a", "b"), 1), (("c", "d"), 1)], "no links join 'a' and 'c'"),
        ([(("a", "b"), 1), (("b", "cc"), 1)], "links join 'cc' to 'b' alone, and it is not a device"),
        ([], "links must be a list of 1 to"),
    ],
)
def test_mistakes_in_links_are_named(links, says):
    with pytest.raises(MachineError, match=says):
        graph_of(*links)


def test_files_need_links():
    with pytest.raises(MachineError, match="neither 'levels' nor 'links'"):
        decode_machine({"machine": "a", "devices": ["a"]})


@pytest.mark.parametrize(("text", "count"), [("2 us", 2e-6), (0, 0.0), ("1.5e-3 s", 1.5e-3), (3, 3.0)])
def test_times(text, count):
    assert seconds(text, "latency") == count


def test_rates():
    assert rate("15.7 TFLOP/s", "rate") == 15.7e12
