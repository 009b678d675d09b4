"""Processes whose workers run on cards, with messages through the memory of the host.

They have the bits of one process on such cards, whatever order the streams advance in, and send the planned
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tofu
from tofu.programs.check_memory import check_memory
from tofu.programs.process_messages import messages_of
from tofu.programs.schedule import schedule

from ..cuda.bench import Bench, over, same, start
from ..cuda.graphs import graph
from ..cuda.guards import fill, intact
from .card_processes import STEPS, HostProcesses, learned_alone


def poison(processes: HostProcesses) -> None:
    """Make all numbers NaN in arenas, and in the memory of the host that messages pass."""
    for machine, engine in zip(processes.machines, processes.engines, strict=True):
        scratch = {(prepared.workspace_bytes, prepared.flags) for prepared in engine._prepared}
        flagged = {nbytes for nbytes, flags in scratch if flags}
        for block in machine.blocks:
            if block.nbytes not in flagged:
                fill(machine, block.worker, block.address, block.nbytes)


@pytest.mark.parametrize(
    ("name", "places", "rendezvous"),
    [
        ("mlp-adam", (0, 1), False),
        ("mlp-adam", (0, 1, 2, 3), True),
        ("residual", (0, 0, 1, 1), True),
        ("residual", (0, 1, 1, 2), False),
        ("lstm", (0, 1), False),
        ("gpt-1-16", (1, 0, 1, 0), True),
    ],
)
def test_processes_have_the_bits_of_one(
    name: str, places: Sequence[int], rendezvous: bool, host: Bench
) -> None:
    partitioned, values = over(graph(name), len(places)), start(graph(name))
    expected = learned_alone(partitioned, values, host)
    processes = HostProcesses(partitioned, places, host, rendezvous)
    poison(processes)
    processes.write(values)
    for _ in range(STEPS):
        processes.run()
        assert sum(engine.fetched_bytes for engine in processes.engines) == partitioned.planned_bytes
    same(processes.read(expected), expected)
    planned = sum(message.nbytes for message in messages_of(partitioned, places))
    assert sum(sum(each.sent_bytes.values()) for each in processes.transports) == STEPS * planned > 0
    assert sum(each.received_bytes for each in processes.transports) == STEPS * planned
    assert all(map(intact, processes.machines))
    assert any(machine.captures for machine in processes.machines), "runs of computations are graphs"
    processes.close()


def test_micro_batches_skip_the_messages_that_learn(host: Bench) -> None:
    made = tofu.models.get("mlp", batch=8).training_graph(accumulate=2)
    partitioned, values = tofu.lower(made, tofu.partition(made, 2, "data-parallel")), start(made)
    with host.executor(partitioned) as executor:
        for name, value in values.items():
            executor.write(name, value)
        executor.run(updates=False)
        executor.run()
        expected = {name: executor.read(name) for name in values}
    processes = HostProcesses(partitioned, (0, 1), host)
    processes.write(values)
    sent = []
    for updates in (False, True):
        for wire in processes.wires:
            wire.begin()
        processes.run(updates)
        crossed = [wire.crossed(updates) for wire in processes.wires]
        sent.append(sum(sum(each.sent.values()) for each in crossed))
        assert sent[-1] == sum(each.received for each in crossed)
        assert sent[-1] == sum(engine.fetched_bytes for engine in processes.engines)
    assert 0 < sent[0] < sent[1] == partitioned.planned_bytes
    same(processes.read(expected), expected)
    processes.close()


def test_memory_and_waits_pass_the_independent_checker(host: Bench) -> None:
    processes = HostProcesses(over(graph("residual"), 4), (0, 1, 1, 2), host)
    for view in processes.views:
        waits = schedule(view.partitioned, view.memory).waits
        check_memory(view.partitioned, view.memory.offsets, view.memory.arena_bytes, waits)
    processes.close()
