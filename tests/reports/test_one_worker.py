"""Reports of plans for one worker name one worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import tofu
from tofu.cli import main


def test_no_command_speaks_of_one_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = [
        CliRunner().invoke(main, line.split()).output
        for line in (
            "plan mlp --workers 1 --save plan.json --report page.html",
            "verify plan.json",
            "verify plan.json --workers 2",
            "simulate plan.json --machine pcie-8",
            "lower plan.json --operation fc1",
            "describe sum --workers 1",
        )
    ]
    graph = tofu.models.get("mlp").training_graph()
    plan = tofu.partition(graph, 1)
    program = tofu.lower(graph, plan)
    values = plan, program, tofu.programs.plan_memory(program), tofu.simulate(program, "pcie-8")
    for text in (*said, Path("page.html").read_text(), *map(repr, values)):
        assert "1 worker" in text
        assert not re.search(r"(?<!of )\b1 workers", text)
