"""Functions with a backward pass of their own are read if it is that of their forward pass."""

from __future__ import annotations

from typing import Any

import pytest

import tofu
from tofu.errors import GraphError

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from .agreement import require_agreement  # noqa: E402


class Sign(torch.autograd.Function):
    """A sign through which gradients pass unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


class Exponential(torch.autograd.Function):
    """An exponential with the gradient that it has."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.saved_tensors[0]


class Layer(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function, self.scores = function, torch.nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return self.function.apply(self.scores(x))


def test_another_gradient_is_refused() -> None:
    with pytest.raises(GraphError, match="Sign has a backward pass of its own"):
        tofu.from_torch(Layer(Sign), (torch.ones(2, 3),))
    assert "apply" in vars(torch.autograd.Function)


def test_the_same_gradient_is_derived() -> None:
    torch.manual_seed(0)
    require_agreement(Layer(Exponential), torch.randn(2, 3))
