"""Plans of any form on the terminal, in notebooks and on pages."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.indices.region import to_region
from tofu.partitioner.explaining.difference import difference
from tofu.partitioner.explaining.explain import explain
from tofu.partitioner.explaining.weights import folded, layers
from tofu.partitioner.layouts.parts import holdings, tasks
from tofu.partitioner.plans.form_document import encode_form
from tofu.plans import Cut, Parts, Spread, compose
from tofu.programs.memory import plan_memory
from tofu.reports import difference as difference_report
from tofu.reports import explanation as explanation_report
from tofu.reports import layers as layers_report
from tofu.reports import plan as plan_report
from tofu.reports.drawing.layout import layout_drawing
from tofu.reports.drawing.marks import Label
from tofu.reports.page import render
from tofu.reports.page.data import Comparison, PageData, page_data
from tofu.reports.units import format_region
from tofu.support import compiled

from ..partitioner.lowering.test_assignments import network, random_plan
from ..written_plans import READERS, SWAPPED, mixed, placed, training_graph


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print tables as in files, whatever runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def graph() -> Any:
    return training_graph()


@pytest.fixture(scope="module")
def plan(graph: Any) -> tofu.Plan:
    return mixed(graph)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that were printed, without the rules of tables."""
    return [" ".join(line.replace("│", " ").split()) for line in capsys.readouterr().out.splitlines()]


def test_an_explanation(graph: Any, plan: tofu.Plan, capsys: pytest.CaptureFixture[str]) -> None:
    explanation_report.show(explain(graph, plan, "fc2.product", "operator"))
    said = lines(capsys)
    assert said[0].startswith(
        "operator fc2.product (n: 16, h: 64, k: 128) has the form n cut at 3, 7 on workers 0, 2, 0;"
    )
    assert said[1] == "it is number 5 in the order of the plan"
    for line in (
        "0 [0:3, 0:64, 0:128]",
        "2 [3:7, 0:64, 0:128]",
        "0 [7:16, 0:64, 0:128]",
        "without a part: workers 1, 3",
        f"fc2_weight 1 home whole on worker 2 {READERS[0]} {READERS[1]} 2",
    ):
        assert line in said
    assert said[-1].startswith(
        "alternatives are priced only for plans in steps, and operation 'flatten' is whole"
    )
    assert not any("choosing again" in line for line in said)


def test_partial_results_and_long_lists(capsys: pytest.CaptureFixture[str]) -> None:
    graph = network("mlp")
    k = next(o for o in graph.operations if o.name == "fc1.product").bound.extents["k"]
    cut = Cut("k", tuple(range(1, 14)), tuple(number % 2 for number in range(14)))
    everywhere = Spread(((None, 2),), (0, 1))
    plan = compose(graph, 2, {"fc1.product": cut, "*": everywhere}, {"*": everywhere})
    explanation_report.show(explain(graph, plan, "fc1.product", "operator"))
    said = lines(capsys)
    assert "┃ worker ┃ n, h, k ┃ partial result ┃" in said
    assert "1 [0:8, 0:128, 1:2] 1" in said
    assert "4 more with --json" in said
    explanation_report.show(explain(graph, plan, "fc1.product", "tensor"))
    assert any(line.startswith("its partial results are reduced as ") for line in lines(capsys))
    assert k > 14


def test_a_difference(graph: Any, plan: tofu.Plan, capsys: pytest.CaptureFixture[str]) -> None:
    difference_report.show(difference(graph, placed(graph), plan), ("a.json", "b.json"))
    said = lines(capsys)
    assert any("whole on worker 0 n/2,h/2 on workers 3, 1, 0, 2" in line for line in said)
    assert "1 tensor with other copies" in said
    assert "fc2_weight none whole on worker 2, for " + ", ".join(READERS[::-1]) in said
    assert "2 operators at other places in the order" in said
    assert f"{SWAPPED[1]} 15 16" in said
    difference_report.show(difference(graph, plan, plan), ("a.json", "b.json"))
    assert lines(capsys)[0] == "the plans make the same choices"


def test_layers(graph: Any, plan: tofu.Plan, capsys: pytest.CaptureFixture[str]) -> None:
    layers_report.show(folded(layers(graph, plan)), plan.workers)
    said = lines(capsys)
    (second,) = (line for line in said if line.startswith("fc2_weight 64 x 128"))
    assert second.endswith("worker 1 workers 0, 2")
    layers_report.show(folded(layers(graph, tofu.partition(graph, 4))), 4)
    assert not any("computed by" in line for line in lines(capsys))


