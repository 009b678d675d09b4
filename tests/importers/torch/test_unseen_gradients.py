"""Modules whose gradients an exported program does not have are refused, and no others."""

from __future__ import annotations

from typing import Any

import pytest

import tofu

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402

from .agreement import require_agreement  # noqa: E402
from .models import Function, normal  # noqa: E402


def _changed_without_gradients(self: Any, x: Any) -> Any:
    y = self.weight * 2
    with torch.no_grad():
        y[0] = 3.0
    return x * y


def _parameter_changed(self: Any, x: Any) -> Any:
    with torch.no_grad():
        self.weight.clamp_(min=0.5)
    return x * self.weight


def _changed_through_memory(self: Any, x: Any) -> Any:
    y = self.weight * 2
    y.view(3, 1).detach()[1] = 3.0
    return x * y


def _changed_through_memory_without_gradients(self: Any, x: Any) -> Any:
    y = self.weight * 2
    z = y.detach()
    with torch.no_grad():
        z.mul_(3)
    return x * y


def _detached_in_place(self: Any, x: Any) -> Any:
    y = self.weight * 2
    y.detach_()
    return x * self.weight * y


@pytest.mark.parametrize(
    "function",
    [
        _changed_without_gradients,
        _parameter_changed,
        _changed_through_memory,
        _changed_through_memory_without_gradients,
        _detached_in_place,
    ],
)
def test_changes_that_gradients_do_not_see_are_refused(function: Any) -> None:
    with pytest.raises(tofu.GraphError, match="that gradients flow through, but without gradients"):
        tofu.from_torch(Function(function), normal(4, 3))


def test_the_inference_mode_is_refused() -> None:
    def scaled(self: Any, x: Any) -> Any:
        with torch.inference_mode():
            scale = (self.weight * 2).sum()
        return x * self.weight * scale

    with pytest.raises(tofu.GraphError, match="inference_mode"):
        tofu.from_torch(Function(scaled), normal(4, 3))
    with torch.inference_mode():
        pass


def test_hooks_of_gradients_are_refused() -> None:
    def hooked(self: Any, x: Any) -> Any:
        y = x * self.weight
        y.register_hook(lambda gradient: gradient * 2)
        return y

    of_parameter, of_module = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3))
    of_parameter.bias.register_hook(lambda gradient: gradient * 2)
    of_module[0].register_full_backward_hook(lambda *_: None)
    for module, says in (
        (Function(hooked), "registers a hook of a gradient"),
        (of_parameter, "parameter 'bias' has a hook"),
        (of_module, "module '0' has a hook"),
    ):
        with pytest.raises(tofu.GraphError, match=says):
            tofu.from_torch(module, normal(4, 3))
    torch.ones(3, requires_grad=True).register_hook(lambda gradient: gradient)


def test_changes_that_gradients_see_are_read() -> None:
    def changed(self: Any, x: Any) -> Any:
        with torch.no_grad():
            scale = self.weight * 2
            scale[0] = 3.0
        alone = (self.weight * 3).detach()
        alone.clamp_(min=1)
        largest = self.weight.detach().abs().max()
        with torch.no_grad():
            largest.clamp_(min=1e-5)
        weight = self.weight * 2
        weight.clamp_(min=0.5)
        return x * weight * scale * alone / largest

    require_agreement(Function(changed), normal(4, 3))
