"""Plans as DTensor and JAX say them: their rules give the parts of the plan, and nothing is dropped.

The rules are written here once more, element by element: DTensor's for a dimension is `torch.chunk` from the
first axis to the last, JAX's numbers equal parts by the axes of the spec.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.partitioner.layouts.parts import tasks
from tofu.partitioner.translation.placements import Replicate, Shard, Unreduced
from tofu.plans import Copy, Cut, Partial, Spread, compose

MESHES = [{"dp": 4, "tp": 2}, {"a": 2, "b": 2, "c": 2}, {"all": 8}, {"one": 1, "dp": 2, "tp": 4}]


@functools.cache
def trained(model: str) -> Graph:
    return tofu.models.get(model, batch=16).training_graph()


@functools.cache
def planned(model: str, method: str) -> tofu.Plan:
    return tofu.partition(trained(model), 8, method, memory="unlimited")


CASES = [("mlp", "recursive"), ("mlp", "zero-3"), ("lenet", "recursive"), ("lenet", "data-parallel")]
CASES += [("mlp", "megatron:dp4-tp2"), ("mlp", "equal-chop")]


def places(mesh: dict[str, int], worker: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(worker, tuple(mesh.values())))


def dtensor_region(shape: Any, placements: Any, mesh: dict[str, int], worker: int) -> list[list[int]]:
    """Return the indices that a worker holds of each dimension."""
    held = [list(range(extent)) for extent in shape]
    for placement, size, place in zip(placements, mesh.values(), places(mesh, worker), strict=True):
        if isinstance(placement, Shard):
            left = held[placement.dim]
            chunk = max(-(-len(left) // size), 1)
            held[placement.dim] = left[place * chunk : (place + 1) * chunk]
    return held


def jax_region(shape: Any, spec: Any, mesh: dict[str, int], worker: int) -> list[list[int]]:
    place = dict(zip(mesh, places(mesh, worker), strict=True))
    held = []
    for extent, entry in zip(shape, spec, strict=True):
        names = () if entry is None else (entry,) if isinstance(entry, str) else entry
        cut = np.arange(extent).reshape(*(mesh[name] for name in names), -1)
        held.append(cut[tuple(place[name] for name in names)].tolist())
    return held


def elements(region: Any) -> list[list[int]]:
    return [list(range(lower, upper)) for lower, upper in region]


REGIONS = {"DTensor": dtensor_region, "JAX": jax_region}


def translated(plan: tofu.Plan, system: str, mesh: dict[str, int]) -> Any:
    return plan.to_dtensor(mesh) if system == "DTensor" else plan.to_jax(mesh)


@pytest.mark.parametrize("system", REGIONS)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize(("model", "method"), CASES)
def test_rules_give_the_parts_of_the_plan(model: str, method: str, mesh: dict[str, int], system: str) -> None:
    graph, plan = trained(model), planned(model, method)
    found = translated(plan, system, mesh)
    for name, said in found.tensors.items():
        layout = plan.layouts[name]
        assert len(layout.regions) == 8
        terms = {}
        for holding in plan.versions[name][0].holdings:
            region = REGIONS[system](layout.shape, said, mesh, holding.worker)
            assert region == elements(holding.region), (name, said)
            place = places(mesh, holding.worker)
            summed = [p for p, one in zip(place, said, strict=False) if isinstance(one, Unreduced)]
            assert terms.setdefault(tuple(summed), holding.term) == holding.term
        assert len(set(terms.values())) == len(terms)
    for operation in graph.operations:
        if operation.name in found.operations:
            check_operation(graph, plan, operation, found, mesh)
    subjects = Counter(each.subject for each in found.unsaid if each.reason.kind != "copy")
    assert max(subjects.values(), default=1) == 1
    said = {f"tensor {name!r}" for name in found.tensors} | {f"operation {n!r}" for n in found.operations}
    every = {f"tensor {tensor.name!r}" for tensor in graph.tensors}
    every |= {f"operation {operation.name!r}" for operation in graph.operations}
    assert said | set(subjects) == every
    assert said.isdisjoint(subjects)


def check_operation(graph: Graph, plan: tofu.Plan, operation: Any, found: Any, mesh: dict[str, int]) -> None:
    """Hold what an operation reads inside the parts of its inputs, and its outputs against theirs."""
    bound, said = operation.bound, found.operations[operation.name]
    region = REGIONS[found.system]
    listed = tasks(bound, plan.strategies[operation.name], plan.factors)
    for task in listed:
        box = np.array([task.box], np.int64)
        reads = bound.input_regions(box)
        for place, name in bound.read_places:
            shape = graph.tensors[operation.inputs[place]].shape
            given = region(shape, said.inputs[place], mesh, task.worker)
            read = elements(reads[name][0].tolist())
            if all(read):
                assert all(set(r) <= set(g) for r, g in zip(read, given, strict=True)), operation.name
        for index, made, output in zip(
            operation.outputs, bound.output_regions(box), said.outputs, strict=True
        ):
            given = region(graph.tensors[index].shape, output, mesh, task.worker)
            assert given == elements(made[0].tolist())
    if found.system == "DTensor" and any(task.term is not None for task in listed):
        assert any(isinstance(one, Unreduced) for output in said.outputs for one in output)


@pytest.mark.torch
@pytest.mark.parametrize(("model", "method"), CASES)
def test_torch_gives_the_parts_of_the_plan(model: str, method: str) -> None:
    pytest.importorskip("torch")
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset

    from tofu.partitioner.translation.dtensor import to_torch

    plan = planned(model, method)
    for mesh in MESHES:
        for name, said in plan.to_dtensor(mesh).tensors.items():
            sizes, placements = tuple(mesh.values()), to_torch(said)
            for holding in plan.versions[name][0].holdings:
                extents, offsets = _compute_local_shape_and_global_offset(
                    plan.layouts[name].shape, sizes, list(places(mesh, holding.worker)), placements
                )
                found = [(o, o + e) for o, e in zip(offsets, extents, strict=True)]
                assert found == list(holding.region), (name, said)


def of_relu(operation: Any, tensor: Any, shape: tuple[int, ...] = (8, 8), **more: Any) -> tofu.Plan:
    """Return a plan for `y = relu(x)` on four workers."""
    net = tofu.sym.relu(tofu.sym.Variable("x"), name="y")
    graph = tofu.inference_graph(net, {"x": shape})
    return compose(graph, 4, {"y": operation}, {"x": tensor}, **more)


WHOLE = (None, None)
FOUR = {"a": 2, "b": 2}
HAND_MADE = [
    (
        "uneven",
        of_relu(WHOLE, Cut(0, (1, 4, 6), (0, 1, 2, 3))),
        FOUR,
        "has [0:1, 0:8]",
        "would have [0:2, 0:8]",
    ),
    ("workers", of_relu(WHOLE, Spread((), (2,))), FOUR, "3 workers have no part: 0, 1, 3", ""),
    ("workers", of_relu(WHOLE, Spread(((0, 4),), (1, 0, 3, 2))), FOUR, "in another order", ""),
    ("parts", of_relu(WHOLE, Spread(((0, 8),), (0, 1, 2, 3) * 2)), FOUR, "worker 0 has 2 parts", ""),
    ("axis", of_relu(WHOLE, (0, 1)), {"all": 4}, "axis 'all' cuts dimensions 0 and 1", ""),
    ("uneven", of_relu(WHOLE, (0, 0), (6, 8)), FOUR, "", ""),
    ("copy", of_relu(WHOLE, (0, 0), copies={"x": [Copy(WHOLE, ("y",))]}), FOUR, "copy 1, for y,", ""),
    ("order", of_relu(WHOLE, WHOLE, order=["y"]), FOUR, "an order of their own", ""),
]


@pytest.mark.parametrize(("kind", "plan", "mesh", "first", "second"), HAND_MADE)
@pytest.mark.parametrize("system", REGIONS)
def test_what_cannot_be_said_is_named(
    kind: str, plan: tofu.Plan, mesh: dict[str, int], first: str, second: str, system: str
) -> None:
    found = translated(plan, system, mesh)
    named = [each for each in found.unsaid if each.reason.kind == kind]
    assert named, str(found)
    if system == "DTensor":
        assert first in str(named[0])
        assert second in str(named[0])


def test_a_halo_is_named_with_its_width() -> None:
    data = tofu.sym.Variable("data")
    net = tofu.sym.Convolution(data=data, kernel=(5, 5), pad=(2, 2), num_filter=8, no_bias=True, name="conv")
    graph = tofu.inference_graph(net, {"data": (2, 3, 16, 20)})
    plan = compose(graph, 4, {"conv": ("x0", "x0")}, {"data": (2, 2), "conv_weight": WHOLE})
    for system in REGIONS:
        (only,) = translated(plan, system, FOUR).unsaid
        assert only.subject == "operation 'conv'"
        assert only.reason.kind == "halo"
        assert "of 'data', workers read up to 2 elements beyond their part of dimension 2" in str(only)


def test_nested_cuts_in_another_order_are_said_by_jax_alone() -> None:
    nested = Spread(((0, 2), (0, 2)), (0, 2, 1, 3))
    plan = of_relu(Spread((("i0", 2), ("i0", 2)), (0, 2, 1, 3)), nested)
    spoken = plan.to_jax(FOUR)
    assert spoken.tensors == {"x": (("b", "a"), None), "y_output": (("b", "a"), None)}
    assert spoken.unsaid == ()
    assert {each.reason.kind for each in plan.to_dtensor(FOUR).unsaid} == {"nesting"}


def test_terms_are_said_by_dtensor_alone() -> None:
    x, y = tofu.sym.Variable("x"), tofu.sym.Variable("y")
    left = tofu.sym.FullyConnected(x, num_hidden=32, no_bias=True, name="left")
    net = tofu.sym.elemwise_add(left, y, name="sum")
    graph = tofu.inference_graph(net, {"x": (16, 64), "y": (16, 32)})
    forms = {"left": ("n", "k"), "sum": ("i0", None)}
    held = {"x": (0, 1), "left_weight": (None, 1), "left_output": (0, None), "y": (0, None)}
    plan = compose(graph, 4, forms, held)
    found = plan.to_dtensor(FOUR)
    assert found.unsaid == ()
    assert found.operations["left"].outputs == ((Shard(0), Unreduced("sum")),)
    assert found.operations["left"].inputs == ((Shard(0), Shard(1)), (Replicate(), Shard(1)))
    assert found.tensors["left_output"] == (Shard(0), Replicate())
    (only,) = plan.to_jax(FOUR).unsaid
    assert only.reason.kind == "terms"
    assert "b have terms of a Sum" in only.reason.text


def test_a_tensor_may_stay_unreduced() -> None:
    x, y = tofu.sym.Variable("x"), tofu.sym.Variable("y")
    layers = [
        tofu.sym.FullyConnected(each, num_hidden=32, no_bias=True, name=name)
        for each, name in ((x, "left"), (y, "right"))
    ]
    graph = tofu.inference_graph(tofu.sym.elemwise_add(*layers, name="sum"), {"x": (16, 64), "y": (16, 64)})
    terms = (Partial(), Partial())
    forms = {"left": ("k", "k"), "right": ("k", "k"), "sum": terms}
    plan = compose(graph, 4, forms, {"[xy]": (1, 1), "*_weight": (1, 1), "sum_output": WHOLE})
    found = plan.to_dtensor(FOUR)
    assert found.unsaid == ()
    assert found.tensors["left_output"] == (Unreduced("sum"), Unreduced("sum"))
    assert found.operations["sum"].inputs == (found.tensors["left_output"],) * 2


def test_a_reducer_of_a_user_has_no_name() -> None:
    text = (
        "def joined(data):\n"
        "    LogSumExp = Reducer(lambda a, b: maximum(a, b) + log1p(exp(-abs(a - b))), -inf)\n"
        "    return lambda i: LogSumExp(lambda k: data[i, k])\n"
    )
    graph = tofu.inference_graph(
        tofu.sym.apply(tofu.parse(text), tofu.sym.Variable("data"), name="n"), {"data": (8, 8)}
    )
    plan = compose(graph, 4, {"n": ("k", "k")}, {"data": (1, 1), "n_output": WHOLE})
    (only,) = plan.to_dtensor(FOUR).unsaid
    assert only.reason.kind == "reduction"
    assert "terms are combined by LogSumExp" in only.reason.text


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({"dp": 4}, "the mesh dp=4 has 4 workers, but the plan is for 8; change a size"),
        ({}, "give sizes by name"),
        ({"dp": 0, "tp": 8}, "axis 'dp' of the mesh has size 0"),
        ({"dp": True, "tp": 8}, "axis 'dp' of the mesh has size True"),
        ({3: 8}, "an axis of the mesh has the name 3"),
        ([4, 2], "give sizes by name"),
        ({"dp": 1 << 40}, "there can be"),
    ],
)
def test_meshes_that_cannot_be_are_refused(mesh: Any, message: str) -> None:
    with pytest.raises(tofu.PlanError, match=message.replace("(", r"\(")):
        planned("mlp", "recursive").to_dtensor(mesh)


def test_a_plan_of_a_file_needs_its_graph(tmp_path: Any) -> None:
    path = tmp_path / "plan.json"
    planned("mlp", "recursive").save(path)
    read = tofu.Plan.load(path)
    with pytest.raises(tofu.PlanError, match=r"plan\.of"):
        read.to_jax({"dp": 8})
    mesh = {"dp": 8}
    assert read.of(trained("mlp")).to_jax(mesh) == planned("mlp", "recursive").to_jax(mesh)
