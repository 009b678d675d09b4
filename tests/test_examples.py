"""Every example runs, and learns what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def _marked(example: Path) -> object:
    """Return the example as a parameter, marked if it needs the extra `torch`."""
    needs = "import torch" in example.read_text(encoding="utf-8")
    return pytest.param(example, marks=pytest.mark.torch) if needs else example


@pytest.mark.parametrize("example", [_marked(each) for each in EXAMPLES], ids=lambda path: path.name)
def test_example(example: Path, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("torch"):
        pytest.importorskip("torch", reason="the extra `torch` is not installed")
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    accuracies = [float(value) for value in re.findall(r"held-out accuracy ([\d.]+)", done.stdout)]
    assert accuracies
    assert accuracies[-1] > 0.9
