"""`tofu lower` prints the programs that `tofu.lower` makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import tofu as package
from tofu.programs.messages import messages

from ..written_plans import BATCH, mixed, training_graph

Tofu = Callable[..., Result]


def test_the_programs_are_printed(tofu: Tofu) -> None:
    graph = package.models.get("mlp", batch=8).training_graph()
    programs = package.lower(graph, package.partition(graph, 4, method="refine"))
    options = ("--workers", "4", "--batch", "8", "--method", "refine")
    assert tofu("lower", "mlp", *options).output == f"{programs}\n"
    one = tofu("lower", "mlp", *options, "--worker", "3", "--operation", "fc2.product")
    assert one.output == programs.text(3, "fc2.product") + "\n"


def test_messages_are_printed(tofu: Tofu) -> None:
    graph = package.models.get("mlp", batch=8).training_graph()
    program = package.lower(graph, package.partition(graph, 2))
    found = messages(program)
    lines = tofu("lower", "mlp", "--workers", "2", "--batch", "8", "--messages").output.splitlines()
    assert lines[0].startswith(f"{found.count} messages at least")
    assert len(lines) == 1 + found.count
    carried = sum(int(re.search(r"([\d,]+) bytes", line)[1].replace(",", "")) for line in lines[1:])  # type: ignore[index]
    assert carried == program.planned_bytes
    one = tofu("lower", "mlp", "--workers", "2", "--batch", "8", "--messages", "--worker", "1")
    assert len(one.output.splitlines()) == 1 + len(found.of[0, 1])
    assert tofu("lower", "mlp", "--workers", "2", "--messages", "--worker", "2").exit_code == 2


def test_a_worker_that_there_is_not_ends_in_a_message(tofu: Tofu) -> None:
    result = tofu("lower", "mlp", "--workers", "2", "--worker", "2")
    assert result.exit_code == 2
    assert "there is no worker 2; workers are numbered 0 to 1" in result.output


@pytest.fixture
def written(tmp_path: Path) -> str:
    """The file of a plan in many forms."""
    path = tmp_path / "plan.json"
    mixed(training_graph()).save(path)
    return str(path)


def test_a_plan_file_is_lowered_as_it_is(tofu: Tofu, written: str) -> None:
    graph = training_graph()
    programs = package.lower(graph, mixed(graph))
    assert tofu("lower", written).output == f"{programs}\n"
    one = tofu("lower", written, "mlp", "--batch", str(BATCH), "--workers", "4", "--worker", "1")
    assert one.output == programs.text(1) + "\n"


def test_what_does_not_go_with_a_plan_file(tofu: Tofu, written: str, tmp_path: Path) -> None:
    document = json.loads(Path(written).read_text(encoding="utf-8"))
    nameless, broken = tmp_path / "nameless.json", tmp_path / "broken.json"
    cut, graph = tmp_path / "cut.json", tmp_path / "graph.json"
    nameless.write_text(json.dumps({key: value for key, value in document.items() if key != "source"}))
    document["operations"]["fc1"] = {"spread": [["n", 2]], "workers": [0, 0, 1]}
    broken.write_text(json.dumps(document))
    cut.write_text(Path(written).read_text(encoding="utf-8")[:-9], encoding="utf-8")
    graph.write_text("{}", encoding="utf-8")
    for arguments, says in (
        ((written, "--workers", "8"), "the plan is for 4 workers, not for 8"),
        ((written, "--method", "refine"), "--method searches a plan for MODEL"),
        ((written, "--batch", "8"), "fingerprint"),
        ((written, "--worker", "4"), "there is no worker 4"),
        ((str(nameless),), "name MODEL after it"),
        ((str(broken),), "2 parts are spread over 3 workers"),
        ((str(cut),), "cut.json"),
        ((str(graph),), "graph.json"),
        (("mlp", "lenet"), "mlp is not a plan file"),
        (("missing.json",), "missing.json"),
    ):
        result = tofu("lower", *arguments)
        assert result.exit_code == 2, arguments
        assert says in result.output
    assert tofu("lower", str(nameless), "mlp", "--batch", str(BATCH)).exit_code == 0
