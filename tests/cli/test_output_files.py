"""Two options that write to one place, or one that writes what is read, are refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result


@pytest.mark.parametrize(
    ("asked", "first", "second"),
    [
        (("plan", "mlp", "-w", "2"), "save", "report"),
        (("frontier", "mlp", "--machine", "pcie-8"), "plot", "save"),
        (("train", "mlp", "--epochs", "1"), "log", "plot"),
        (("train", "mlp", "--epochs", "1"), "checkpoint", "log"),
        (("train", "mlp", "--epochs", "1"), "plot", "arrivals"),
    ],
)
def test_two_outputs_have_two_places(
    tofu: Callable[..., Result], tmp_path: Path, asked: tuple[str, ...], first: str, second: str
) -> None:
    path = tmp_path / "same.svg"
    again = tmp_path / "folder" / ".." / "same.svg"
    (tmp_path / "folder").mkdir()
    result = tofu(*asked, f"--{first}", str(path), f"--{second}", str(again))
    assert result.exit_code == 2
    assert f"--{first} and --{second} both write" in " ".join(result.stderr.split())
    assert not path.exists()


@pytest.mark.parametrize(
    ("asked", "source", "output"),
    [
        (("plan", "FILE.json"), "MODEL", "save"),
        (("plan", "FILE.py:build"), "MODEL", "report"),
        (("plan", "mlp", "--method", "manual", "--layouts", "FILE.yaml"), "--layouts", "save"),
        (("plan", "mlp", "--machine", "FILE.yaml"), "--machine", "save"),
        (("frontier", "mlp", "--machine", "FILE.svg"), "--machine", "plot"),
        (("simulate", "FILE.json", "--machine", "pcie-8"), "PLAN", "trace"),
        (("simulate", "plan.json", "FILE.onnx", "--machine", "pcie-8"), "MODEL", "trace"),
        (("sync", "mlp", "--strategy", "FILE.yaml"), "--strategy", "save"),
        (("sync", "mlp", "--builder", "ps", "--base", "FILE.json"), "--base", "save"),
        (("place", "FILE.json", "--machine", "pcie-8"), "GRAPH", "save"),
        (("profile", "FILE.json", "mlp"), "MODEL or PLAN", "save"),
        (("train", "mlp", "--plan", "FILE.json"), "--plan", "log"),
        (("train", "mlp", "--data", "FILE.npz"), "--data", "arrivals"),
        (("train", "mlp", "--replay", "FILE.jsonl"), "--replay", "log"),
    ],
)
def test_nothing_that_is_read_is_written(
    tofu: Callable[..., Result], tmp_path: Path, asked: tuple[str, ...], source: str, output: str
) -> None:
    given = [each.replace("FILE", str(tmp_path / "same")) for each in asked]
    path = next(tmp_path / Path(each.split(":")[0]).name for each in given if str(tmp_path) in each)
    path.write_text("kept")
    result = tofu(*given, f"--{output}", str(path))
    assert result.exit_code == 2
    assert f"which is read as {source}; name another file" in " ".join(result.stderr.split())
    assert path.read_text() == "kept"


def test_an_output_may_be_called_as_a_model_or_a_preset(
    tofu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert tofu("plan", "mlp", "-w", "2", "--save", "mlp", "--machine", "p100-node").exit_code == 0
