"""Lowered programs, run in lockstep by a slow reference engine that trusts nothing.

Memory starts as NaN, so that reading anything not fetched or computed shows in the results.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.errors import PlanError
from tofu.partitioner import partition
from tofu.partitioner.lowering.lowering import lower
from tofu.programs.cover import cover
from tofu.programs.program import BufferKind, Compute, MultiFetch, Reduce

COMBINE = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


def slices(region, origin):
    return tuple(slice(a - o[0], b - o[0]) for (a, b), o in zip(region, origin, strict=True))


class Machine:
    """All workers' memories, one array per buffer."""

    def __init__(self, program):
        self.program = program
        self.graph = program.graph
        self.fetched_bytes = 0
        self.memory = [
            [np.full([upper - lower for lower, upper in b.region], np.nan) for b in p.buffers]
            for p in program.programs
        ]

    def buffer(self, worker, index):
        return self.program.programs[worker].buffers[index]

    def load(self, values):
        for tensor, homes in enumerate(self.program.homes):
            if tensor in values:
                for worker, shard in homes:
                    region = self.buffer(worker, shard).region
                    self.memory[worker][shard][...] = values[tensor][slices(region, [(0, 0)] * len(region))]

    def run(self):
        lists = [list(p.instructions) for p in self.program.programs]
        for tick in range(self.program.ticks):
            for worker, pending in enumerate(lists):
                while pending and pending[0].tick == tick:
                    self.step(worker, pending.pop(0))
        assert not any(lists)

    def step(self, worker, instruction):
        match instruction:
            case MultiFetch(_, target, pieces, _):
                self.memory[worker][target][...] = self.assembled(worker, target, pieces)
            case Reduce(_, target, reducer, parts, _):
                terms = [self.assembled(worker, target, pieces) for pieces in parts]
                self.memory[worker][target][...] = functools.reduce(COMBINE[reducer], terms)
            case Compute():
                self.compute(worker, instruction)

    def assembled(self, worker, target, pieces):
        """The target's region from pieces, which must be disjoint, complete and inside their buffers."""
        region = self.buffer(worker, target).region
        values = np.zeros(self.memory[worker][target].shape)
        times = np.zeros(values.shape, int)
        for piece in pieces:
            source = self.buffer(piece.worker, piece.buffer)
            for (start, stop), (low, high) in zip(piece.region, source.region, strict=True):
                assert low <= start < stop <= high
            if piece.worker != worker:
                itemsize = np.dtype(self.graph.tensors[source.tensor].dtype).itemsize
                self.fetched_bytes += int(np.prod([b - a for a, b in piece.region])) * itemsize
            there = slices(piece.region, region)
            values[there] = self.memory[piece.worker][piece.buffer][slices(piece.region, source.region)]
            times[there] += 1
        assert (times == 1).all()
        return values

    def compute(self, worker, compute):
        operation = self.graph.operations[compute.operation]
        bound = operation.bound
        whole = {}
        for name, tensor, buffer, region in zip(
            bound.description.tensor_names,
            operation.inputs,
            compute.inputs,
            compute.input_regions,
            strict=True,
        ):
            whole[name] = np.full(self.graph.tensors[tensor].shape, np.nan)
            assert (buffer is None) == (name not in bound.reads)
            if buffer is not None:
                held = self.buffer(worker, buffer).region
                whole[name][slices(region, [(0, 0)] * len(region))] = self.memory[worker][buffer][
                    slices(region, held)
                ]
        box = dict(zip(bound.variables, compute.box, strict=True))
        results = tdl.interpret(bound.description, bound.extents, whole, bound.shapes, box=box)
        for buffer, result in zip(compute.outputs, results, strict=True):
            assert self.memory[worker][buffer].shape == result.shape
            for name, read in zip(bound.description.tensor_names, compute.inputs, strict=True):
                assert read != buffer or name in bound.in_place
            self.memory[worker][buffer][...] = result

    def read(self, tensor):
        value = np.full(self.graph.tensors[tensor].shape, np.nan)
        for worker, shard in self.program.homes[tensor]:
            region = self.buffer(worker, shard).region
            here = slices(region, [(0, 0)] * len(region))
            known = ~np.isnan(value[here])
            np.testing.assert_array_equal(value[here][known], self.memory[worker][shard][known])
            value[here] = self.memory[worker][shard]
        return value


def check(graph, workers):
    plan = partition(graph, workers, keep=False)
    program = lower(graph, plan)
    random = np.random.default_rng(0)
    produced = {t for op in graph.operations for t in op.outputs}
    values = {
        t.index: random.integers(-3, 4, t.shape).astype(float)
        for t in graph.tensors
        if t.index not in produced
    }
    machine = Machine(program)
    machine.load(values)
    machine.run()
    assert machine.fetched_bytes == program.planned_bytes == plan.cost_bytes
    for op in graph.operations:
        inputs = {n: values[t] for n, t in zip(op.bound.description.tensor_names, op.inputs, strict=True)}
        results = op.bound.interpret(inputs)
        values.update(zip(op.outputs, results, strict=True))
    overwritten = {t.alias for t in graph.tensors if t.alias is not None}
    for tensor, value in values.items():
        if tensor not in overwritten:
            np.testing.assert_array_equal(machine.read(tensor), value)


