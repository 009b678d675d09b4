"""Families of models: outputs and gradients as PyTorch computes them, on 1 and 8 workers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from tests.importers.torch.agreement import require_agreement  # noqa: E402
from tests.importers.torch.models import FAMILIES  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_pytorch(family: str, training: bool) -> None:
    torch.manual_seed(0)
    kind, make = FAMILIES[family]
    require_agreement(kind().train(training), *make())


@pytest.mark.parametrize("family", ["perceptron", "lenet", "residual", "recommender", "mixture"])
def test_agrees_on_8_workers(family: str) -> None:
    torch.manual_seed(0)
    kind, make = FAMILIES[family]
    require_agreement(kind(), *make(), workers=(8,))
