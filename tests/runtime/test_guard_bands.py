"""A kernel that writes outside its buffers is an error that names it; without one, nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tofu import Module, cpu, gpu, sym
from tofu.dataflow.training import training_graph
from tofu.errors import ExecutionError
from tofu.models import get
from tofu.partitioner import lower, partition
from tofu.programs.clock import writes
from tofu.programs.guarded_memory import BAND_BYTES
from tofu.programs.program import Compute, PartitionedGraph
from tofu.runtime import numpy_engine
from tofu.runtime.data import ArrayIterator
from tofu.runtime.executor import Executor
from tofu.runtime.preparation import PreparedSteps, allocate, place_of, prepare

WORKERS = 3
FAILS_AT = 2
"""The number of the iteration in which a kernel writes outside its buffers."""


def trained(**options: Any) -> dict[str, Any]:
    net = sym.Activation(sym.FullyConnected(sym.Variable("data"), num_hidden=6, name="fc1"), act_type="relu")
    net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")
    data = np.random.default_rng(1).standard_normal((24, 5)).astype(np.float32)
    batches = ArrayIterator(data, data[:, :3].argmax(axis=1), 8)
    with Module(net, [cpu(worker) for worker in range(WORKERS)], **options) as module:
        module.fit(batches, num_epoch=2, learning_rate=0.1)
        return module.parameters()


@pytest.mark.parametrize("threads", [1, WORKERS, 2 * WORKERS])
def test_bands_change_no_bit(threads: int) -> None:
    guarded, plain = trained(guard_buffers=True, threads=threads), trained(threads=threads)
    assert guarded.keys() == plain.keys()
    for name, array in plain.items():
        np.testing.assert_array_equal(guarded[name], array)


Write = Callable[[Any], None]


def arena_of(array: Any) -> Any:
    """Return the memory that an array lies in."""
    while array.base is not None:
        array = array.base
    return array


def invert(array: Any, byte: Callable[[int], int]) -> None:
    """Change one byte, counted from the first one of an array; `byte` gets the size of the array."""
    arena = arena_of(array)
    arena[array.ctypes.data - arena.ctypes.data + byte(array.nbytes)] ^= 0xFF


def faulty(monkeypatch: pytest.MonkeyPatch, write: Write) -> list[str]:
    """Let the fourth computation of worker 1 write more than its output; return its place."""
    place: list[str] = []

    def changed(
        partitioned: PartitionedGraph, buffers: Any, worker: int, guard_scratch: bool, scratch: Any
    ) -> PreparedSteps:
        prepared = prepare(partitioned, buffers, worker, guard_scratch, scratch)
        if worker != 1:
            return prepared
        instructions = partitioned.programs[worker].instructions
        index = [number for number, each in enumerate(instructions) if isinstance(each, Compute)][3]
        place.append(place_of(partitioned, worker, index))
        target = buffers[worker][writes(instructions[index])[0]]
        calls: list[int] = []

        def run() -> None:
            calls.append(len(calls))
            prepared.steps[index]()
            if calls[-1] == FAILS_AT:
                write(target)

        return replace(prepared, steps=(*prepared.steps[:index], run, *prepared.steps[index + 1 :]))

    monkeypatch.setattr(numpy_engine, "prepare", changed)
    return place


@pytest.mark.parametrize(
    ("byte", "says"),
    [
        (lambda size: size, "byte 0 after"),
        (lambda size: size + BAND_BYTES // 2, f"byte {BAND_BYTES // 2} after"),
        (lambda size: -1, "byte 1 before"),
        (lambda size: -BAND_BYTES, f"byte {BAND_BYTES} before"),
    ],
)
def test_the_operation_is_named(
    monkeypatch: pytest.MonkeyPatch, byte: Callable[[int], int], says: str
) -> None:
    place = faulty(monkeypatch, partial(invert, byte=byte))
    with pytest.raises(ExecutionError) as caught:
        trained(guard_buffers=True)
    message = str(caught.value)
    assert message.startswith(f"{place[0]}, iteration {FAILS_AT}: ")
    assert f"it wrote outside its buffers: it overwrote {says} the " in message


def test_far_away_the_tensor_that_lies_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last band of the arena belongs to a buffer that the operation does not use."""

    arenas: list[Any] = []

    def allocated(*given: Any) -> list[Any]:
        arenas[:] = allocate(*given)
        return arenas

    def write(target: Any) -> None:
        arenas[1][-BAND_BYTES // 2] ^= 0xFF

    monkeypatch.setattr(numpy_engine, "allocate", allocated)
    faulty(monkeypatch, write)
    with pytest.raises(
        ExecutionError, match=r"^worker 1, .*does not use this buffer overwrote byte \d+ after"
    ):
        trained(guard_buffers=True)


@pytest.mark.parametrize("byte", [lambda size: 0, lambda size: size - 1])
def test_the_bytes_of_the_buffer_itself_may_be_written(
    monkeypatch: pytest.MonkeyPatch, byte: Callable[[int], int]
) -> None:
    faulty(monkeypatch, partial(invert, byte=byte))
    assert trained(guard_buffers=True).keys() == trained().keys()


SCRATCH_BYTES = 100


def run_on_scratch(toys: Any, write: Write, **options: Any) -> None:
    """Run two kernels twice. Each takes two arrays of scratch and fills them; the second one also writes."""

    def kernel(call: Any, write: Write) -> Any:
        first, second = (call.workspace.array((SCRATCH_BYTES,), np.uint8) for _ in range(2))

        def run() -> None:
            first[...] = second[...] = 7
            write(first)

        return run

    toy = toys.Toy(1)
    x = toy.tensor("x", 4, toys.Role.DATA)
    for number, wrong in enumerate((lambda array: None, write)):
        bound = toys.FakeBound(toys.ADD.description, ("i",), frozenset(), partial(kernel, write=wrong))
        x = toy.apply(bound, [x, x], f"t{number}")
    with Executor(toy.lower([x]), **options) as executor:
        executor.run()
        executor.run()


@pytest.mark.parametrize("byte", [-1, -BAND_BYTES, SCRATCH_BYTES, SCRATCH_BYTES + BAND_BYTES // 2])
def test_writing_outside_of_scratch_is_an_error(toys: Any, byte: int) -> None:
    write = partial(invert, byte=lambda size: byte)
    place = f"byte {BAND_BYTES + byte:,} of "
    with pytest.raises(
        ExecutionError, match=f"worker 0, .*iteration 0: .*outside its scratch memory: it overwrote {place}"
    ):
        run_on_scratch(toys, write, guard_buffers=True)
    run_on_scratch(toys, write)


@pytest.mark.parametrize("byte", [0, SCRATCH_BYTES - 1])
def test_scratch_itself_may_be_written(toys: Any, byte: int) -> None:
    run_on_scratch(toys, partial(invert, byte=lambda size: byte), guard_buffers=True)


def test_kernels_of_convolutions_stay_in_their_scratch() -> None:
    """Parts of a kernel that run after each other take the same scratch."""
    model = get("wresnet-10-1", batch=4, image=(1, 8, 8), classes=10)
    graph = training_graph(model.symbol, model.shapes, "sgd")
    partitioned = lower(graph, partition(graph, workers=2))
    with Executor(partitioned, guard_buffers=True) as guarded, Executor(partitioned) as plain:
        assert guarded.workspace_bytes_per_worker > plain.workspace_bytes_per_worker > 0
        guarded.run()


def test_cards_are_refused() -> None:
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=4), name="softmax")
    with (
        Module(net, [gpu(0)], guard_buffers=True) as module,
        pytest.raises(ExecutionError, match="guard_buffers watches workers on the processor"),
    ):
        module.bind({"data": (4, 4), "softmax_label": (4,)})
