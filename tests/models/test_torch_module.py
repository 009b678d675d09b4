"""Modules of PyTorch as models: batches other than those of their examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tofu
from tofu.cli.target import load_model
from tofu.models.torch_module import of_module

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Doubled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores = torch.nn.Linear(6, 5)

    def forward(self, x: Any, y: Any) -> Any:
        return self.scores((x + y).reshape(x.shape[0], 6))


@pytest.mark.parametrize("batch", [3, 4, 10])
def test_examples_are_repeated_to_the_batch(batch: int) -> None:
    examples = {"x": torch.randn(4, 2, 3), "y": torch.randn(4, 2, 3)}
    model = of_module("doubled", Doubled(), examples, batch)
    assert model.shapes == {"x": (batch, 2, 3), "y": (batch, 2, 3), "softmax_label": (batch,)}
    assert of_module("doubled", Doubled(), tuple(examples.values())).batch == 4


@pytest.mark.parametrize(
    ("examples", "listed"),
    [
        ((torch.zeros(4, 6), torch.zeros(6)), r"\(4, 6\), \(6,\)"),
        ((torch.zeros(4, 6), 2.0), r"\(4, 6\), another value"),
        ((torch.zeros(0, 6),), r"\(0, 6\)"),
        ((torch.zeros(()),), r"\(\)"),
    ],
)
def test_examples_without_a_batch_are_refused(examples: Any, listed: str) -> None:
    with pytest.raises(tofu.GraphError, match=f"the examples of doubled are {listed}, which have no batch"):
        of_module("doubled", Doubled(), examples, 8)


def test_commands_take_a_batch(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch, tofu\n"
        "def build():\n    return torch.nn.Linear(6, 5), (torch.zeros(4, 6),)\n"
        "def zoo():\n    return tofu.models.get('mlp', batch=16)\n"
    )
    assert load_model(f"{file}:build", 12, {}).shapes == {"input": (12, 6), "softmax_label": (12,)}
    assert load_model(f"{file}:zoo", 12, {}).batch == 12
    assert load_model(f"{file}:zoo", None, {}).batch == 16
