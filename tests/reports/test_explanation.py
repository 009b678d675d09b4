"""Explanations as pages of text: what does not fit is counted, and the choice is always shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.partitioner import partition
from tofu.partitioner.explaining.explain import Explanation, explain
from tofu.reports import explanation as page


@pytest.fixture(scope="module")
def product() -> Explanation:
    """Of a plan in six steps, with more alternatives than are listed or looked at."""
    graph = tofu.models.get("mlp").training_graph()
    return explain(graph, partition(graph, 64), "fc1.product")


def shown(explanation: Explanation, capsys: pytest.CaptureFixture[str]) -> list[str]:
    page.show(explanation)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def rows(lines: list[str]) -> list[str]:
    """First cells of the alternatives' table."""
    start = next(index for index, line in enumerate(lines) if line == "Alternatives")
    return [line.split(" │")[0].strip("│ ") for line in lines[start:] if line.startswith("│")]


def test_alternatives_beyond_those_listed_are_counted(
    product: Explanation, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(product, capsys)
    assert rows(lines)[-1] == f"{len(product.alternatives) - 10} more with --json"
    assert lines[-1] == "alternatives differ in a single step, or in the order of two; there are more"
    whole = replace(product, alternatives=product.alternatives[:10], complete=True)
    assert len(rows(shown(whole, capsys))) == 10


def test_the_choice_is_shown_behind_cheaper_ones(
    product: Explanation, capsys: pytest.CaptureFixture[str]
) -> None:
    others = tuple(entry for entry in product.alternatives if entry is not product.chosen)
    *_, chosen, more = rows(shown(replace(product, alternatives=(*others, product.chosen)), capsys))
    assert chosen == ",".join(map(str, product.choice))
    assert more == f"{len(product.alternatives) - 11} more with --json"


def test_what_moves_least_is_counted(product: Explanation, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(replace(product, moved=product.moved * 13), capsys)
    assert any(line.startswith(f"│ {13 * len(product.moved) - 10} more ") for line in lines)
