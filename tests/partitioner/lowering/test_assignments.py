"""Any assignment of tasks and holdings computes what one worker computes, and moves what is counted.

Every plan is random: each operation and each tensor has a form of its own, on any workers, several parts on
one worker, or none, and the operations run in a random order. The plan goes through its file. The programs
are checked, then run on the NumPy engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.layouts.forms import Cut, Form, Label, Partial, Parts, Spread, expand
from tofu.partitioner.layouts.step_split import reducer_of, split_operation
from tofu.partitioner.plans.plan import Plan, decode_plan, encode_plan
from tofu.programs import plan_memory, schedule
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.clock import transferred
from tofu.programs.program import Compute, PartitionedGraph
from tofu.tdl.ast import Reducer

Values = dict[str, Any]

MODELS = {
    "mlp": {"batch": 8},
    "lenet": {"batch": 4},
    "lstm": {"batch": 4, "steps": 2, "hidden": 8},
}
STEPS = 2


def network(name: str) -> Any:
    return tofu.models.get(name, **MODELS[name]).training_graph()


def random_form(draw: random.Random, extents: dict[Label, int], workers: int) -> Form:
    """A form that cuts up to two of these labels, or repeats."""
    labels = [label for label, extent in extents.items() if extent > 1]
    if not labels or draw.random() < 0.2:
        count = draw.randint(1, workers)
        return Spread(((None, count),), tuple(draw.sample(range(workers), count)))
    label = draw.choice(labels)
    parts = min(extents[label], draw.randint(1, workers + 1))
    if draw.random() < 0.4:
        bounds = tuple(sorted(draw.sample(range(1, extents[label]), parts - 1)))
        return Cut(label, bounds, tuple(draw.randrange(workers) for _ in range(parts)))
    degrees: tuple[tuple[Label | None, int], ...] = ((label, parts),)
    other = draw.choice(labels)
    if other != label and draw.random() < 0.4:
        degrees = (*degrees, (other, 2))
        parts *= 2
    return Spread(degrees, tuple(draw.randrange(workers) for _ in range(parts)))


def listed(form: Form, labels: Sequence[Label], extents: dict[Label, int], count: int) -> Parts:
    """The same form, part by part."""
    whole = np.array([(0, extents[label]) for label in labels], np.int64).reshape(-1, 2)
    parts = expand(form, whole, labels.index, (count,))
    regions = [tuple((a, b) for a, b in box.tolist()) for box in parts.boxes]
    return Parts(tuple(zip(parts.workers.tolist(), regions, strict=True)))


def random_order(graph: Any, draw: random.Random) -> tuple[str, ...]:
    """Any order in which inputs are made first, and read before they are overwritten."""
    maker = {tensor: o.index for o in graph.operations for tensor in o.outputs}
    before: dict[int, set[int]] = {
        o.index: {maker[t] for t in o.inputs if t in maker} for o in graph.operations
    }
    for operation in graph.operations:
        for tensor in operation.outputs:
            old = graph.tensors[tensor].alias
            if old is not None:
                readers = {o.index for o in graph.operations if old in o.inputs}
                before[operation.index] |= readers - {operation.index}
    found: list[str] = []
    while before:
        ready = sorted(index for index, needed in before.items() if not needed & before.keys())
        chosen = draw.choice(ready)
        del before[chosen]
        found.append(graph.operations[chosen].name)
    return tuple(found)


def random_copies(
    graph: Any, tensor: Any, order: tuple[str, ...] | None, workers: int, draw: random.Random
) -> tuple[Copy, ...]:
    """Up to two copies, each read by some of the operations that read the tensor."""
    place = {name: number for number, name in enumerate(order or [o.name for o in graph.operations])}
    readers = [
        o.name for o in graph.operations if tensor.index in [o.inputs[at] for at, _ in o.bound.read_places]
    ]
    draw.shuffle(readers)
    half = draw.randint(1, len(readers)) if readers else 0
    shares = [share for share in (readers[:half], readers[half:]) if share]
    shares.sort(key=lambda share: min(place[name] for name in share))
    return tuple(
        Copy(random_form(draw, dict(enumerate(tensor.shape)), workers), tuple(share), draw.randint(0, number))
        for number, share in enumerate(shares[: draw.randint(0, 2)])
    )


def leave_partial(
    graph: Any,
    factors: tuple[int, ...],
    strategies: dict[str, Form],
    layouts: dict[str, Any],
    copies: dict[str, tuple[Copy, ...]],
    draw: random.Random,
) -> None:
    """Do not reduce some sums at home: linear operations read their terms, others reduced copies."""
    workers = int(np.prod(factors))
    overwritten = {t.alias for t in graph.tensors} | {t.index for t in graph.tensors if t.alias is not None}
    homes: dict[int, int] = {}
    other: set[int] = set()
    """Tensors whose terms are not summed, but combined by another reducer."""
    readers: dict[int, list[str]] = {}
    for operation in graph.operations:
        reads = {name: operation.inputs[place] for place, name in operation.bound.read_places}
        counts = [homes[tensor] for tensor in reads.values() if tensor in homes and tensor not in other]
        terms = draw.choice(counts) if counts and draw.random() < 0.8 else 1
        names = [n for n, tensor in reads.items() if homes.get(tensor) == terms > 1 and tensor not in other]
        if terms > 1 and operation.bound.linear_in(names):
            cut = {v: e for v, e in operation.bound.extents.items() if operation.bound.kind(v) == "concat"}
            strategies[operation.name] = in_terms(draw, cut, terms, workers)
        else:
            names = []
        for tensor in {reads[name] for name in reads.keys() - set(names)} & homes.keys():
            readers.setdefault(tensor, []).append(operation.name)
        tasks = split_operation(operation.bound, strategies[operation.name], factors)
        made = tasks.terms
        if reducer_of(operation.bound, tasks) is not Reducer.SUM:
            other.update(operation.outputs)
        for tensor in operation.outputs:
            lasts = graph.tensors[tensor].role.persistent or tensor in (*graph.outputs, *overwritten)
            if not lasts and made > 1 and draw.random() < 0.8:
                homes[tensor] = draw.choice([n for n in range(2, made + 1) if made % n == 0])
                extents: dict[Label, int] = dict(enumerate(graph.tensors[tensor].shape))
                layout = layouts[graph.tensors[tensor].name]
                kept = in_terms(draw, extents, homes[tensor], workers)
                layouts[graph.tensors[tensor].name] = replace(layout, form=kept, via=None)
                copies.pop(graph.tensors[tensor].name, None)
    for tensor, names in readers.items():
        extents = dict(enumerate(graph.tensors[tensor].shape))
        reduced = tuple(dict.fromkeys(names))
        copies[graph.tensors[tensor].name] = (Copy(random_form(draw, extents, workers), reduced),)


def in_terms(draw: random.Random, extents: dict[Label, int], terms: int, workers: int) -> Form:
    """A form in terms that also cuts a label, or repeats."""
    labels = [label for label, extent in extents.items() if extent > 1]
    inner: tuple[Label | None, int] = (
        (draw.choice(labels), 2) if labels and draw.random() < 0.6 else (None, 1)
    )
    count = terms * inner[1]
    return Spread(((Partial(), terms), inner), tuple(draw.randrange(workers) for _ in range(count)))


def random_plan(graph: Any, workers: int, seed: int) -> Plan:
    draw = random.Random(seed)
    plan = tofu.partition(graph, workers)

    def form(extents: dict[Label, int], splittable: Callable[[Any], bool]) -> Form:
        usable = {label: extent for label, extent in extents.items() if splittable(label)}
        found = random_form(draw, usable, workers)
        return listed(found, list(extents), extents, workers) if draw.random() < 0.2 else found

    strategies: dict[str, Form] = {
        o.name: form(dict(o.bound.extents), lambda variable, o=o: o.bound.kind(variable) is not None)
        for o in graph.operations
    }
    layouts: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.alias is not None:
            layouts[tensor.name] = layouts[graph.tensors[tensor.alias].name]
        else:
            axes: dict[Label, int] = dict(enumerate(tensor.shape))
            via = form(axes, lambda axis: True) if draw.random() < 0.3 else None
            own = form(axes, lambda axis: True)
            layouts[tensor.name] = replace(plan.layouts[tensor.name], form=own, via=via)
    order = random_order(graph, draw) if draw.random() < 0.8 else None
    copies = {
        tensor.name: found
        for tensor in graph.tensors
        if draw.random() < 0.3 and (found := random_copies(graph, tensor, order, workers, draw))
    }
    if draw.random() < 0.7:
        leave_partial(graph, plan.factors, strategies, layouts, copies, draw)
    plan = replace(plan, layouts=layouts, strategies=strategies, order=order, copies=copies)
    total = sum(entry.bytes for entry in plan.contributions(graph))
    return replace(
        plan,
        cost_bytes=total,
        step_cost_bytes=(total,),
        lower_bound_bytes=0,
        unproven=(),
    )


def trained(program: PartitionedGraph, threads: int | None = None) -> tuple[Values, int]:
    """The persistent tensors after some steps, and the bytes fetched in one."""
    drawn = np.random.default_rng(0)
    with tofu.Executor(program, threads=threads) as executor:
        names = [t.name for t in program.graph.tensors if t.role.persistent and t.alias is None]
        for tensor in (t for t in program.graph.tensors if t.name in names):
            value = drawn.uniform(0.1, 0.4, tensor.shape) * drawn.choice([-1, 1], tensor.shape)
            executor.write(tensor.name, np.zeros_like(value) if "label" in tensor.name else value)
        for _ in range(STEPS):
            executor.run()
        return {name: executor.read(name) for name in names}, executor.fetched_bytes


def check(name: str, seed: int) -> None:
    workers = 2 + seed % 4
    graph = network(name)
    plan = random_plan(graph, workers, seed)
    assert decode_plan(encode_plan(plan).encode()) == plan
    plan.verify(graph)
    tofu.verify(graph, plan)
    program = tofu.lower(graph, plan)
    memory = plan_memory(program)
    check_program(graph, workers, plan.cost_bytes, program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)
    idle(plan, program)
    found, fetched = trained(program, threads=2 * workers if seed % 2 else None)
    assert fetched == program.planned_bytes == plan.cost_bytes
    expected, _ = trained(tofu.lower(graph, tofu.partition(graph, 1)))
    for tensor, value in expected.items():
        largest = float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[tensor], value, rtol=1e-3, atol=2e-4 * largest, err_msg=tensor)


def idle(plan: Plan, program: PartitionedGraph) -> None:
    """A worker computes exactly its tasks."""
    for worker, one in enumerate(program.programs):
        computed = [each.operation for each in one.instructions if isinstance(each, Compute)]
        for operation in program.graph.operations:
            form, bound = plan.strategies[operation.name], operation.bound
            parts = expand(form, bound.full_box, bound.variables.index, plan.factors)  # type: ignore[arg-type]
            assert computed.count(operation.index) == (parts.workers == worker).sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MODELS)
def test_random_assignments(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 104))
@pytest.mark.parametrize("name", MODELS)
def test_many_random_assignments(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
def test_an_all_reduce_moves_the_tensor_twice_to_each_but_one(workers: int) -> None:
    """Data parallel: parameters everywhere, every worker a part of the samples, gradients reduced in two
    hops.
    """
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plan = tofu.partition(graph, workers)
    samples = {o.name: _over_samples(o, workers) for o in graph.operations}
    layouts: dict[str, Any] = {}
    for tensor in graph.tensors:
        split = tensor.shape and tensor.shape[0] == 16
        everywhere = Spread(((None, workers),), tuple(range(workers)))
        form = Spread(((0, workers),), tuple(range(workers))) if split else everywhere
        reduced = not split and tensor.shape and tensor.shape[0] >= workers
        via = Spread(((0, workers),), tuple(range(workers))) if reduced else None
        layouts[tensor.name] = replace(plan.layouts[tensor.name], form=form, via=via)
    total = count_bytes(graph, layouts, samples, plan.factors)[-1]
    plan = replace(
        plan,
        layouts=layouts,
        strategies=samples,
        cost_bytes=total,
        step_cost_bytes=(total,),
        lower_bound_bytes=0,
        unproven=(),
    )
    tofu.verify(graph, plan)
    parameters = [t for t in graph.tensors if t.role.name == "PARAMETER" and t.alias is None]
    nbytes = sum(int(np.prod(t.shape)) * t.itemsize for t in parameters)
    assert total == 2 * (workers - 1) * nbytes
    program = tofu.lower(graph, plan)
    received = [_received(one, program) for one in program.programs]
    assert sum(received) == total
    assert max(received) - min(received) <= total // 50
    found, fetched = trained(program)
    assert fetched == total
    expected, _ = trained(tofu.lower(graph, tofu.partition(graph, 1)))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)


def _over_samples(operation: Any, workers: int) -> Spread:
    """Split an operation along its variable with 16 values, if there is one; repeat it otherwise."""
    bound = operation.bound
    along = [v for v, extent in bound.extents.items() if extent == 16 and bound.kind(v) is not None]
    return Spread(((along[0] if along else None, workers),), tuple(range(workers)))


def _received(one: Any, program: PartitionedGraph) -> int:
    moved = [piece for each in one.instructions for piece in transferred(each) if piece.worker != one.worker]
    tensors = program.graph.tensors
    return sum(
        int(np.prod([b - a for a, b in piece.region]))
        * tensors[program.programs[piece.worker].buffers[piece.buffer].tensor].itemsize
        for piece in moved
    )
