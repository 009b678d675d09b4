"""The machine of real cards, driven on a stand-in for CuPy that is as strict as CUDA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import MemoryCopy
from tofu.programs.schedule import schedule
from tofu.runtime.cuda import cupy_machine
from tofu.runtime.cuda.cupy_machine import CupyMachine
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.executor import Executor

from .bench import Arrays, Bench, learned, over, same, start
from .graphs import graph
from .stand_in import StandIn, installed


@pytest.fixture
def cuda(host: Bench, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return installed(StandIn(host.new_machine(1).kernels), monkeypatch)


def trained(cards: list[int], **machine: Any) -> Arrays:
    """Return what the residual network learns on workers of these cards."""
    partitioned = over(graph("residual"), len(cards))

    def make(partitioned: Any, memory: Any, watch: Any) -> CudaEngine:
        plan = schedule(partitioned, memory)
        return CudaEngine(partitioned, memory, plan, CupyMachine(cards, **machine), watch=watch)

    with Executor(partitioned, make_engine=make) as executor:
        return learned(executor, start(graph("residual")))


def expected(host: Bench) -> Arrays:
    with host.executor(over(graph("residual"), 4)) as executor:
        return learned(executor, start(graph("residual")))


def test_an_engine_learns_on_two_cards(cuda: StandIn, host: Bench) -> None:
    """Every call finds its stream's card current, and the streams of a capture are forked and joined."""
    same(trained([0, 0, 1, 1]), expected(host))
    kinds = Counter(name for name, _ in cuda.calls)
    assert kinds["begin_capture thread local"] == kinds["end_capture"] == 1
    assert kinds["graphLaunch"] == 2
    assert kinds["timed Event"] == 0
    assert cuda.device == 0
    assert cuda.used == [0, 0]
    assert sorted(cuda.closed) == ["cublas"] * 4 + ["cudnn"] * 4


@pytest.mark.parametrize("forgotten", ["device", "fork", "join"])
def test_the_stand_in_sees_what_is_forgotten(
    forgotten: str, cuda: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"device": "_current", "fork": "_fork", "join": "_join"}[forgotten]
    monkeypatch.setattr(CupyMachine, name, lambda self, worker=0: nullcontext())
    with pytest.raises(ExecutionError, match=r"invalid resource handle|capturing stream|uncaptured work"):
        trained([0, 0, 1, 1])


def test_what_is_written_and_allocated_is_there_when_the_call_returns(cuda: StandIn) -> None:
    """Streams do not wait for CUDA's default one, so a copy there could come too late."""
    machine = CupyMachine([0, 1])
    blocks = [machine.allocate(worker, 64) for worker in range(2)]
    machine.write(0, blocks[0], np.arange(64, dtype=np.uint8))
    machine.issue(1, MemoryCopy(blocks[1], blocks[0], 32))
    machine.synchronize()
    assert machine.read(1, blocks[1], 64).tolist() == [*range(32), *[0] * 32]
    names = [name for name, _ in cuda.calls]
    for number, name in enumerate(names):
        if name in ("memcpyAsync", "memsetAsync") and number < len(names) - 1:
            assert names[number + 1] in ("streamSynchronize", "streamQuery")


def test_access_is_enabled_once_for_each_pair(cuda: StandIn) -> None:
    for _ in range(2):  # the second machine of a process finds it enabled
        machine = CupyMachine([0, 1, 1])
        assert all(machine.reaches(i, j) for i in range(3) for j in range(3))
    assert sorted(cuda.enabled) == [(0, 1), (1, 0)]


def test_without_access_workers_reach_those_of_their_own_card(cuda: StandIn) -> None:
    cuda.access = False
    machine = CupyMachine([0, 1, 1])
    assert [[machine.reaches(i, j) for j in range(3)] for i in range(3)] == [
        [True, False, False],
        [False, True, True],
        [False, True, True],
    ]
    assert cuda.enabled == []


def test_another_error_in_enabling_access_is_one(cuda: StandIn) -> None:
    cuda.broken["deviceEnablePeerAccess"] = 700
    with pytest.raises(ExecutionError, match=r"^CUDA: cudaErrorIllegalAddress"):
        CupyMachine([0, 1])


