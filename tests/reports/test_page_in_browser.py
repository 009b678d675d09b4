"""The page in a browser: its numbers are the plan's, the keyboard reaches everything, and it is readable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tofu
from tofu.cli import main
from tofu.partitioner import Plan
from tofu.partitioner.explaining.explain import explain
from tofu.partitioner.plans.plan import contributors
from tofu.programs.memory import plan_memory
from tofu.reports.drawing.palette import contrast
from tofu.reports.page import render
from tofu.reports.page.data import Comparison, page_data

from ..written_plans import READERS, mixed, training_graph
from .test_written_plans import facts

pytestmark = pytest.mark.browser

READABLE = 4.5
"""The least contrast of text by the Web Content Accessibility Guidelines, level AA."""

MODEL = "lenet"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Plan]:
    """A page, the figures of `--json`, and the plan."""
    folder = tmp_path_factory.mktemp("page")
    page, plan = folder / "plan.html", folder / "plan.json"
    result = CliRunner().invoke(main, ["plan", MODEL, "--report", str(page), "--save", str(plan), "--json"])
    assert result.exit_code == 0, result.output
    return page, json.loads(result.output), Plan.load(plan)


@pytest.fixture
def opened(chromium: Any, planned: tuple[Path, dict[str, Any], Plan]) -> Iterator[Callable[..., Any]]:
    """`opened(color_scheme="dark")` opens the page; fails where the browser complains of anything."""
    complaints: list[str] = []
    contexts = []

    def open_page(fragment: str = "", **options: Any) -> Any:
        context = chromium.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(planned[0].as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def numbers(page: Any, selector: str) -> list[int]:
    return page.eval_on_selector_all(
        f"{selector} [data-bytes], {selector}[data-bytes]", "all => all.map(e => Number(e.dataset.bytes))"
    )


def test_numbers_are_those_of_the_plan(
    opened: Callable[..., Any], planned: tuple[Path, dict[str, Any], Plan]
) -> None:
    _, facts, plan = planned
    page = opened()
    assert page.title() == f"{MODEL} over 8 workers"
    assert page.locator("#time").count() == 0
    assert numbers(page, "#cost") == [plan.cost_bytes]
    assert numbers(page, "#bound") == [plan.lower_bound_bytes]
    assert numbers(page, "#peak") == [facts["peak_bytes_per_worker"]]
    assert numbers(page, "#by-step") == list(plan.step_cost_bytes)
    assert sum(numbers(page, "#by-phase")) == sum(numbers(page, "#by-kind")) == plan.cost_bytes
    for section in ("#operators", "#tensors"):
        while page.locator(f"{section} button.plain").is_visible():
            page.locator(f"{section} button.plain").click()
        assert sum(numbers(page, f"{section} tbody")) == plan.cost_bytes
    methods = page.locator("#methods tbody tr").all_inner_texts()
    assert {text.split()[0] for text in methods} >= {plan.method, "data-parallel", "all-row"}


def test_an_operator_opens_by_keyboard_and_closes_again(
    opened: Callable[..., Any], planned: tuple[Path, dict[str, Any], Plan]
) -> None:
    plan = planned[2]
    page = opened()
    page.locator("#operators input").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "name":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    name = page.evaluate("document.activeElement.textContent")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    assert dialog.locator("h2").inner_text().startswith(name)
    assert page.url.endswith(f"#operator={name}")
    graph = tofu.models.get(MODEL).training_graph()
    operation = next(operation for operation in graph.operations if operation.name == name)
    explanation = explain(graph, plan, name, "operator")
    assert dialog.locator("pre").inner_text().startswith(f"def {operation.bound.description.name}(")
    assert dialog.locator("svg use").count() == len(operation.bound.reads) + len(operation.outputs)
    changes = page.eval_on_selector_all(
        "#alternatives [data-change]", "all => all.map(e => Number(e.dataset.change))"
    )
    cheapest = min(entry.following_bytes for entry in explanation.alternatives)
    assert changes[1] == cheapest - plan.cost_bytes
    assert sorted(changes[1::2]) == changes[1::2]
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Space")
    assert page.locator("dialog[open] h2").inner_text().startswith(name)


def test_every_row_can_be_reached_and_walked(opened: Callable[..., Any]) -> None:
    page = opened()
    buttons = page.locator("#tensors tbody button.name")
    buttons.first.focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == buttons.last.inner_text()
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.textContent") == buttons.first.inner_text()


def test_search_and_sort(opened: Callable[..., Any], planned: tuple[Path, dict[str, Any], Plan]) -> None:
    plan = planned[2]
    page = opened()
    first = page.locator("#operators tbody button.name").first
    graph = tofu.models.get(MODEL).training_graph()
    moved: Counter[str] = Counter()
    for entry in contributors(graph, plan):
        moved[entry.operation] += entry.bytes
    assert first.inner_text() == moved.most_common(1)[0][0]
    sizes = numbers(page, "#operators tbody")
    assert sizes == sorted(sizes, reverse=True)
    heading = page.locator("#operators thead th", has_text="bytes moved")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    sizes = numbers(page, "#operators tbody")
    assert sizes == sorted(sizes)
    page.locator("#operators thead button").first.click()
    names = page.locator("#operators tbody button.name").all_inner_texts()
    assert names == sorted(names)
    page.locator("#operators input").fill("FC2")
    matching = page.locator("#operators tbody button.name").all_inner_texts()
    assert matching
    assert all("fc2" in name for name in matching)
    page.locator("#operators input").fill("no such operator")
    assert page.locator("#operators tbody tr").count() == 0
    assert "0 of" in page.locator("#operators [role=status]").inner_text()


def test_an_address_opens_what_it_names(opened: Callable[..., Any]) -> None:
    page = opened("#tensor=fc1_weight")
    assert page.locator("dialog[open] h2").inner_text().startswith("fc1_weight")
    page.locator("dialog[open] button.close").click()
    assert page.locator("dialog[open]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(opened: Callable[..., Any], scheme: str) -> None:
    page = opened("#tensor=fc1_weight", color_scheme=scheme)
    pairs = page.evaluate(
        """() => {
          const solid = colour => colour !== 'rgba(0, 0, 0, 0)';
          const behind = element => {
            for (; element; element = element.parentElement) {
              const colour = getComputedStyle(element).backgroundColor;
              if (solid(colour)) return colour;
            }
            return 'rgb(255, 255, 255)';
          };
          const leaves = [...document.querySelectorAll('body *:not(svg *):not(script):not(noscript)')].filter(
            element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
          return [...new Set(leaves.map(e => [getComputedStyle(e).color, behind(e), e.tagName].join('|')))];
        }"""
    )
    assert len(pairs) > 10
    backgrounds = set()
    for pair in pairs:
        text, background, tag = pair.split("|")
        assert contrast(hexadecimal(text), hexadecimal(background)) >= READABLE, (tag, text, background)
        backgrounds.add(background)
    assert ("rgb(255, 255, 255)" in backgrounds) == (scheme == "light")


def hexadecimal(colour: str) -> str:
    """`rgb(1, 2, 3)` as `#010203`."""
    channels = colour.removeprefix("rgb(").removesuffix(")").split(", ")
    return "#" + "".join(f"{int(channel):02X}" for channel in channels)


def test_names_are_shown_as_they_are(chromium: Any, tmp_path: Path) -> None:
    """A graph file may name its nodes as it likes; nothing of that becomes part of the page."""
    model, page = tmp_path / "odd.py", tmp_path / "odd.html"
    odd = "</script><img src=x onerror=alert(1)>"
    model.write_text(
        "import tofu\n"
        "def build():\n"
        f"    fc = tofu.sym.FullyConnected(tofu.sym.Variable('data'), num_hidden=4, name={odd!r})\n"
        "    net = tofu.sym.SoftmaxOutput(fc, name='softmax')\n"
        "    return tofu.models.Model('<i>odd</i>', net, {'data': (8, 6)}, {'softmax_label': (8,)})\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(main, ["plan", f"{model}:build", "--report", str(page)])
    assert result.exit_code == 0, result.output
    context = chromium.new_context(offline=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.goto(page.as_uri())
    assert opened.locator("h1").inner_text() == "<i>odd</i>"
    opened.locator("#operators input").fill("script")
    opened.locator("#operators tbody button.name").first.click()
    assert opened.locator("dialog[open] h2").inner_text().startswith(odd)
    assert opened.locator("img").count() == 0
    context.close()
    assert complaints == []


def test_a_narrow_window_does_not_scroll_sideways(opened: Callable[..., Any]) -> None:
    page = opened(viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_print_is_light_and_hides_what_paper_cannot_do(opened: Callable[..., Any]) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#operators input").is_visible()
    assert page.locator("#layers table").is_visible()
    colours = page.evaluate(
        "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle(document.documentElement))"
    )
    assert contrast(hexadecimal(colours[0]), "#FFFFFF") == 1
    assert contrast(*map(hexadecimal, colours)) >= READABLE


def test_a_plan_in_other_forms(chromium: Any, tmp_path: Path) -> None:
    """Copies, the order and the parts of each worker are there; a plan in steps has no such sections."""
    graph = training_graph()
    plan = mixed(graph)
    programs = tofu.lower(graph, plan)
    memory, timeline = plan_memory(programs), tofu.simulate(programs, "dgx-1-v100")
    page = tmp_path / "plan.html"
    page.write_text(render(page_data(graph, plan, facts(graph, plan), memory, Comparison([], {}), timeline)))
    context = chromium.new_context(offline=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(page.as_uri() + "#operator=fc2.product")
    dialog = opened.locator("dialog[open]")
    text = dialog.inner_text()
    assert "in the form n cut at 3, 7 on workers 0, 2, 0; moves" in text
    assert "number 5 in the order of the plan" in text
    assert "Not priced: alternatives are priced only for plans in steps" in text
    assert "in 3" in text
    dialog.locator("summary").first.click()
    assert "[0:3, 0:64]; [7:16, 0:64]" in dialog.inner_text()
    opened.locator("dialog button.close").click()
    assert numbers(opened, "#cost") == [plan.cost_bytes]
    assert sum(numbers(opened, "#by-kind")) == plan.cost_bytes
    assert opened.locator("#time svg").get_attribute("aria-label").startswith("Lanes of workers and links")
    assert opened.locator("#time tbody tr").count() == plan.workers
    (copy,) = opened.locator("#copies tbody tr").all_inner_texts()
    assert copy.split() == ["fc2_weight", "1", "home", "whole", "on", "worker", "2", *READERS, "2"]
    order = [text.split()[1] for text in opened.locator("#order tbody tr").all_inner_texts()]
    assert order == list(plan.written_order or ())
    opened.locator("#order tbody button", has_text="relu1").first.click()
    assert "i0, @1" in opened.locator("dialog[open]").inner_text()
    context.close()
    assert complaints == []


def test_a_plan_in_steps_has_neither_copies_nor_order(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("#copies, #order").count() == 0
    links = page.locator("nav a").all_inner_texts()
    assert links == ["Layers", "Bytes", "Operators", "Tensors", "Memory", "Methods"]