@pytest.mark.parametrize("workers", range(1, 9))
def test_lowered_graphs_compute_and_fetch_what_they_should(graph, workers):
    check(graph, workers)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_graphs(data, draw_graph):
    check(data.draw(draw_graph(max_operations=4)), data.draw(st.integers(1, 8)))


def test_an_input_that_lies_in_the_shard_is_read_there(toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(4, 4))
    program = lower(builder.graph(), partition(builder.graph(), 2))
    for worker in program.programs:
        (compute,) = worker.instructions
        assert isinstance(compute, Compute)
        assert [b.kind for b in worker.buffers] == [BufferKind.SHARD, BufferKind.SHARD]


def test_a_region_read_twice_is_fetched_once(toy, texts):
    builder = toy()
    shared = builder.apply(texts["TRANSPOSE"], builder.tensor(4, 4))
    builder.apply(texts["MULTIPLY"], shared, shared)
    builder.apply(texts["MATMUL"], shared, shared)
    program = lower(builder.graph(), partition(builder.graph(), 4))
    for worker in program.programs:
        targets = [
            (i.operation, worker.buffers[i.target].region)
            for i in worker.instructions
            if isinstance(i, MultiFetch) and worker.buffers[i.target].kind is BufferKind.FETCHED
        ]
        assert len(targets) == len(set(targets))


def test_updates_write_in_place_only_element_by_element(toy, texts):
    builder = toy()
    weight = builder.tensor(4, 4)
    gradient = builder.tensor(4, 4)
    builder.apply(texts["UPDATE"], weight, gradient, builder.tensor(1), aliases=(weight,))
    program = lower(builder.graph(), partition(builder.graph(), 2))
    assert all(len(w.instructions) == 1 for w in program.programs)

    builder = toy()
    square = builder.tensor(4, 4)
    builder.apply(texts["TRANSPOSE"], square, aliases=(square,))
    program = lower(builder.graph(), partition(builder.graph(), 1))
    (worker,) = program.programs
    assert [type(i) for i in worker.instructions] == [Compute, MultiFetch]
    assert program.planned_bytes == 0


def test_partial_results_are_combined_in_worker_order(toy, texts):
    builder = toy()
    builder.apply(texts["TOTAL"], builder.tensor(8, 8))
    program = lower(builder.graph(), partition(builder.graph(), 4, keep=False))
    for worker in program.programs:
        reduce = worker.instructions[-1]
        assert isinstance(reduce, Reduce)
        assert reduce.reducer == "Sum"
        assert [piece.worker for part in reduce.parts for piece in part] == [0, 1, 2, 3]


def test_a_tensor_read_through_two_parameters_is_fetched_once(toy):
    builder = toy()
    vector = builder.tensor(4)
    text = "def scale(a, b, c):\n    return lambda i, j: c[i, j] * (a[0] + b[0])"
    builder.apply(text, vector, vector, builder.tensor(4, 4))
    graph = builder.graph()
    plan = partition(graph, 2, replicate=False)
    assert plan.cost_bytes == lower(graph, plan).planned_bytes == 4
    check(graph, 2)


def test_readers_start_with_themselves_and_go_on_to_the_next_worker():
    held = {w: (w, ((w, w + 1),)) for w in range(4)}
    assert [w for w, _ in cover(((0, 4),), held, 2, 4)] == [2, 3, 0, 1]


def test_readers_of_replicas_turn_to_different_workers():
    held = {w: (w, region) for w, region in enumerate([((0, 4),), ((0, 4),), ((4, 8),), ((4, 8),)])}
    assert [cover(((4, 6),), held, reader, 4) for reader in (0, 1)] == [((2, ((4, 6),)),), ((3, ((4, 6),)),)]
    assert cover(((4, 6),), held, 3, 4) == ((3, ((4, 6),)),)


def test_overlapping_holders_are_cut_into_disjoint_pieces():
    held = {0: (0, ((0, 6), (0, 6))), 1: (1, ((4, 9), (2, 9))), 2: (2, ((0, 9), (0, 9)))}
    for reader in range(4):
        pieces = cover(((1, 9), (1, 9)), held, reader, 4)
        seen = list(
            itertools.chain.from_iterable(
                itertools.product(*(range(*i) for i in region)) for _, region in pieces
            )
        )
        assert sorted(seen) == list(itertools.product(range(1, 9), range(1, 9)))
        for worker, region in pieces:
            assert all(h[0] <= r[0] and r[1] <= h[1] for h, r in zip(held[worker][1], region, strict=True))
    assert cover(((0, 12), (0, 2)), held, 0, 4) is None


def test_lowering_refuses_a_plan_for_another_graph(graph, toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(4, 4))
    with pytest.raises(PlanError):
        lower(graph, partition(builder.graph(), 2))


def test_many_layers_lower_to_the_bytes_of_their_plan(toy, texts):
    builder = toy()
    value = builder.tensor(64, 64)
    for _ in range(500):
        value = builder.apply(texts["RELU"], builder.apply(texts["MATMUL"], value, builder.tensor(64, 64)))
    graph = builder.graph()
    plan = partition(graph, 8, replicate=False)
    assert lower(graph, plan).planned_bytes == plan.cost_bytes > 0