def facts(graph: Any, plan: tofu.Plan) -> dict[str, Any]:
    return {
        "model": graph.name,
        "workers": plan.workers,
        "batch": 16,
        "accumulate": 1,
        "unroll": False,
        "recompute": 1,
        "dtype": "float32",
        "operators": len(graph.operations),
        "tensors": len(graph.tensors),
        "weight_state_bytes": 1,
        "single_device_peak_bytes": 1,
        "cost_bytes": plan.cost_bytes,
        "step_cost_bytes": list(plan.step_cost_bytes),
        "lower_bound_bytes": plan.lower_bound_bytes,
        "peak_bytes_per_worker": 1,
        "flops_per_worker": [1] * plan.workers,
        "space": str(plan.space),
        "live_bytes_per_worker": 1,
        "unproven_steps": [],
        "method": plan.method,
        "search_seconds": plan.search_seconds,
    }


def test_the_report_of_a_plan(graph: Any, plan: tofu.Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plan_report.show(graph, plan, facts(graph, plan), plan_memory(tofu.lower(graph, plan)))
    said = lines(capsys)
    assert any(
        line.startswith("fc1.product n/2, h/2 on workers 3, 1, 0, 2 fetch fc1_weight") for line in said
    )
    assert any(line.startswith("fc2_weight 1 home whole on worker 2") for line in said)
    assert (
        "operations run in an order of the plan: 2 places differ from the graph's; number 15 is "
        f"{SWAPPED[0]} instead of {SWAPPED[1]}"
    ) in said
    assert said[-1] == "nothing is proven of plans that are not in steps"
    assert not any("-way" in line for line in said)
    unmoved = dataclasses.replace(
        plan, written_order=tuple(o.name for o in graph.operations), search_seconds=1.5
    )
    plan_report.show(graph, unmoved, facts(graph, plan), plan_memory(tofu.lower(graph, unmoved)))
    said = lines(capsys)
    assert "operations run in the order of the graph" in said
    assert said[-1] == "nothing is proven of plans that are not in steps; searched in 1.50 s"


def test_compiled_loops_are_recommended_for_long_searches(
    graph: Any, plan: tofu.Plan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recommended = "compiled loops make long searches several times faster: pip install '.[search]' in"
    for installed, seconds, expected in ((False, 21.0, True), (False, 19.0, False), (True, 21.0, False)):
        monkeypatch.setattr(compiled, "COMPILED", installed)
        searched = dataclasses.replace(plan, search_seconds=seconds)
        plan_report.show(graph, searched, facts(graph, plan), plan_memory(tofu.lower(graph, plan)))
        assert lines(capsys)[-1].startswith(recommended) == expected


def test_a_notebook(plan: tofu.Plan) -> None:
    page = ElementTree.fromstring(f"<div>{plan._repr_html_()}</div>")
    text = " ".join(page.itertext())
    assert "written plan over 4 workers (not in steps)" in text
    assert "3 parts on workers 0, 2" in text
    assert "whole on worker 2" in text
    assert READERS[1] in text
    assert "order of" in text
    assert len(page.findall(".//svg")) == min(len(set(plan.layouts.values())), 12)
    many = dataclasses.replace(plan, copies={"fc2_weight": plan.copies["fc2_weight"] * 15})
    assert "3 more copies in <code>copies</code>" in many._repr_html_()


def test_tiles_of_parts_on_some_workers(plan: tofu.Plan) -> None:
    drawing = layout_drawing(plan.layouts["fc1_weight"])
    assert {mark.text for mark in drawing.marks if isinstance(mark, Label)} == {"0", "2"}
    whole = layout_drawing(plan.layouts["fc2_weight"])
    assert [mark.text for mark in whole.marks if isinstance(mark, Label)] == ["1"]


def made(graph: Any, plan: tofu.Plan) -> PageData:
    memory = plan_memory(tofu.lower(graph, plan))
    return page_data(graph, plan, facts(graph, plan), memory, Comparison([], {}))


def texts(parts: Any, workers: int) -> list[str]:
    """The text that a page lists for each worker."""
    found: list[dict[str, None]] = [{} for _ in range(workers)]
    for worker, box in parts:
        found[worker][format_region(box)] = None
    return ["; ".join(boxes) or "no part" for boxes in found]


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_pages_list_the_parts_of_every_worker(graph: Any, plan: tofu.Plan, seed: int | None) -> None:
    if seed is not None:
        graph = network("lstm")
        plan = random_plan(graph, 2 + seed, seed)
    page = made(graph, plan)
    data = page.data
    assert data["in_steps"] is data["priced"] is False
    assert data["unpriced"]
    for name, group in data["tensors"]:
        layout = data["layouts"][data["tensor_groups"][group][0]]
        held = holdings(plan.layouts[name])
        assert list(data["regions"][layout["picture"][1]]) == texts(
            ((part.worker, part.region) for part in held), plan.workers
        )
        assert layout["choice"] == encode_form(plan.layouts[name].form)
        assert layout["terms"] == len({part.term for part in held})
    for operation, (name, group, _) in zip(graph.operations, data["operators"], strict=True):
        split = data["splits"][data["operator_groups"][group][0]]
        form = plan.strategies[name]
        assert split["choice"] == encode_form(form)
        parts = tasks(operation.bound, form, plan.factors)
        verb, _, _, regions, *_ = split["tensors"][-1]
        made_last = operation.bound.output_regions(_boxes(parts))[-1]
        assert verb == "makes"
        workers = [part.worker for part in parts]
        outputs = zip(workers, map(to_region, made_last), strict=True)
        assert list(data["regions"][regions]) == texts(outputs, plan.workers)
    assert (
        sum(c for _, g, _ in data["operators"] for _, c in data["operator_groups"][g][3]) == plan.cost_bytes
    )
    assert len(data["copies"]) == sum(map(len, plan.copies.values()))
    names = [data["operators"][number][0] for number in data["order"] or ()]
    assert tuple(names) == (plan.written_order or ())
    assert render(page).startswith("<!DOCTYPE html>")


def _boxes(parts: Any) -> Any:
    return np.array([part.box for part in parts], np.int64)


def test_the_copies_of_a_page(graph: Any, plan: tofu.Plan) -> None:
    data = made(graph, plan).data
    (copy,) = data["copies"]
    assert data["tensors"][copy["tensor"]][0] == "fc2_weight"
    assert (copy["version"], copy["source"]) == (1, 0)
    assert tuple(data["operators"][number][0] for number in copy["readers"]) == READERS
    layout = data["layouts"][copy["layout"]]
    assert layout["words"] == "whole on worker 2"
    assert list(data["regions"][layout["picture"][1]]) == ["no part", "no part", "[0:64, 0:128]", "no part"]
    split = data["splits"][data["operator_groups"][_group(data, "relu1")][0]]
    assert (split["words"], split["chosen"]) == ("i0, @1", {"i0": "step 1"})
    split = data["splits"][data["operator_groups"][_group(data, "fc2.product")][0]]
    assert split["chosen"] == {"n": "in 3"}


def _group(data: dict[str, Any], name: str) -> int:
    return next(group for operator, group, _ in data["operators"] if operator == name)


def test_a_halo_needs_parts_in_a_row() -> None:
    """Boxes that lie criss-cross have no neighbours of which both read an element."""
    graph = tofu.models.get("lenet", batch=4).training_graph()
    name = next(o.name for o in graph.operations if "x0" in o.bound.variables and o.bound.reads)
    bound = next(o for o in graph.operations if o.name == name).bound
    extents = [(0, bound.extents[variable]) for variable in bound.variables]
    axis, other = bound.variables.index("x0"), bound.variables.index("n")
    middle, batch = extents[axis][1] // 2, extents[other][1]

    def box(**cut: tuple[int, int]) -> Any:
        return tuple(cut.get(v, whole) for v, whole in zip(bound.variables, extents, strict=True))

    rows = Cut("x0", (middle,), (0, 1))
    criss_cross = Parts(
        (
            (0, box(n=(0, batch // 2))),
            (0, box(n=(batch // 2, batch), x0=(0, middle))),
            (1, box(n=(batch // 2, batch), x0=(middle, extents[axis][1]))),
        )
    )
    halos = []
    for form in (rows, criss_cross):
        everywhere = Spread(((None, 2),), (0, 1))
        plan = compose(graph, 2, {name: form, "*": everywhere}, {"*": everywhere})
        data = made(graph, plan).data
        split = data["splits"][data["operator_groups"][_group(data, name)][0]]
        halos.append([entry[5] for entry in split["tensors"] if len(entry) > 5])
    assert halos[0]
    assert halos[1] == []


def test_many_workers_are_drawn_by_group() -> None:
    graph = tofu.models.get("mlp", batch=128).training_graph()
    order = tuple(reversed(range(128)))
    plan = compose(
        graph,
        128,
        {"*": Spread((), (0,))},
        {"fc1_weight": Spread(((0, 128),), order), "*": Spread((), (127,))},
    )
    data = made(graph, plan).data
    assert data["drawn_workers"] == len(data["colours"]) == 64
    layout = data["layouts"][data["tensor_groups"][dict(data["tensors"])["fc1_weight"]][0]]
    regions = data["regions"][layout["picture"][1]]
    assert len(regions) == 64
    assert regions[0] == "[126:127, 0:784]; [127:128, 0:784]"


def test_one_worker_in_forms() -> None:
    graph = training_graph()
    here = {"*": Spread((), (0,))}
    data = made(graph, compose(graph, 1, here, here)).data
    assert data["drawn_workers"] == 1
