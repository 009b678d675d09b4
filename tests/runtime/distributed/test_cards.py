"""Processes on cards as users have them, but for a stand-in for CuPy: over sockets and gloo, and losses."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.partitioner.costs.traffic import worker_bytes
from tofu.programs.program import PartitionedGraph
from tofu.runtime.distributed import processes as distributed_processes
from tofu.runtime.distributed.processes import Processes
from tofu.runtime.distributed.rendezvous import meeting
from tofu.runtime.executor import Executor

from ...operators.cuda.machine import host_compiler
from ..cuda.bench import Arrays, Bench, learned, over, same, start
from ..cuda.graphs import graph
from ..cuda.stand_in import StandIn, installed
from .card_processes import learned_alone
from .forked import forked, results
from .test_losses import KILLED_SECONDS, training

STEPS = 3


@pytest.fixture
def cuda(host: Bench, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Cards for every process that is forked from now on: they have the same, as on one machine."""
    return installed(StandIn(host.new_machine(1).kernels, cards=2), monkeypatch)


def card_work(partitioned: PartitionedGraph, values: Arrays) -> Callable[[Processes], Any]:
    """Return a run that checks what it sends, and says what it learned and which cards it had."""

    def work(processes: Processes) -> tuple[Arrays, tuple[int, ...]]:
        with Executor(partitioned, make_engine=processes.engine()) as executor:
            found = learned(executor, values, STEPS)
            assert executor.fetched_bytes == partitioned.planned_bytes
            count, places = processes.count, np.array(processes.places)
            sent = np.zeros((count, count), np.int64)
            np.add.at(sent, (places[:, None], places), worker_bytes(partitioned))
            assert np.array_equal(executor.process_bytes, sent)
        return found, processes.cards

    return work


@pytest.mark.parametrize(
    ("name", "workers", "count", "transport"),
    [
        ("mlp-adam", 2, 2, "tcp"),
        ("residual", 4, 2, "tcp"),
        ("mlp-adam", 3, 3, "tcp"),
        pytest.param("residual", 2, 2, "gloo", marks=pytest.mark.torch),
    ],
)
def test_they_have_the_bits_of_one_process(
    name: str, workers: int, count: int, transport: str, cuda: StandIn, host: Bench
) -> None:
    if transport == "gloo":
        pytest.importorskip("torch")
    partitioned, values = over(graph(name), workers), start(graph(name))
    expected = learned_alone(partitioned, values, host)
    each = workers // count
    work = card_work(partitioned, values)
    told = results(count, work, workers_each=each, device="gpu", transport=transport)
    for number, said in enumerate(told):
        assert not isinstance(said, str), said
        found, cards = said
        same(found, expected)
        shared = [worker * min(2, workers) // workers for worker in range(workers)]
        assert list(cards) == shared[number * each : (number + 1) * each]


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_process_is_named(victim: int, cuda: StandIn, host: Bench) -> None:
    partitioned = over(tofu.models.get("mlp", batch=12).training_graph(), 4)
    with host.executor(partitioned) as executor:  # compiles the kernels for all
        executor.run()
    with forked(4, training(partitioned), device="gpu") as running:
        for number in range(4):
            assert running.said(number) == "begun"
        time.sleep(0.1)
        os.kill(running.pid(victim), signal.SIGKILL)
        assert running.ended(20) < KILLED_SECONDS
        for number in set(range(4)) - {victim}:
            said = running.said(number)
            assert said.startswith("ExecutionError")
            assert f"process {victim} (worker {victim} on " in said, said
            assert "was lost" in said


def test_a_stopped_process_is_named(cuda: StandIn, host: Bench) -> None:
    partitioned = over(tofu.models.get("mlp", batch=12).training_graph(), 2)
    with host.executor(partitioned) as executor:
        executor.run()
    with forked(2, training(partitioned), device="gpu", timeout_seconds=1.5) as running:
        for number in range(2):
            assert running.said(number) == "begun"
        os.kill(running.pid(1), signal.SIGSTOP)
        said = running.said(0)
        assert "process 1 (" in said, said
        assert "has sent nothing for" in said


def test_cards_of_another_kind_are_named_before_the_first_step(
    cuda: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.names = ("NVIDIA H100 80GB HBM3", "NVIDIA L4")
    for said in results(2, lambda processes: "met", device="gpu"):
        assert "differ in the kind of card: NVIDIA H100 80GB HBM3 and NVIDIA L4" in said


def test_a_module_trains_on_them(cuda: StandIn) -> None:
    """Checkpoints and plans are those of one process on the processor."""
    host_compiler()

    def work(processes: Processes) -> dict[str, np.ndarray[Any, Any]]:
        net = tofu.models.get("mlp", batch=12).symbol
        random = np.random.default_rng(0)
        data = tofu.ArrayIterator(
            random.standard_normal((24, 784)).astype("float32"), random.integers(0, 10, 24), 12
        )
        with tofu.Module(net, processes, seed=3) as module:
            module.fit(data, num_epoch=2)
            return module.parameters()

    first, second = results(2, work, device="gpu", patience_seconds=120)
    assert not isinstance(first, str), first
    same(first, second)
    alone = tofu.Module(tofu.models.get("mlp", batch=12).symbol, [tofu.cpu(0)] * 2, seed=3)
    random = np.random.default_rng(0)
    data = tofu.ArrayIterator(
        random.standard_normal((24, 784)).astype("float32"), random.integers(0, 10, 24), 12
    )
    with alone:
        alone.fit(data, num_epoch=2)
        for name, value in alone.parameters().items():
            np.testing.assert_allclose(first[name], value, 2e-4, 2e-5)


def test_nccl_needs_cards() -> None:
    with pytest.raises(ExecutionError, match=r"nccl moves messages between cards; give device='gpu'"):
        tofu.distributed(transport="nccl")
    with pytest.raises(ExecutionError, match=r"device .*one of cpu, gpu"):
        tofu.distributed(device="tpu")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({"RANK": "5"}, 1), ({"RANK": "5", "LOCAL_RANK": "0"}, 0), ({"RANK": "2", "LOCAL_RANK": "3"}, 3)],
)
def test_the_number_on_this_machine(variables: dict[str, str], expected: int) -> None:
    environment = {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"}
    environment |= {"MASTER_PORT": "29400", "TOFU_TOKEN": "secret", **variables}
    assert meeting(environment).local_number == expected


def test_a_number_beyond_those_of_this_machine_is_refused() -> None:
    environment = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "4"}
    with pytest.raises(ExecutionError, match="LOCAL_RANK is 4, but LOCAL_WORLD_SIZE is 4"):
        meeting(environment | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TOFU_TOKEN": "secret"})


def test_without_cards_the_reason_is_said(cuda: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda.broken["getDeviceCount"] = 100
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "0")
    monkeypatch.setenv("TOFU_TOKEN", "secret")
    with pytest.raises(ExecutionError, match="no card was found on this machine"):
        distributed_processes.distributed(device="gpu")
