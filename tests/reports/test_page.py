"""The page of a plan: what it says, how large it is, and that nothing in it can break out of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tofu as package
from tofu.cli import main
from tofu.dataflow.graph import Graph
from tofu.partitioner import Plan
from tofu.partitioner.explaining.explain import explain
from tofu.partitioner.methods.autodist.builders import BUILDERS
from tofu.partitioner.plans.plan import contributors
from tofu.programs.memory import plan_memory
from tofu.reports.page import embedded, render
from tofu.reports.page.data import Comparison, PageData, page_data

Tofu = Callable[..., Result]


def read(path: Path) -> dict:
    """The data in a page."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict, Plan]:
    """The data of LeNet's page, what `--json` prints, and the plan."""
    folder = tmp_path_factory.mktemp("page")
    plan, path = folder / "plan.json", folder / "plan.html"
    arguments = ["plan", "lenet", "--report", str(path), "--save", str(plan), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return read(path), json.loads(result.output), Plan.load(plan)


def test_figures_are_those_of_the_plan(page: tuple[dict, dict, Plan]) -> None:
    data, facts, plan = page
    assert data["facts"] == facts
    moved = 0
    by_tensor: dict[str, int] = {}
    for _, group, tensors in data["operators"]:
        for tensor, (_, count) in zip(tensors, data["operator_groups"][group][3], strict=True):
            moved += count
            name = data["tensors"][tensor][0]
            by_tensor[name] = by_tensor.get(name, 0) + count
    assert moved == plan.cost_bytes
    assert {name: data["tensor_groups"][group][4] for name, group in data["tensors"]} == {
        name: by_tensor.get(name, 0) for name in plan.layouts
    }
    assert data["factors"] == list(plan.factors)
    assert max(data["memory"]["arena_bytes"]) == facts["peak_bytes_per_worker"]


def test_every_operator_and_tensor_has_its_own_choice(page: tuple[dict, dict, Plan]) -> None:
    data, _, plan = page
    choices = {
        name: tuple(data["splits"][data["operator_groups"][group][0]]["choice"])
        for name, group, _ in data["operators"]
    }
    assert choices == plan.strategies
    layouts = {name: data["layouts"][data["tensor_groups"][group][0]] for name, group in data["tensors"]}
    assert layouts.keys() == plan.layouts.keys()
    for name, layout in layouts.items():
        assert tuple(layout["choice"]) == plan.layouts[name].dimensions
        regions = data["regions"][layout["picture"][1]]
        assert len(regions) == plan.workers


def test_the_time_of_an_iteration_needs_a_machine(page: tuple[dict, dict, Plan], tmp_path: Path) -> None:
    data, _, _ = page
    assert data["time"] is None
    path = tmp_path / "plan.html"
    arguments = ["plan", "mlp", "--workers", "2", "--machine", "dgx-1-v100", "--report", str(path), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    time = read(path)["time"]
    assert [sum(parts) for parts in time["shares"]] == pytest.approx([1, 1])
    assert (time["machine"], time["source"]) == ("dgx-1-v100", "estimated")
    assert '<symbol id="lanes"' in path.read_text(encoding="utf-8")


def test_alternatives_are_those_of_explain(page: tuple[dict, dict, Plan]) -> None:
    data, _, plan = page
    graph = package.models.get("lenet").training_graph()
    largest = contributors(graph, plan)[0].operation
    group = next(group for name, group, _ in data["operators"] if name == largest)
    choices, chosen, held, following, together, complete = data["alternatives"][
        data["operator_groups"][group][2]
    ]
    explanation = explain(graph, plan, largest, "operator")
    said = {
        ",".join("-" if entry is None else entry for entry in alternative.choice): (
            alternative.held_bytes - plan.cost_bytes,
            alternative.following_bytes - plan.cost_bytes,
        )
        for alternative in explanation.alternatives
    }
    assert dict(zip(data["choices"][choices], zip(held, following, strict=True), strict=True)) == said
    assert said[chosen] == (0, explanation.chosen.following_bytes - plan.cost_bytes)
    assert (together, complete) == (1, True)


def test_methods_that_take_long_are_named_and_left_out(page: tuple[dict, dict, Plan]) -> None:
    data, _, _ = page
    assert {entry["method"].partition(":")[0] for entry in data["methods"]} == {
        "all-row",
        "zero-3",
        "megatron",
        "megatron-sp",
        "spartan",
        "equal-chop",
        "icml18",
        "data-parallel",
        "one-weird-trick",
        "refine",
        *BUILDERS,
    }
    placing = {"pardnn", "pardnn-heuristic-1", "pardnn-heuristic-2", "place"}
    searching = {"exact", "flexflow", "anneal", "auto", "autodist", "wu-2016"}
    assert data["left_out"].keys() == searching | placing


def made(graph: Graph, workers: int) -> PageData:
    """A page without other methods."""
    plan = package.partition(graph, workers)
    facts = {"model": graph.name, "workers": workers}
    return page_data(graph, plan, facts, plan_memory(package.lower(graph, plan)), Comparison([], {}))


def test_a_large_model_stays_small() -> None:
    graph = package.models.get("wresnet-152-10", batch=8).training_graph()
    page = made(graph, 8)
    assert len(render(page).encode()) < 2_000_000
    assert len(page.data["operators"]) == len(graph.operations) > 2000
    assert max(block["times"] for block in page.data["layers"]) == 35


def test_more_workers_than_can_be_drawn_are_drawn_by_group() -> None:
    data = made(package.models.get("mlp").training_graph(), 128).data
    assert data["drawn_workers"] == len(data["colours"]) == 64
    assert {len(regions) for regions in data["regions"]} == {64}
    assert data["priced"] is False
    assert all(group[2] is None for group in data["operator_groups"])


def test_one_worker(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    assert tofu("plan", "mlp", "--workers", "1", "--report", str(path)).exit_code == 0
    assert read(path)["facts"]["cost_bytes"] == 0


def test_needs_nothing_from_outside(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    assert f"page written to {path}" in tofu("plan", "mlp", "--report", str(path)).output
    text = path.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"' <]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|script|iframe)[^>]+(src|href)=[\"'](?!data:)", text)


def test_names_stay_names() -> None:
    text = embedded({"name": "</script><script>alert(1)</script><!--"})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><script>alert(1)</script><!--"}


@pytest.mark.parametrize(
    ("path", "says"),
    [(".", "is a folder"), ("missing/plan.html", "there is no folder"), ("/dev/full", "is not a file")],
)
def test_a_path_that_cannot_be_written_is_refused_first(
    tofu: Tofu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, says: str
) -> None:
    monkeypatch.setattr("tofu.cli.target.load_model", lambda *_: pytest.fail("the model was made"))
    result = tofu("plan", "mlp", "--report", str(tmp_path / path))
    assert result.exit_code == 2
    assert says in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_written_whole_or_not_at_all(
    tofu: Tofu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.html"
    path.write_text("the page before", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tofu.support.atomic_files.Files.sync", full)
    result = tofu("plan", "mlp", "--report", str(path))
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert [found.name for found in tmp_path.iterdir()] == ["plan.html"]
    assert path.read_text(encoding="utf-8") == "the page before"


def test_a_comparison_has_no_page(tofu: Tofu) -> None:
    result = tofu("plan", "mlp", "--compare", "--report", "plan.html")
    assert result.exit_code == 2
    assert "choose one by --method" in result.output
