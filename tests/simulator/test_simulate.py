"""Time lines of programs: checked without simulating, by hand, and against a clock."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tofu
from tofu.dataflow.graph import Role
from tofu.errors import MachineError, ProgramError, TofuError
from tofu.machines.machine import Machine
from tofu.machines.machine_file import decode_machine
from tofu.programs import plan_memory, schedule
from tofu.programs.program import Compute, PartitionedGraph
from tofu.simulator import check_timeline, simulate
from tofu.simulator.simulate import simulate_times
from tofu.simulator.times import ComputeTimes

from ..partitioner.lowering.assignments import MODELS, network, random_plan
from ..toy_programs import toys
from .random_jobs import settle

__all__ = ["toys"]

SLOW = {
    "rates": {"float32": "1 GFLOP/s", "float64": "1 GFLOP/s"},
    "memory_bandwidth": "1 GB/s",
    "kernel_start": "1 us",
}
"""A byte of memory takes a nanosecond, and so does an operation."""


def machine(devices: int, **changes: Any) -> Machine:
    """Devices that are joined by one level, with links of 0.5 GB/s and a latency of 2 us."""
    document = {
        "machine": "slow",
        "kind": "slow",
        "kinds": {"slow": SLOW},
        "levels": [{"name": "gpu", "bandwidth": "0.5 GB/s", "latency": "2 us"}],
        "devices": [f"gpu{device}" for device in range(devices)],
    }
    return decode_machine({key: value for key, value in {**document, **changes}.items() if value is not None})


def ring(workers: int) -> Machine:
    devices = [f"gpu{worker}" for worker in range(workers)]
    pairs = zip(devices, devices[1:] + devices[:1], strict=True)
    links = [{"between": list(pair), "bandwidth": "0.5 GB/s", "latency": "1 us"} for pair in pairs]
    return machine(workers, levels=None, links=links[:1] if workers == 2 else links)


def shared(workers: int) -> Machine:
    """Two workers on each device."""
    count = (workers + 1) // 2
    return machine(count, workers=[f"gpu{worker // 2}" for worker in range(workers)])


def in_turn(workers: int) -> Machine:
    """One device for two workers, which serves them in turn and takes 3 us to wake."""
    return machine((workers + 1) // 2, kinds={"slow": {**SLOW, "in_turn": True, "wake": "3 us"}})


MACHINES: dict[str, Callable[[int], Machine]] = {
    "levels": machine,
    "ring": ring,
    "pairs": lambda workers: machine(workers, link_per_pair=True),
    "shared": shared,
    "in turn": in_turn,
    "k80": lambda workers: tofu.machines.load("2x-k80-node"),
}

ON_MACHINES = [(name, seed) for at, name in enumerate(MODELS) for seed in range(at % 2, len(MACHINES), 2)]
"""Every model on every second machine, each of which several models are on."""


@pytest.mark.parametrize(("name", "seed"), ON_MACHINES)
def test_random_plans_on_random_machines(name: str, seed: int) -> None:
    workers = 2 + seed % 4
    graph = network(name)
    program = tofu.lower(graph, random_plan(graph, workers, seed))
    on = MACHINES[list(MACHINES)[seed]](workers)
    found = simulate(program, on)
    check_timeline(found)
    assert simulate(program, on).moments == found.moments
    assert found.critical_path_seconds <= found.seconds
    assert found.busiest_lane_seconds <= found.seconds
    assert max(found.compute_seconds, found.transfer_seconds) <= found.seconds
    for each in found.shares:
        parts = each.computing_seconds, each.moving_seconds, each.waiting_seconds
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(found.seconds)
    for path, whole in (
        (found.deciding_path, found.seconds),
        (found.critical_path, found.critical_path_seconds),
    ):
        assert sum(each.computing_seconds + each.moving_seconds for each in path) == pytest.approx(whole)
    waiting = simulate(program, on, schedule(program, plan_memory(program)))
    check_timeline(waiting)
    assert waiting.critical_path_seconds == found.critical_path_seconds


@pytest.mark.parametrize("seed", range(3))
def test_times_do_not_depend_on_the_order_of_visits(seed: int) -> None:
    graph = network("mlp")
    program = tofu.lower(graph, random_plan(graph, 3, seed))
    found = simulate(program, ring(3))
    assert settle(found.work.jobs, random.Random(seed)) == found.moments


def test_lanes_do_one_thing_at_a_time() -> None:
    graph = network("lenet")
    program = tofu.lower(graph, random_plan(graph, 4, 1))
    found = simulate(program, machine(4))
    moved = computed = 0
    for name, spans in found.lanes.items():
        for before, after in pairwise(spans):
            assert before.end_nanoseconds <= after.start_nanoseconds, name
        if name.endswith(" in"):
            moved += sum(span.nbytes for span in spans)
        if name.endswith(" compute"):
            computed += len(spans)
    assert moved == program.planned_bytes
    instructions = [i for each in program.programs for i in each.instructions]
    assert computed == sum(isinstance(instruction, Compute) for instruction in instructions)


def two_workers(toys: Any) -> PartitionedGraph:
    """Worker 0 holds x and makes y of it; worker 1 makes z of y."""
    toy = toys.Toy(2)
    first, second = [(0, 1000), (1000, 1000)], [(0, 0), (0, 1000)]
    x = toy.tensor("x", 1000, Role.DATA, first)
    y = toy.apply(toys.ADD, [x, x], "y", cuts=first)
    z = toy.apply(toys.ADD, [y, y], "z", cuts=second, work=second)
    return toy.lower([z])


TAKEN = ComputeTimes([[30_000], [0, 0, 40_000]], "measured")


def test_a_time_line_by_hand(toys: Any) -> None:
    """Both fetches of y wait for it: 30 us, each starts in 1 us, and moves 8000 bytes in 16 us and 2 us."""
    found = simulate_times(two_workers(toys), machine(2), TAKEN)
    fetch = 1_000 + 2_000 + 16_000
    assert found.nanoseconds == 30_000 + 2 * fetch + 40_000
    assert found.times == "measured"
    assert found.free_transfer_seconds == pytest.approx(70e-6)
    assert found.critical_path_seconds == pytest.approx((30_000 + fetch + 40_000) / 1e9)
    assert [each.waiting_seconds for each in found.shares] == pytest.approx(
        [(2 * fetch + 40_000) / 1e9, 30e-6]
    )
    assert [each.moving_seconds for each in found.shares] == pytest.approx([0, 2 * fetch / 1e9])
    spans = found.lanes["worker 1 transfer"]
    assert [(s.start_nanoseconds, s.end_nanoseconds) for s in spans] == [(30_000, 49_000), (49_000, 68_000)]
    (message, _) = found.lanes["gpu0 out"]
    assert (message.source, message.worker, message.nbytes) == (0, 1, 8000)
    assert found.lanes["gpu1 in"] == found.lanes["gpu0 out"]


def test_devices_that_serve_in_turn_by_hand(toys: Any) -> None:
    """Worker 1 wakes 5 us after y is made, and copies it twice before it computes: nothing overlaps."""
    kind = {**SLOW, "in_turn": True, "wake": "5 us"}
    found = simulate_times(two_workers(toys), machine(2, kinds={"slow": kind}), TAKEN)
    check_timeline(found)
    fetch = 1_000 + 2_000 + 16_000
    assert found.nanoseconds == 30_000 + 5_000 + 2 * fetch + 40_000
    assert "gpu0 out" not in found.lanes
    assert len(found.lanes["gpu1 copies"]) == 2
    measured = replace(TAKEN, nanoseconds=[[30_000], [7_001, 7_001, 40_000]])
    found = simulate_times(two_workers(toys), machine(2, kinds={"slow": kind}), measured)
    check_timeline(found)
    assert found.nanoseconds == 30_000 + 5_000 + 2 * 7_001 + 40_000
    alone = machine(1, kinds={"slow": kind})
    assert alone.devices_of(2) == (0, 0)
    found = simulate_times(two_workers(toys), alone, TAKEN)
    assert found.nanoseconds == 30_000 + 2 * (1_000 + 2 * 8_000) + 40_000


def test_the_checker_knows_devices_that_serve_in_turn(toys: Any) -> None:
    """A time line in which transfers run next to computations is refused."""
    program = tofu.lower(network("mlp"), random_plan(network("mlp"), 2, 1))
    overlapped = simulate(program, shared(2))
    with pytest.raises(ProgramError, match="begins at"):
        check_timeline(replace(overlapped, machine=in_turn(2)))


def test_a_reduction_by_hand(toys: Any) -> None:
    """Both workers compute 10 us; worker 1 gets 8000 bytes, then reads two terms and writes their sum."""
    toy = toys.Toy(2)
    x = toy.tensor("x", 10, Role.DATA)
    total = toy.apply(toys.TOTAL, [x], "total", length=1000, cuts=[(0, 0), (0, 1000)])
    taken = ComputeTimes([[10_000], [10_000, 0]], "measured")
    found = simulate_times(toy.lower([total]), machine(2), taken)
    assert found.nanoseconds == 10_000 + 1_000 + 2_000 + 16_000 + 3 * 8_000


def test_links_of_pairs_have_no_latency(toys: Any) -> None:
    found = simulate_times(two_workers(toys), machine(2, link_per_pair=True), TAKEN)
    assert found.nanoseconds == 30_000 + 2 * (1_000 + 16_000) + 40_000
    assert len(found.lanes["gpu0 to gpu1"]) == 2


def test_messages_on_one_device_pass_through_its_memory(toys: Any) -> None:
    found = simulate_times(two_workers(toys), shared(2), TAKEN)
    assert found.nanoseconds == 30_000 + 2 * (1_000 + 2 * 8_000) + 40_000
    assert [span.worker for span in found.lanes["gpu0 compute"]] == [0, 1]
    assert len(found.lanes) == 5


def test_workers_of_one_device_compute_in_turn() -> None:
    graph = network("mlp")
    program = tofu.lower(graph, tofu.partition(graph, 4))
    alone, shared_by_two = simulate(program, machine(4)), simulate(program, shared(4))
    assert shared_by_two.busiest_lane_seconds == pytest.approx(2 * alone.compute_seconds, rel=0.01)
    assert shared_by_two.seconds > alone.compute_seconds


def test_latency_counts_once_for_each_link_of_a_graph(toys: Any) -> None:
    links = [
        {"between": ["gpu0", "switch"], "bandwidth": "0.5 GB/s", "latency": "1 us"},
        {"between": ["switch", "gpu1"], "bandwidth": "1 GB/s", "latency": "3 us"},
    ]
    found = simulate_times(two_workers(toys), machine(2, levels=None, links=links), TAKEN)
    assert found.nanoseconds == 30_000 + 2 * (1_000 + 4_000 + 16_000) + 40_000
    assert len(found.lanes["gpu0 to switch"]) == len(found.lanes["switch to gpu1"]) == 2


def test_estimates_follow_from_the_analysis() -> None:
    """A product multiplies 2 * 3 * 5 times, and adds as often. Memory bounds the time of the others."""
    data = tofu.sym.Variable("data")
    net = tofu.sym.FullyConnected(data, num_hidden=3, no_bias=True, name="fc")
    graph = tofu.inference_graph(tofu.sym.relu(net, name="relu"), {"data": (2, 5)})
    program = tofu.lower(graph, tofu.partition(graph, 1))
    fast = {**SLOW, "memory_bandwidth": "1 TB/s"}
    found = simulate(program, machine(1, kinds={"slow": fast}))
    product, relu = found.lanes["worker 0 compute"]
    assert product.end_nanoseconds - product.start_nanoseconds == 1_000 + 2 * 2 * 3 * 5
    memory = simulate(program, machine(1)).lanes["worker 0 compute"]
    assert memory[0].end_nanoseconds == 1_000 + 4 * (2 * 5 + 3 * 5 + 2 * 3)
    assert memory[1].end_nanoseconds - memory[1].start_nanoseconds == 1_000 + 2 * 4 * 2 * 3
    assert found.times == "estimated"
    assert relu.operation == "relu"


def test_types_have_their_own_rates_and_sizes() -> None:
    model = tofu.models.get("mlp", batch=64)
    seconds = {}
    for dtype in ("float32", "bfloat16"):
        graph = model.training_graph(dtype=dtype)
        seconds[dtype] = simulate(tofu.lower(graph, tofu.partition(graph, 2)), "dgx-a100").compute_seconds
    assert seconds["bfloat16"] != seconds["float32"]
    with pytest.raises(MachineError, match=r"'k80' has no rate for bfloat16.*it has float32, float64; add"):
        simulate(tofu.lower(graph, tofu.partition(graph, 2)), "p2.8xlarge")


def test_machines_that_cannot_be_simulated() -> None:
    graph = network("mlp")
    program = tofu.lower(graph, tofu.partition(graph, 4))
    with pytest.raises(MachineError, match=r"'slow' does not say how fast its devices are.*kind: v100"):
        simulate(program, machine(4, kind=None, kinds=None))
    with pytest.raises(MachineError, match="4 workers need 4 devices, but machine 'slow' has 2"):
        simulate(program, machine(2))
    with pytest.raises(MachineError, match="did you mean 'dgx-h100'"):
        simulate(program, "dgx-h10")


def test_faster_devices_take_less_time() -> None:
    graph = tofu.models.get("mlp", batch=8192).training_graph()
    program = tofu.lower(graph, tofu.partition(graph, 8))
    machines = ("p2.8xlarge", "pcie-8", "dgx-1-v100", "dgx-a100", "dgx-h100")
    seconds = [simulate(program, name).compute_seconds for name in machines]
    assert seconds == sorted(seconds, reverse=True)
    assert len(set(seconds)) == len(machines)


def test_the_checker_finds_what_the_programs_forbid(toys: Any) -> None:
    found = simulate_times(two_workers(toys), machine(2), TAKEN)
    jobs = found.work.jobs
    early = replace(jobs, needs=jobs.needs[jobs.needs[:, 0] > 0])
    with pytest.raises(
        ProgramError, match=r"'make_z', instruction 0 of worker 1: begins at 0 ns, but .* 30000 ns"
    ):
        check_timeline(found._of(early))
    short = replace(found, work=replace(found.work, nbytes=[8000, 7999]))
    with pytest.raises(ProgramError, match="2 messages carry 15999 bytes, but the plan moves 16000"):
        check_timeline(short)


def test_traces_are_read_by_others(tmp_path: Path, toys: Any) -> None:
    found = simulate_times(two_workers(toys), machine(2), TAKEN)
    found.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"worker 0", "worker 1", "devices and links", "worker 1 transfer", "gpu1 in"} <= names
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == sum(map(len, found.lanes.values()))
    assert max(span["ts"] + span["dur"] for span in spans) == pytest.approx(found.seconds * 1e6)
    with pytest.raises(TofuError, match="missing"):
        found.save_trace(tmp_path / "missing" / "trace.json")


def test_time_lines_print_in_a_line(toys: Any) -> None:
    assert repr(simulate_times(two_workers(toys), machine(2), TAKEN)) == (
        "<toy on 2 workers of slow: 0.108 ms, measured>"
    )


SLEEP_SECONDS = 0.03


@pytest.mark.slow
def test_sleeping_kernels_take_as_long_as_simulated(toys: Any) -> None:
    """Four workers compute at once, or one after the other, as data crosses between them."""

    def sleep(call: Any) -> Callable[[], None]:
        def step() -> None:
            time.sleep(SLEEP_SECONDS)
            call.outputs[0][...] = 1

        return step

    slow = toys.FakeBound(toys.FakeDescription(("a",), "slow"), ("i",), frozenset(), sleep)
    toy = toys.Toy(4)
    draw = random.Random(3)
    tensors = [toy.tensor("x", 8, Role.DATA)]
    for number in range(10):
        worker = draw.randrange(4)
        one = [(0, 8 if each == worker else 0) for each in range(4)]
        tensors.append(
            toy.apply(slow, [draw.choice(tensors[-3:])], f"y{number}", cuts=one if number % 3 else None)
        )
    program = toy.lower(tensors[-1:])
    waits = schedule(program, plan_memory(program))
    nanoseconds = [
        [round(SLEEP_SECONDS * 1e9) * isinstance(each, Compute) for each in own.instructions]
        for own in program.programs
    ]
    expected = simulate_times(program, machine(4), ComputeTimes(nanoseconds, "measured"), waits).seconds
    assert 4 * SLEEP_SECONDS < expected < 20 * SLEEP_SECONDS
    taken = []
    with tofu.Executor(program, threads=8) as executor:
        while len(taken) < 10 and min(taken, default=expected * 2) > expected * 1.05:
            begin = time.perf_counter()
            executor.run()
            taken.append(time.perf_counter() - begin)
    assert min(taken) == pytest.approx(expected, rel=0.05)


def test_plans_know_their_time_on_a_machine() -> None:
    graph = network("mlp")
    for objective in ("bytes", "time"):
        plan = tofu.partition(graph, 4, machine="pcie-8", objective=objective)
        assert plan.step_seconds == simulate(tofu.lower(graph, plan), "pcie-8").seconds
    bare = machine(4, kind=None, kinds=None)
    assert tofu.partition(graph, 4, machine=bare).step_seconds is None
    assert tofu.partition(graph, 4).step_seconds is None
    with pytest.raises(MachineError, match="4 workers need 4 devices"):
        tofu.partition(graph, 4, machine=machine(2))
