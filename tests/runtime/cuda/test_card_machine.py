"""The cards that tests run on, themselves tested on the stand-in for CuPy."""

from __future__ import annotations

import pytest

from tofu.errors import ExecutionError

from .bench import Bench, learned, over, same, start
from .card_machine import CardMachine
from .graphs import graph
from .guards import GUARD, bands, fill, intact
from .stand_in import StandIn, installed


@pytest.fixture
def cuda(host: Bench, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return installed(StandIn(host.new_machine(1).kernels), monkeypatch)


def test_an_engine_runs_on_them_late_or_not(cuda: StandIn, host: Bench) -> None:
    partitioned, values = over(graph("residual"), 4), start(graph("residual"))
    with host.executor(partitioned) as executor:
        expected = learned(executor, values)
    bench = Bench("cards", CardMachine)
    for options in ({}, {"seed": 1}, {"islands": (0, 0, 1, 1)}):
        cuda.calls.clear()
        with bench.executor(partitioned, **options) as executor:
            bench.poison()
            same(learned(executor, values), expected)
            assert intact(bench.machine)
        assert bench.machine.captures == 1
        spins = sum(name == "tofu_spin" for name, _ in cuda.calls)
        assert spins > 20 if "seed" in options else spins == 4


def test_what_is_written_beside_memory_is_seen(cuda: StandIn) -> None:
    machine = CardMachine(3)
    machine.allocate(0, 100)
    machine.allocate(2, 0)
    assert intact(machine)
    for block in machine.blocks:
        for place in (block.address - 1, block.address + block.nbytes):
            fill(machine, block.worker, place, 1)
            assert not intact(machine)
            fill(machine, block.worker, place, 1, GUARD)
    assert intact(machine)
    assert len({start for block in machine.blocks for start in bands(block)}) == 4


def test_little_memory_can_be_feigned(cuda: StandIn) -> None:
    with pytest.raises(ExecutionError, match="the card has 9 bytes, 10 are needed"):
        CardMachine(2, limit_bytes=9).require([5, 5])
