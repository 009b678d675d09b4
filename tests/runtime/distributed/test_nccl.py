"""Messages from card to card, on a stand-in that refuses what NCCL refuses."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import networkx
import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import CardMessage, Exchange
from tofu.programs.process_messages import messages_of
from tofu.programs.program import Lane
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.distributed import nccl
from tofu.runtime.distributed.nccl import Nccl, require_own_cards
from tofu.runtime.distributed.transport import LinkLost
from tofu.runtime.thread_tasks import Place

from ..cuda.bench import Bench, over, same, start
from ..cuda.graphs import graph
from ..cuda.guards import fill, intact
from ..cuda.host_machine import Compiled
from ..cuda.stand_in import StandIn
from . import card_processes
from .card_processes import STEPS, NcclProcesses, learned_alone
from .in_memory import together
from .nccl_stand_in import FLOAT32, Hang, NcclError, World

TOGETHER = (0, 1)
FLAGS_BYTES = 64
"""More than the flags of these programs take."""


@pytest.fixture
def kernels(host: Bench) -> Compiled:
    found: Compiled = host.new_machine(1).kernels
    return found


@pytest.mark.parametrize(
    ("name", "places", "eager"),
    [
        ("mlp-adam", (0, 1), False),
        ("mlp-adam", (0, 1, 2, 3), False),
        ("residual", (0, 0, 1, 1), False),
        ("residual", (0, 1, 1, 2), True),
        ("lstm", (0, 1), False),
        ("gpt-1-16", (1, 0, 1, 0), False),
    ],
)
def test_processes_have_the_bits_of_one(
    name: str,
    places: Sequence[int],
    eager: bool,
    host: Bench,
    kernels: Compiled,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first iteration is issued, and each later one is a graph, which holds the messages."""
    partitioned, values = over(graph(name), len(places)), start(graph(name))
    expected = learned_alone(partitioned, values, host)
    processes = NcclProcesses(partitioned, places, kernels, monkeypatch, eager=eager)
    processes.write(values)
    for _ in range(STEPS):
        processes.run()
        assert sum(engine.fetched_bytes for engine in processes.engines) == partitioned.planned_bytes
    same(processes.read(expected), expected)
    planned = sum(message.nbytes for message in messages_of(partitioned, places))
    crossed = [wire.crossed(True) for wire in processes.wires]
    assert sum(each.received for each in crossed) == planned > 0
    assert sum(sum(each.sent.values()) for each in crossed) == planned
    assert sum(processes.world.moved.values()) == STEPS * planned
    for cuda in processes.cudas:
        assert intact(cuda.host)
        captured = [name for name, _ in cuda.calls if name.startswith("begin_capture")]
        assert len(captured) == (0 if eager else 1)
    processes.close()


