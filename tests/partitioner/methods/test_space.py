"""The spaces of a search: what tensors may be, where inputs arrive, and what is proven about both."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu import PlanError
from tofu.dataflow.graph import Role
from tofu.partitioner import METHODS, Plan, partition
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.sequences import by_batch, is_possible

NESTED = ((False, False), (True, False), (True, True))
SPACES = [Space(replicate, feed, keep) for replicate, keep in NESTED for feed in ("batch", "anywhere")]
COPYING = Space(True, "batch", True, activations=True)


def planned(graph, workers, method, space):
    return partition(
        graph,
        workers,
        method,
        replicate=space.replicate,
        keep=space.keep,
        feed=space.feed,
        copy_activations=space.activations,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_plans_lie_in_their_space(graph, method, space):
    plan = planned(graph, 6, method, space)
    plan.verify(graph)
    assert plan.space == dataclasses.replace(space, keep=space.keep and METHODS[method].keeps)
    for tensor in graph.tensors:
        dimensions = plan.layouts[tensor.name].form
        if space.feed == "batch" and tensor.role is Role.DATA:
            assert dimensions == by_batch(tensor.shape, plan.factors)
        else:
            extents = dict(enumerate(tensor.shape))
            assert is_possible(extents, plan.factors, dimensions, space.replicate, plan.space.keep)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_larger_spaces_have_better_plans(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=3))
    workers = data.draw(st.sampled_from([2, 4, 6]))
    split, replicated = (
        partition(graph, workers, "exact", replicate=wide, keep=False) for wide in (False, True)
    )
    assert replicated.cost_bytes <= split.cost_bytes


def test_larger_spaces_have_better_plans_of_a_model():
    graph = tofu.models.get("mlp").training_graph()
    split, free_split, wide, free_wide, kept, free_kept = (
        planned(graph, 8, "exact", space).cost_bytes for space in SPACES
    )
    assert kept < wide < split
    assert free_kept < free_wide < free_split
    assert (free_split, free_wide, free_kept) < (split, wide, kept)


def test_copies_of_activations_make_no_plan_worse():
    graph = tofu.models.get("wresnet-10-1", batch=8, image=(3, 16, 16)).training_graph()
    kept, wider = (
        planned(graph, 4, "refine", dataclasses.replace(COPYING, activations=wide)) for wide in (False, True)
    )
    wider.verify(graph)
    assert wider.cost_bytes <= kept.cost_bytes
    assert str(wider.space) == str(kept.space).replace(" made,", " made, with copies of activations,")


@pytest.mark.parametrize(
    "other",
    [
        {"keep": False},
        {"method": "data-parallel"},
        {"method": "anneal", "machine": "dgx-1-v100"},
        {"objective": "time", "machine": "dgx-1-v100"},
    ],
)
def test_copies_of_activations_need_a_search_that_keeps_copies(graph, other):
    with pytest.raises(PlanError, match=r"leave them out .*, or choose one of recursive, refine, exact with"):
        partition(graph, 2, copy_activations=True, **other)


@pytest.mark.parametrize("space", [*SPACES, COPYING], ids=str)
def test_files_keep_the_space(graph, space, tmp_path):
    plan = planned(graph, 4, "recursive", space)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    text = (tmp_path / "plan.json").read_text()
    assert ('"space"' in text) == (space != Space())
    if space == Space(True, "batch", True):
        for old, new, said in (
            (
                '"kept"',
                '"lost"',
                'space.copies is \'lost\'; it must be "kept" or "kept with activations", or left out',
            ),
            ('"replicated"', '"both"', "space.tensors is 'both'; it must be one of split, replicated"),
            ('"batch"', '"box"', "there is no feed 'box'; there are: batch, anywhere"),
        ):
            (tmp_path / "plan.json").write_text(text.replace(old, new))
            with pytest.raises(PlanError, match=said):
                Plan.load(tmp_path / "plan.json")


def test_an_input_that_is_pinned_is_fed_so():
    graph = tofu.models.get("mlp").training_graph()
    plan = partition(graph, 8, constraints=["pin data=2"])
    assert plan.layouts["data"].dimensions == (2, 2, 2)
    assert plan.layouts["softmax_label"].dimensions == (0, 0, 0)


def test_unknown_feeds_are_refused():
    graph = tofu.models.get("mlp").training_graph()
    with pytest.raises(PlanError, match="there is no feed 'box'; there are: batch, anywhere"):
        partition(graph, 2, feed="box")


def test_a_method_that_feeds_inputs_elsewhere_is_told_so(toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(4, 4, role=Role.DATA, name="data"))

    def columns(problem, workers):
        free = problem.cost(0)
        return tofu.search.Solution((2,), (("j",),), ((1,), (1,)), free, free)

    with pytest.raises(
        PlanError, match="splits the input 'data' along \\(1,\\), but it is fed along \\(0,\\)"
    ):
        partition(builder.graph(), 2, columns, keep=False)
