"""Commands print names as they are, also those that look like styles of a console, and escape controls."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tofu.cli import main

NETWORK = """
from tofu import models, sym
def build():
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc[/x]")
    return models.Model("m[/y]", sym.SoftmaxOutput(body, name="[red]out"), {"data": (16, 6)})
"""
CONVOLUTION = (
    *("Convolution", "--shape", "data=1,2,5,5"),
    *("--set", "kernel=3,3", "--set", "num_filter=2"),
)


def printed(*arguments: str) -> str:
    ended = CliRunner(env={"COLUMNS": "200"}).invoke(main, arguments, color=True)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_brackets_in_names_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NETWORK)
    model = "net.py:build"
    planned = printed("plan", model, "--workers", "2", "--save", "plan.json")
    assert "m[/y], batch 16" in planned
    assert "fc[/x]" in planned
    for arguments, says in (
        (("explain", "plan.json", model), "fc[/x]_weight"),
        (("explain", "plan.json", "fc[/x]", model), "operator fc[/x] ("),
        (("simulate", "plan.json", model, "--machine", "pcie-8"), "m[/y] on 2 workers"),
        (("sync", model, "--builder", "ps", "--workers", "2"), "m[/y], over 2 workers"),
        (("describe", *CONVOLUTION, "--set", "cudnn_tune=[/z]"), "cudnn_tune=[/z]"),
    ):
        assert says in printed(*arguments)


def test_the_place_of_a_synchronised_plan_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = printed("sync", "mlp", "--builder", "ps", "--workers", "2", "--save", "\x1b[31m.json")
    assert said.splitlines()[-1] == r"plan written to \x1b[31m.json"
