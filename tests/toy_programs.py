"""Hand-made partitioned graphs of one-dimensional tensors, with kernels that need no other room."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tofu.analyzer.indices.region import Interval
from tofu.dataflow.graph import Graph, Operation, Role, Tensor
from tofu.operators.kernels.kernel import KernelCall
from tofu.programs.program import (
    Buffer,
    BufferKind,
    Compute,
    Held,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
    Reduce,
)
from tofu.tdl.ast import Reducer

DTYPE = "float64"
ITEM_BYTES = 8


@dataclass(frozen=True)
class FakeDescription:
    tensor_names: tuple[str, ...]
    name: str


@dataclass(frozen=True, eq=False)
class FakeBound:
    """Stands in for a bound operator: the runtime only looks at these."""

    description: FakeDescription
    variables: tuple[str, ...]
    in_place: frozenset[str]
    prepare: Callable[[KernelCall], Callable[[], None]]


def _add(call: KernelCall) -> Callable[[], None]:
    a, b, out = call.inputs["a"], call.inputs["b"], call.outputs[0]
    return lambda: out.__setitem__(..., (a + b) % 1009)


def _shift(call: KernelCall) -> Callable[[], None]:
    """out[i] = a[i] + 2 * a[min(i + 1, n - 1)]; the region has one element more, save at the end."""
    a, out = call.inputs["a"], call.outputs[0]

    def run() -> None:
        ahead = np.concatenate((a[1:], a[-1:]))[: len(out)]
        out[...] = (a[: len(out)] + 2 * ahead) % 1009

    return run


def _total(call: KernelCall) -> Callable[[], None]:
    """out[i] = Sum(lambda k: a[k] * (i % 3))."""
    a, out, lower = call.inputs["a"], call.outputs[0], call.box["i"][0]
    factors = (np.arange(len(out)) + lower) % 3
    return lambda: out.__setitem__(..., a.sum() * factors)


ADD = FakeBound(FakeDescription(("a", "b"), "add"), ("i",), frozenset({"a", "b"}), _add)
SHIFT = FakeBound(FakeDescription(("a",), "shift"), ("i",), frozenset(), _shift)
TOTAL = FakeBound(FakeDescription(("a",), "total"), ("i", "k"), frozenset(), _total)


def whole_result(bound: FakeBound, inputs: Sequence[Any], length: int) -> Any:
    """Return the results of an operation, on whole arrays."""
    if bound is ADD:
        return (inputs[0] + inputs[1]) % 1009
    if bound is SHIFT:
        a = inputs[0]
        return (a + 2 * np.concatenate((a[1:], a[-1:]))) % 1009
    return inputs[0].sum() * (np.arange(length) % 3)


@dataclass
class Toy:
    """Builds a graph and lowers it by a simple rule.

    `cuts[tensor]` are the workers' intervals of a tensor; an interval may be empty.
    """

    workers: int
    tensors: list[Tensor] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    cuts: list[list[Interval]] = field(default_factory=list)
    work: list[list[Interval]] = field(default_factory=list)

    def tensor(
        self, name: str, length: int, role: Role, cuts: list[Interval] | None = None, alias: int | None = None
    ) -> int:
        index = len(self.tensors)
        self.tensors.append(Tensor(index, name, (length,), role, DTYPE, alias))
        self.cuts.append(cuts or even(length, self.workers))
        return index

    def apply(
        self,
        bound: FakeBound,
        inputs: Sequence[int],
        name: str,
        *,
        length: int | None = None,
        role: Role = Role.ACTIVATION,
        alias: int | None = None,
        cuts: list[Interval] | None = None,
        work: list[Interval] | None = None,
    ) -> int:
        """`work` cuts the output variable, for TOTAL the reduction variable."""
        source = self.tensors[inputs[0]]
        extent = source.shape[0] if length is None else length
        if alias is not None:
            cuts = self.cuts[alias]
        output = self.tensor(name, extent, role, cuts, alias)
        if work is None:
            work = even(source.shape[0], self.workers) if bound is TOTAL else self.cuts[output]
        self.work.append(work)
        index = len(self.operations)
        self.operations.append(Operation(index, f"make_{name}", bound, tuple(inputs), (output,)))  # type: ignore[arg-type]
        return output

    def lower(self, outputs: Sequence[int]) -> PartitionedGraph:
        graph = Graph("toy", tuple(self.tensors), tuple(self.operations), tuple(outputs))
        return _Lowering(self, graph).run()

    def expected(self, values: dict[str, Any]) -> dict[str, Any]:
        """The tensors after one iteration on whole arrays; aliases overwrite their targets."""
        held = {t.index: values[t.name].copy() for t in self.tensors if t.name in values}
        for operation in self.operations:
            output = self.tensors[operation.outputs[0]]
            inputs = [held[index] for index in operation.inputs]
            result = whole_result(operation.bound, inputs, output.shape[0])  # type: ignore[arg-type]
            held[output.index] = result
            if output.alias is not None:
                held[output.alias] = result
        return {self.tensors[index].name: value for index, value in held.items()}


def even(length: int, workers: int) -> list[Interval]:
    return [(w * length // workers, (w + 1) * length // workers) for w in range(workers)]


class _Lowering:
    def __init__(self, toy: Toy, graph: Graph) -> None:
        self.toy = toy
        self.graph = graph
        self.buffers: list[list[Buffer]] = [[] for _ in range(toy.workers)]
        self.instructions: list[list[Instruction]] = [[] for _ in range(toy.workers)]
        self.homes: list[tuple[Held, ...]] = []
        self.tick = 0
        self.planned_bytes = 0

    def run(self) -> PartitionedGraph:
        for tensor in self.graph.tensors:
            if tensor.alias is not None:
                self.homes.append(self.homes[tensor.alias])
                continue
            self.homes.append(
                tuple(
                    (w, self.buffer(w, tensor.index, interval, BufferKind.SHARD))
                    for w, interval in enumerate(self.toy.cuts[tensor.index])
                    if interval[0] < interval[1]
                )
            )
        for operation in self.graph.operations:
            self.operation(operation, self.toy.work[operation.index])
        programs = tuple(
            Program(w, tuple(self.buffers[w]), tuple(self.instructions[w])) for w in range(self.toy.workers)
        )
        return PartitionedGraph(self.graph, self.toy.workers, programs, tuple(self.homes), self.planned_bytes)

    def buffer(self, worker: int, tensor: int, interval: Interval, kind: BufferKind) -> int:
        index = len(self.buffers[worker])
        nbytes = (interval[1] - interval[0]) * ITEM_BYTES
        self.buffers[worker].append(Buffer(index, tensor, (interval,), kind, nbytes))
        return index

    def operation(self, operation: Operation, work: list[Interval]) -> None:
        output = operation.outputs[0]
        length = self.graph.tensors[output].shape[0]
        partials: list[tuple[int, int, Interval]] = []
        computes: list[tuple[int, Compute]] = []
        for worker, box in enumerate(work):
            if box[0] >= box[1]:
                continue
            region, inputs, regions = box, [], []
            if operation.bound is SHIFT:  # type: ignore[comparison-overlap]
                region = (box[0], min(box[1] + 1, length))
            for tensor in operation.inputs:
                inputs.append(self.fetch(operation.index, worker, tensor, region))
                regions.append((region,))
            reduces = operation.bound is TOTAL  # type: ignore[comparison-overlap]
            made = (0, length) if reduces else box
            direct = not reduces and work == self.toy.cuts[output]
            if direct:
                target = dict(self.homes[output])[worker]
            else:
                target = self.buffer(worker, output, made, BufferKind.PARTIAL)
                partials.append((worker, target, made))
            full_box = (made, box) if reduces else (box,)
            computes.append(
                (
                    worker,
                    Compute(
                        operation.index, full_box, tuple(inputs), tuple(regions), (target,), self.tick + 1
                    ),
                )
            )
        for worker, compute in computes:
            self.instructions[worker].append(compute)
        if partials:
            self.collect(operation, partials)
        self.tick += 3

    def fetch(self, operation: int, worker: int, tensor: int, region: Interval) -> int:
        own = dict(self.homes[tensor]).get(worker)
        if own is not None and inside(region, self.buffers[worker][own].region[0]):
            return own
        target = self.buffer(worker, tensor, region, BufferKind.FETCHED)
        pieces = self.pieces(worker, self.homes[tensor], region)
        self.instructions[worker].append(MultiFetch(operation, target, pieces, self.tick))
        return target

    def collect(self, operation: Operation, partials: list[tuple[int, int, Interval]]) -> None:
        output = operation.outputs[0]
        for worker, target in self.homes[output]:
            region = self.buffers[worker][target].region[0]
            if operation.bound is TOTAL:  # type: ignore[comparison-overlap]
                parts = tuple(self.pieces(worker, [(w, b)], region) for w, b, _ in partials)
                self.instructions[worker].append(
                    Reduce(operation.index, target, Reducer.SUM, parts, self.tick + 2)
                )
            else:
                pieces = self.pieces(worker, [(w, b) for w, b, _ in partials], region)
                self.instructions[worker].append(MultiFetch(operation.index, target, pieces, self.tick + 2))

    def pieces(self, reader: int, sources: Sequence[Held], region: Interval) -> tuple[Piece, ...]:
        found = []
        for worker, buffer in sources:
            held = self.buffers[worker][buffer].region[0]
            common = (max(held[0], region[0]), min(held[1], region[1]))
            if common[0] < common[1]:
                found.append(Piece(worker, buffer, (common,)))
                self.planned_bytes += (common[1] - common[0]) * ITEM_BYTES * (worker != reader)
        return tuple(found)


def inside(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def random_cuts(generator: random.Random, length: int, workers: int) -> list[Interval]:
    edges = sorted(generator.randint(0, length) for _ in range(workers - 1))
    return list(zip([0, *edges], [*edges, length], strict=True))


def random_toy(seed: int, workers: int, operations: int) -> tuple[Toy, PartitionedGraph, dict[str, Any]]:
    """A random graph with uneven layouts, an update of every weight, and integer-valued start values."""
    generator = random.Random(seed)
    toy = Toy(workers)
    length = generator.randint(1, 40)
    values = {}
    weights = []
    for number in range(generator.randint(1, 3)):
        cuts = random_cuts(generator, length, workers)
        weights.append(toy.tensor(f"w{number}", length, Role.PARAMETER, cuts))
        values[f"w{number}"] = np.array([float(generator.randint(0, 99)) for _ in range(length)])
    current = list(weights)
    for number in range(operations):
        bound = generator.choice([ADD, ADD, SHIFT, TOTAL])
        inputs = [generator.choice(current[-4:]) for _ in bound.description.tensor_names]
        cuts = random_cuts(generator, length, workers)
        work = random_cuts(generator, length, workers) if generator.random() < 0.5 or bound is TOTAL else cuts
        current.append(toy.apply(bound, inputs, f"t{number}", cuts=cuts, work=work))
    for number, weight in enumerate(weights):
        work = toy.cuts[weight] if generator.random() < 0.5 else random_cuts(generator, length, workers)
        toy.apply(ADD, [weight, current[-1]], f"new_w{number}", role=Role.PARAMETER, alias=weight, work=work)
    return toy, toy.lower([current[-1]]), values


@pytest.fixture(scope="session")
def toys() -> Any:
    """The names of this file, for tests: Toy, ADD, SHIFT, TOTAL, random_toy, FakeBound, ..."""

    class Names:
        pass

    names = Names()
    for name in (
        "Toy",
        "ADD",
        "SHIFT",
        "TOTAL",
        "FakeBound",
        "FakeDescription",
        "random_toy",
        "even",
        "Role",
    ):
        setattr(names, name, globals()[name])
    return names