def test_micro_batches_skip_the_messages_that_learn(
    host: Bench, kernels: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tofu.models.get("mlp", batch=8).training_graph(accumulate=2)
    partitioned, values = tofu.lower(made, tofu.partition(made, 2, "data-parallel")), start(made)
    processes = NcclProcesses(partitioned, TOGETHER, kernels, monkeypatch)
    processes.write(values)
    moved = []
    for updates in (False, True, False, True):
        before = sum(processes.world.moved.values())
        processes.run(updates)
        moved.append(sum(processes.world.moved.values()) - before)
        assert sum(engine.fetched_bytes for engine in processes.engines) == moved[-1]
        assert sum(wire.crossed(updates).received for wire in processes.wires) == moved[-1]
    assert moved[:2] == moved[2:]
    assert 0 < moved[0] < moved[1] == partitioned.planned_bytes
    with host.executor(partitioned) as executor:
        for name, value in values.items():
            executor.write(name, value)
        for updates in (False, True, False, True):
            executor.run(updates)
        expected = {name: executor.read(name) for name in values}
    same(processes.read(expected), expected)
    processes.close()


@pytest.fixture
def pair(kernels: Compiled, monkeypatch: pytest.MonkeyPatch) -> NcclProcesses:
    """Two processes that train a small model, where a hang is noticed soon."""
    partitioned = over(graph("mlp-adam"), 2)
    processes = NcclProcesses(
        partitioned, TOGETHER, kernels, monkeypatch, World(hang_seconds=1.0), eager=True
    )
    processes.write(start(graph("mlp-adam")))
    return processes


def messages_between(engine: CudaEngine) -> list[int]:
    """Return the groups of an engine that exchange messages."""
    return [number for number, group in enumerate(engine._groups) if engine._is_message(group[0])]


def test_the_stand_in_sees_groups_in_another_order(pair: NcclProcesses) -> None:
    groups = pair.engines[1]._groups
    first, *_, last = messages_between(pair.engines[1])
    groups[first], groups[last] = groups[last], groups[first]
    with pytest.raises((Hang, ExecutionError, KeyError)):
        pair.run()


def test_the_stand_in_sees_a_message_that_is_left_out(pair: NcclProcesses) -> None:
    del pair.engines[1]._groups[messages_between(pair.engines[1])[0]]
    with pytest.raises((Hang, ExecutionError, KeyError)):
        pair.run()


def test_the_stand_in_sees_other_sizes(pair: NcclProcesses) -> None:
    stand_in = pair.wires[1].first
    commands = pair.engines[1]._prepared[stand_in].commands
    index, *packs, exchange = next((i, *each) for i, each in enumerate(commands) if each)
    shorter = [replace(each, nbytes=each.nbytes - 4) for each in (*exchange.sent, *exchange.received)]
    sends = bool(exchange.sent)
    commands[index] = (*packs, Exchange(tuple(shorter) if sends else (), () if sends else tuple(shorter)))

    def error_of(engine: CudaEngine) -> str:
        """Return the error with which a process ends; another one may wait for ever."""
        with pytest.raises((NcclError, ExecutionError, Hang)) as raised:
            engine.run()
        return str(raised.value)

    errors = together([partial(error_of, engine) for engine in pair.engines])
    assert re.search(r"sent, \d+ received|is never|lost", "\n".join(errors))


def test_any_wait_of_a_message_that_is_left_out_is_seen(
    host: Bench, kernels: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those that follow from the order of streams, which has all messages in one."""
    partitioned, values = over(graph("mlp-adam"), 2), start(graph("mlp-adam"))
    expected = learned_alone(partitioned, values, host, steps=1)
    processes = NcclProcesses(partitioned, TOGETHER, kernels, monkeypatch, eager=True)
    engine, cuda = processes.engines[0], processes.cudas[0]
    waits = [list(own) for own in engine._schedule.waits]
    edges = needed_waits(engine)
    engine._schedule = replace(engine._schedule, waits=waits)  # type: ignore[arg-type]
    for (worker, index), wait in edges:
        kept = waits[worker][index]
        waits[worker][index] = tuple(each for each in kept if each != wait)
        cuda.host.ahead = stream_of(engine, cuda, (worker, index))
        cuda.host.behind = stream_of(engine, cuda, wait)
        poison(cuda)
        processes.write(values)
        processes.run()
        with pytest.raises(AssertionError):
            same(processes.read(expected), expected)
        waits[worker][index] = kept
    cuda.host.ahead = cuda.host.behind = None
    processes.write(values)
    processes.run()
    same(processes.read(expected), expected)
    assert len(edges) >= 10


def needed_waits(engine: CudaEngine) -> list[tuple[Place, Place]]:
    """List the waits of messages, and for messages, that do not follow from streams and other waits."""
    before = networkx.DiGraph()
    last: dict[tuple[int, Lane], Place] = {}
    waits = []
    for place in engine._order:
        stream = (engine._seats.number(place[0]), engine._lane(place))
        if stream in last:
            before.add_edge(last[stream], place)
        last[stream] = place
        waits += [(place, wait) for wait in engine._schedule.waits[place[0]][place[1]]]
    before.add_edges_from((wait, place) for place, wait in waits)
    needed = []
    for place, wait in waits:
        if engine._is_message(place) or engine._is_message(wait):
            before.remove_edge(wait, place)
            if not networkx.has_path(before, wait, place):
                needed.append((place, wait))
            before.add_edge(wait, place)
    return needed


def stream_of(engine: CudaEngine, cuda: StandIn, place: tuple[int, int]) -> int:
    """Return the number of the stream of an instruction, as the stand-in counts them."""
    seat, lane = engine._seats.number(place[0]), engine._lane(place)
    machine = engine._machine
    return len(Lane) * machine._streams[seat][lane].number  # type: ignore[attr-defined, no-any-return]


def poison(cuda: StandIn) -> None:
    """Make all numbers in the memory of a process's cards NaN, but for flags."""
    for block in cuda.host.blocks:
        if block.nbytes > FLAGS_BYTES:
            fill(cuda.host, 0, block.address, block.nbytes)


def test_a_lost_process_ends_what_waits_for_it(pair: NcclProcesses) -> None:
    """The other engine waits in an exchange, until the control connections say who was lost."""

    def lose() -> None:
        time.sleep(0.2)
        pair.links[0].abort()
        pair.links[0].abort()

    threading.Thread(target=lose).start()
    with pytest.raises(ExecutionError, match=r"the run has ended") as caught:
        pair.engines[0].run()
    assert isinstance(caught.value.__cause__, LinkLost)
    assert pair.engines[0].failed
    pair.engines[0].close()


def test_streams_that_never_end_do_not_hold_up_the_message(pair: NcclProcesses) -> None:
    """Aborting may not end what waits on the card; its memory is then not freed."""
    together([lambda engine=engine: engine.run() for engine in pair.engines])  # type: ignore[misc]
    pair.cudas[0].endless = {stream.number for stream in pair.cudas[0].streams}
    threading.Timer(0.2, pair.links[0].abort).start()
    with pytest.raises(ExecutionError, match="the run has ended"):
        pair.engines[0]._machine.synchronize()
    used = list(pair.cudas[0].used)
    pair.engines[0].close()
    assert pair.cudas[0].used == used


def test_nothing_uses_a_communicator_after_its_end(pair: NcclProcesses) -> None:
    message = Exchange((CardMessage(1, 4096, 8),), ())
    for link in pair.links:
        link.check()
    together([link.close for link in pair.links])
    with pytest.raises(ExecutionError, match="not connected by NCCL"):
        pair.links[0].exchange(message, 1)
    pair.links[1].abort()
    with pytest.raises(LinkLost, match="the run has ended"):
        pair.links[1].check()


def test_the_stand_in_refuses_calls_after_an_abort(pair: NcclProcesses) -> None:
    communicator = pair.links[0]._communicator
    communicator.abort()
    with pytest.raises(NcclError, match="was aborted"):
        communicator.send(4096, 8, FLOAT32, 1, 1)
    with pytest.raises(LinkLost, match="NCCL: ncclInvalidArgument"):
        pair.links[0].check()


def test_a_card_that_two_processes_have_is_named() -> None:
    names = ("process 0 (worker 0 on a)", "process 1 (worker 1 on a)", "process 2 (worker 2 on b)")
    require_own_cards(["0000:17:00.0 of a", "0000:65:00.0 of a", "0000:17:00.0 of b"], names)
    with pytest.raises(ExecutionError, match=r"process 0 .* and process 1 .* have the same card, 0000:17"):
        require_own_cards(["0000:17:00.0 of a", "0000:17:00.0 of a", "0000:17:00.0 of b"], names)


def test_the_stand_in_refuses_one_card_twice(kernels: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_processes, "BUS_STEP", 0)
    partitioned = over(graph("mlp-adam"), 2)
    with pytest.raises(ExecutionError, match=r"NCCL cannot connect the processes: .*Duplicate GPU"):
        NcclProcesses(partitioned, TOGETHER, kernels, monkeypatch, World(hang_seconds=1.0))


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (SimpleNamespace(), "needs NCCL, which CuPy does not find: pip install"),
        (SimpleNamespace(NcclCommunicator=None, get_version=lambda: 21805), "NCCL has version 21805, but"),
    ],
)
def test_a_library_that_is_missing_or_too_old(
    module: SimpleNamespace, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nccl, "library", lambda name, purpose: module)
    with pytest.raises(ExecutionError, match=said):
        Nccl(0, 2, 0)


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_package_is_named() -> None:
    with pytest.raises(ExecutionError, match=r"nccl needs cupy.cuda.nccl, which is not installed"):
        Nccl(0, 2, 0)
