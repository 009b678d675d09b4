"""Two options that write to one place are refused before anything runs."""

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
