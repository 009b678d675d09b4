"""The display of values in notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import tofu
from tofu.partitioner import lower
from tofu.programs.memory import MemoryPlan, plan_memory
from tofu.reports.notebook import html
from tofu.reports.units import format_bytes

CONV1D = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""


def elements(value: object) -> ElementTree.Element:
    """Return the display in a notebook, parsed: it must be well formed."""
    shown = value._repr_html_()
    return ElementTree.fromstring(f"<div>{shown}</div>")


@pytest.fixture(scope="module")
def plan() -> tofu.Plan:
    return tofu.partition(tofu.models.get("lenet").training_graph(), workers=8)


def test_a_plan(plan: tofu.Plan) -> None:
    page = elements(plan)
    text = "".join(page.itertext())
    assert "recursive plan over 8 workers (2 x 2 x 2)" in text
    for count in (plan.cost_bytes, plan.lower_bound_bytes, *plan.step_cost_bytes):
        assert format_bytes(count) in text
    layouts = set(plan.layouts.values())
    assert len(page.findall(".//svg")) == min(len(layouts), 12)
    if len(layouts) > 12:
        assert "more tensors in layouts" in text


def test_a_time_line(plan: tofu.Plan) -> None:
    graph = tofu.models.get("lenet").training_graph()
    timeline = tofu.simulate(lower(graph, plan), "dgx-1-v100")
    page = elements(timeline)
    assert len(page.findall(".//svg")) == 1
    assert len(page.findall(".//tbody/tr")) == 8
    assert "dgx-1-v100; times of computations are estimated" in "".join(page.itertext())


def test_an_operator_and_its_strategies() -> None:
    bound = tofu.parse(CONV1D).bind({"data": (4, 3, 12), "filters": (3, 6, 3)})
    page = elements(bound)
    text = "".join(page.itertext())
    assert "def conv1d(data, filters):" in text
    assert [each.attrib["style"] for each in page.findall("pre")] == ["font-family: monospace"]
    assert "x split over 2 workers" in text
    assert "halo: 1 along 2" in text
    one = "".join(elements(bound.strategies[2]).itertext())
    assert "x split over 2 workers" in one
    assert "b split" not in one


def test_an_operator_with_stages_and_one_without_strategies() -> None:
    text = "".join(elements(tofu.operators.get("softmax").bind({"data": (4, 6)})).itertext())
    assert "split over 2 workers" in text
    alone = "".join(elements(tofu.parse("def f(a): return lambda i: a[i]").bind({"a": (1,)})).itertext())
    assert "not split:" in alone
    assert "its extent is 1" in alone


def test_a_memory_plan(plan: tofu.Plan) -> None:
    memory = plan_memory(lower(tofu.models.get("lenet").training_graph(), plan))
    page = elements(memory)
    text = "".join(page.itertext())
    assert format_bytes(max(memory.arena_bytes)) in text
    assert len(page.findall(".//svg")) == 1
    assert len(page.findall(".//table")[0].findall(".//tbody/tr")) == 8


def test_text_is_escaped() -> None:
    layout = {"<b>": tofu.partitioner.layouts.step_split.Layout((4,), (0,), (2,))}
    plan = tofu.Plan("", 2, (2,), "<i>", layout, {}, 0, (0,), 0)
    shown = html(plan)
    assert "<b>" not in shown.replace("<b>&lt;i&gt;", "")
    assert "&lt;b&gt;" in shown
    empty = MemoryPlan((0,), (np.zeros(1, np.int64),), ((),), ({},), ((),), ())
    assert "0 B" in html(empty)


def test_what_has_no_page() -> None:
    with pytest.raises(TypeError, match="int has no page"):
        html(3)
