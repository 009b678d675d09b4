"""Plan files and verification: what is saved comes back, and nothing broken gets through."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from tofu import models
from tofu.errors import GraphError, PlanError
from tofu.partitioner import partition
from tofu.partitioner.layouts.forms import Spread
from tofu.partitioner.layouts.step_split import Layout
from tofu.partitioner.plans.origin import PlanOrigin
from tofu.partitioner.plans.plan import Plan, contributors, decode_plan
from tofu.partitioner.plans.plan_file import encode_plan
from tofu.support.strict_documents import JSON_LIMIT_BYTES


@pytest.fixture(scope="module")
def matmul(toy, texts):
    builder = toy()
    a, b = builder.tensor(8, 6, name="a"), builder.tensor(6, 4, name="b")
    builder.apply(texts["RELU"], builder.apply(texts["MATMUL"], a, b))
    return builder.graph()


@pytest.fixture(scope="module")
def plan(matmul):
    return partition(matmul, 4)


def test_saved_plans_come_back(graph, tmp_path):
    for workers in (1, 2, 6, 7, 8):
        plan = partition(graph, workers)
        path = tmp_path / f"{workers}.json"
        plan.save(path)
        loaded = Plan.load(str(path))
        assert loaded == plan
        assert loaded.search_seconds is None
        loaded.verify(graph)
        assert encode_plan(loaded) == path.read_text()
        for name, layout in plan.layouts.items():
            np.testing.assert_array_equal(loaded.layouts[name].regions, layout.regions)


def test_where_the_graph_came_from_comes_back(plan, tmp_path):
    source = PlanOrigin("mlp-symbol.json", 16, {"data": (16, 784)}, "adam", "bfloat16", 4, 8, True)
    recorded = dataclasses.replace(plan, source=source)
    recorded.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == recorded
    text = encode_plan(recorded)
    later = ', "dtype": "bfloat16", "accumulate": 4, "recompute": 8, "unroll": true'
    assert later in text
    older = decode_plan(text.replace(later, "").encode())
    assert older.source == PlanOrigin("mlp-symbol.json", 16, {"data": (16, 784)}, "adam")
    for old, new in (
        ('"batch": 16', '"batch": 0'),
        ('"batch": 16', '"batch": "16"'),
        ("[16, 784]", "[-1]"),
        ('"accumulate": 4', '"accumulate": 0'),
        ('"unroll": true', '"unroll": 1'),
        ('"recompute": 8', '"recompute": 0'),
    ):
        with pytest.raises(PlanError, match="source"):
            decode_plan(text.replace(old, new).encode())


def test_the_same_graph_gives_the_same_file(matmul, tmp_path):
    for name in ("first", "second"):
        partition(matmul, 8).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_saving_over_a_file_replaces_it_whole(plan, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old")
    plan.save(path)
    assert Plan.load(path) == plan
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_a_saved_plan_is_readable_by_whom_other_files_are(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    (tmp_path / "other").write_text("")
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_plan_that_cannot_be_written_leaves_nothing(plan, tmp_path):
    with pytest.raises(PlanError, match="cannot write the plan file"):
        plan.save(tmp_path / "missing" / "plan.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PlanError, match="cannot write the plan file"):
        plan.save(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_unreadable_files_name_themselves(tmp_path):
    with pytest.raises(PlanError, match=r"cannot read the plan file '.*absent.json'"):
        Plan.load(tmp_path / "absent.json")
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(JSON_LIMIT_BYTES + 1)
    with pytest.raises(PlanError, match="is larger than"):
        Plan.load(large)
    text = tmp_path / "text.json"
    text.write_text("[]")
    with pytest.raises(
        PlanError, match=r"text.json' cannot be used: the file is a list; it must be an object"
    ):
        Plan.load(text)


SAMPLING = {"seed": 0, "proposals": 1, "beta": 1.0, "seconds": 1.0}


def put(document, path, value):
    *above, last = path
    for key in above:
        document = document[key]
    document[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "tofu graph", "\"format\" is 'tofu graph'"),
        (["version"], 3, '"version" is 3; this Tofu reads versions 1 and 2'),
        (["version"], True, "version is true; it must be an integer"),
        (["surplus"], 1, "the file has an unknown key 'surplus'"),
        (["workers"], 8, '"factors" [2, 2] do not multiply to "workers" 8'),
        (["workers"], 0, "workers is 0; it must lie between 1 and"),
        (["workers"], 4.0, "workers is 4.0; it must be an integer"),
        (["factors"], [4, 1], "factors[1] is 1; it must lie between 2"),
        (["factors"], {"2": 2}, "factors is an object; it must be a list"),
        (["cost_bytes"], -1, "cost_bytes is -1"),
        (["cost_bytes"], 1 << 80, "cost_bytes is 1208925819614629174706176"),
        (["cost_bytes"], "0", 'cost_bytes is "0"; it must be an integer'),
        (["step_cost_bytes"], [1], '"step_cost_bytes" [1] must be one number per factor'),
        (["lower_bound_bytes"], 1 << 40, "lower_bound_bytes is 1099511627776"),
        (["fingerprint"], None, "fingerprint is null; it must be a string"),
        (["step_seconds"], 10**400, "step_seconds is too large for a number"),
        (["step_seconds"], -1, "step_seconds is -1.0; it must be finite and at least 0"),
        (["step_seconds"], "1", 'step_seconds is "1"; it must be a number'),
        (["sampling"], SAMPLING | {"beta": 10**400}, "sampling: beta is 1000"),
        (["sampling"], SAMPLING | {"seconds": 10**400}, "sampling: seconds is 1000"),
        (["sampling"], SAMPLING | {"slower": 10**400}, "sampling: slower is 1000"),
        (["sampling"], SAMPLING | {"beta": True}, "sampling: beta is True; give a finite number"),
        (["tensors"], [], "tensors is a list; it must be an object"),
        (["tensors", "a"], 3, "tensors['a'] is 3; it must be an object"),
        (["tensors", "a", "regions"], [], "tensors['a'] has an unknown key 'regions'"),
        (["tensors", "a", "shape"], [8, -6], "tensors['a'].shape[1] is -6"),
        (["tensors", "a", "shape"], [8, 1 << 60], "tensors['a'].shape[1] is 1152921504606846976"),
        (["tensors", "a", "shape"], [1, 1], "has 1 element left in a group, too few for 2 parts"),
        (
            ["tensors", "a", "dimensions"],
            [0, 2],
            "tensors['a'].dimensions[1] is 2; it must lie between 0 and 1",
        ),
        (["tensors", "a", "dimensions"], [0], "tensors['a']: 1 choice for 2 steps"),
        (["tensors", "a", "dimensions"], [0, "1"], "tensors['a'].dimensions[1] is \"1\""),
        (["operations", "matmul0"], "ij", "operations['matmul0'] is \"ij\"; it must be a list"),
        (["operations", "matmul0"], ["i", 3], "operations['matmul0'][1] is 3; it must be a string"),
        (["operations", "matmul0"], [], "operations['matmul0']: 0 choices for 2 steps"),
    ],
)
def test_broken_entries_are_named(plan, path, value, message):
    document = json.loads(encode_plan(plan))
    put(document, path, value)
    with pytest.raises(PlanError, match=re.escape(message)):
        decode_plan(json.dumps(document).encode())


def test_broken_forms_are_told_what_forms_there_are(plan):
    document = json.loads(encode_plan(plan))
    document["version"] = 2
    document["tensors"] = {"a": {"shape": [8, 6], "form": 3}}
    with pytest.raises(PlanError, match=r'null, \{"at": group\} or \{"partial": true\} for each step'):
        decode_plan(json.dumps(document).encode())


@pytest.mark.parametrize("key", ["fingerprint", "workers", "tensors", "lower_bound_bytes"])
def test_missing_keys_are_named(plan, key):
    document = json.loads(encode_plan(plan))
    del document[key]
    with pytest.raises(PlanError, match=f"the file lacks '{key}'"):
        decode_plan(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"workers": 4', '"workers": 4, "workers": 4', "the key 'workers' occurs twice"),
        ('"b": {', '"a": {', "the key 'a' occurs twice"),
        ('"workers": 4', '"workers": NaN', "NaN is not a number that a file may contain"),
        ('"workers": 4', '"workers": -Infinity', "-Infinity is not a number"),
        ('"workers": 4', '"workers": ' + "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('"workers": 4', '"workers": ' + "9" * 5000, "not JSON"),
        ('"workers": 4,', '"workers": 4', "not JSON"),
        ("}\n", "", "not JSON"),
        ('"method"', "\ufeff", "not JSON"),
    ],
)
def test_broken_json_is_refused(plan, old, new, message):
    text = encode_plan(plan)
    assert old in text
    with pytest.raises(PlanError, match=re.escape(message)):
        decode_plan(text.replace(old, new).encode())


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(PlanError, match="not JSON"):
        decode_plan(b"\xff\xfe\x00")


def test_every_truncation_is_refused(plan):
    text = encode_plan(plan).rstrip()
    for length in range(0, len(text), 7):
        with pytest.raises(PlanError):
            decode_plan(text[:length].encode())


def test_a_plan_is_for_one_graph(plan, matmul, toy, texts):
    other = toy()
    a, b = other.tensor(8, 6, name="a"), other.tensor(6, 4, name="b")
    other.apply(texts["RELU"], other.apply(texts["MATMUL"], a, b))
    plan.verify(other.graph())
    other.apply(texts["RELU"], a)
    with pytest.raises(PlanError, match=r"does not contain tensor 't4' \(1 in all\); .* another model"):
        plan.verify(other.graph())
    with pytest.raises(PlanError, match=r"names tensor 't4', which is not in the graph"):
        partition(other.graph(), 4).verify(matmul)

    wider = toy()
    a, b = wider.tensor(8, 6, name="a"), wider.tensor(6, 5, name="b")
    wider.apply(texts["RELU"], wider.apply(texts["MATMUL"], a, b))
    with pytest.raises(PlanError, match="fingerprint"):
        plan.verify(wider.graph())


def test_a_model_is_no_graph(plan):
    with pytest.raises(GraphError, match=r"not a Model; call model\.training_graph\(\)"):
        plan.verify(models.get("mlp"))


def changed(plan, **fields):
    return dataclasses.replace(plan, **fields)


def test_illegal_choices_are_found(plan, matmul):
    def with_strategy(*strategy):
        return changed(plan, strategies={**plan.strategies, "matmul0": strategy})

    with pytest.raises(
        PlanError, match=r"'matmul0', step 2: matmul cannot be split along 'q'.*along i, j, k"
    ):
        with_strategy("i", "q").verify(matmul)
    with pytest.raises(PlanError, match="1 choice for 2 steps"):
        with_strategy("i").verify(matmul)
    layout = Layout((8, 6), (5, 0), (2, 2))
    with pytest.raises(PlanError, match=r"tensor 'a', step 1: a tensor of shape \(8, 6\) has no dimension 5"):
        changed(plan, layouts={**plan.layouts, "a": layout}).verify(matmul)
    layout = Layout((8, 8), (0, 0), (2, 2))
    with pytest.raises(PlanError, match=r"tensor 'a': the plan splits shape \(8, 8\)"):
        changed(plan, layouts={**plan.layouts, "a": layout}).verify(matmul)


def test_too_small_extents_are_found(toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(3, 9))
    graph = builder.graph()
    plan = partition(graph, 4)
    with pytest.raises(PlanError, match="'relu0', step 2: 'i' has 1 value left in a group, too few for 2"):
        changed(plan, strategies={"relu0": ("i", "i")}).verify(graph)


def test_aliases_with_another_layout_are_found(toy, texts):
    builder = toy()
    weight = builder.tensor(4, 4)
    builder.apply(texts["UPDATE"], weight, builder.tensor(4, 4), builder.tensor(1), aliases=(weight,))
    graph = builder.graph()
    plan = partition(graph, 2)
    (dimension,) = plan.layouts["t0"].dimensions
    other = Layout((4, 4), (1 - dimension,), (2,))
    with pytest.raises(PlanError, match=f"'t3' overwrites 't0' but has another layout: {1 - dimension}, and"):
        changed(plan, layouts={**plan.layouts, "t3": other}).verify(graph)
    home = plan.layouts["t0"]
    summed = dataclasses.replace(home, via=Spread((), (1,)))
    with pytest.raises(PlanError, match=f": {dimension}, reduced as whole on worker 1, and not {dimension};"):
        changed(plan, layouts={**plan.layouts, "t3": summed}).verify(graph)


def test_false_costs_are_found(graph):
    plan = partition(graph, 4, keep=False)
    first, second = plan.step_cost_bytes
    with pytest.raises(PlanError, match="the plan states"):
        changed(plan, cost_bytes=plan.cost_bytes + 4).verify(graph)
    with pytest.raises(PlanError, match="the plan states"):
        changed(plan, step_cost_bytes=(first + 4, second - 4)).verify(graph)
    with pytest.raises(PlanError, match="lower bound"):
        changed(plan, lower_bound_bytes=plan.cost_bytes + 1).verify(graph)


def test_contributors_sum_to_the_cost_in_falling_order(graph):
    for workers in (1, 3, 8):
        plan = partition(graph, workers)
        entries = contributors(graph, plan)
        amounts = [entry.bytes for entry in entries]
        assert sum(amounts) == plan.cost_bytes
        assert amounts == sorted(amounts, reverse=True)
        assert all(amounts)


def test_contributors_tell_what_moves(toy, texts):
    builder = toy()
    builder.apply(texts["TOTAL"], builder.tensor(8, 8, name="a"))
    graph = builder.graph()
    (entry,) = contributors(graph, partition(graph, 2, keep=False))
    assert (entry.operation, entry.kind, entry.bytes) == ("total0", "reduce", 8)