@pytest.mark.parametrize(("card", "cards"), [(2, "2 cards"), (-1, "2 cards"), (5, "1 card;")])
def test_a_card_that_is_not_there(card: int, cards: str, cuda: StandIn) -> None:
    cuda.cards = int(cards[0])
    with pytest.raises(ExecutionError, match=rf"gpu\({card}\) was requested, but this machine has {cards}"):
        CupyMachine([0, card])


def test_a_machine_without_cards(cuda: StandIn) -> None:
    cuda.broken["getDeviceCount"] = 100
    with pytest.raises(ExecutionError, match="CUDA: cudaErrorNoDevice"):
        CupyMachine([0])


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ExecutionError, match=r"a GPU needs cupy, .*pip install '\.\[gpu-cuda13\]'"):
        CupyMachine([0])


def test_what_cannot_be_allocated_names_worker_card_and_bytes(cuda: StandIn) -> None:
    machine = CupyMachine([0, 1])
    machine.allocate(1, 1 << 20)
    with pytest.raises(ExecutionError, match=r"worker 1: 68,719,476,736 bytes of gpu\(1\): CUDA: .*out of"):
        machine.allocate(1, 1 << 36)


def test_too_little_memory_is_refused_before_anything_is_allocated(cuda: StandIn) -> None:
    machine = CupyMachine([0, 1, 1])
    machine.require([cuda.capacity, 10, 10])
    with pytest.raises(ExecutionError, match=r"gpu\(1\) has .* but the arenas of worker 1, worker 2 take"):
        machine.require([0, cuda.capacity, 1])
    assert cuda.used == [0, 0]


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ("launchKernel", 700, r"worker \d, operation .*: CUDA: cudaErrorIllegalAddress"),
        ("cublasGemm", 700, r"worker \d, operation .*: CUDA: cudaErrorIllegalAddress"),
        ("graphLaunch", 700, r"CUDA: cudaErrorIllegalAddress.*, iteration 1"),
        ("streamQuery", 700, r"CUDA: cudaErrorIllegalAddress.*, iteration 0"),
    ],
)
def test_errors_of_cuda_say_where(call: str, status: int, message: str, cuda: StandIn) -> None:
    cuda.broken[call] = status
    with pytest.raises(ExecutionError, match=message):
        trained([0, 1])


def test_an_error_within_a_capture_is_the_one_that_is_said(cuda: StandIn) -> None:
    """The capture is incomplete then, as expected, and it is ended."""
    machine = CupyMachine([0, 1])

    def fails() -> None:
        raise ExecutionError("worker 1: no such luck")

    with pytest.raises(ExecutionError, match="no such luck"):
        machine.captured(fails)
    assert cuda.capturing is None
    machine.captured(lambda: None)


def test_a_source_that_does_not_compile_is_an_error(cuda: StandIn) -> None:
    cuda.broken["compile"] = 700
    with pytest.raises(ExecutionError, match=r"^CUDA: "):
        trained([0, 1])


def test_each_source_is_compiled_once(cuda: StandIn) -> None:
    trained([0, 1])
    one = Counter(name for name, _ in cuda.calls)["compile"]
    cuda.calls.clear()
    trained([0, 0, 1, 1])
    assert Counter(name for name, _ in cuda.calls)["compile"] <= one


class Clock:
    """Time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1e-4
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def without_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(cupy_machine, "time", clock)
        yield clock


def test_an_iteration_without_end_is_given_up(cuda: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its memory is not freed: that would wait for the end."""
    cuda.endless.add(2)  # the first stream of worker 1
    with (
        without_time(monkeypatch) as clock,
        pytest.raises(ExecutionError, match=r"no progress for 3 s: worker 1 on gpu\(1\) has not finished"),
    ):
        trained([0, 1], watchdog_seconds=3)
    assert 3 < clock.now < 4
    assert cuda.closed == []


def test_what_fails_while_closing_hides_nothing(cuda: StandIn) -> None:
    cuda.broken.update({"launchKernel": 700, "cudnnDestroy": 700})
    with pytest.raises(ExecutionError, match=r"operation .*cudaErrorIllegalAddress"):
        trained([0, 1])
