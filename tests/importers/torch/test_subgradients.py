"""Gradients where a function bends, jumps or is infinitely steep: those of PyTorch, which are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from .agreement import by_tofu, require_agreement  # noqa: E402

F = torch.nn.functional

BENDS = [[0.0, 1, -1, 0.5], [-0.5, 2, -2, 3], [-3, 6, -6, 1e-20]]
TIES = [[1.0, 1, 0, 0], [2, 2, 2, 2], [0, 3, 3, 1]]
INFINITE = [[-torch.inf, -torch.inf, -torch.inf, -torch.inf], [1, -torch.inf, 2, 3], [0, 0, 0, 0]]


class OfOne(torch.nn.Module):
    """A function of one parameter."""

    def __init__(self, function: Callable[[Any], Any], values: Any) -> None:
        super().__init__()
        self.function = function
        self.table = torch.nn.Parameter(torch.tensor(values))

    def forward(self, one: Any) -> Any:
        return self.function(self.table * one)


def _on_borders(corners: bool) -> Callable[[Any], Any]:
    """Return a sample of pictures at places on their borders, and outside."""
    return lambda x: F.grid_sample(
        torch.arange(12.0).reshape(1, 1, 3, 4),
        torch.stack([x, x.flip(1)], -1)[None],
        padding_mode="border",
        align_corners=corners,
    )


AT_BENDS: dict[str, Callable[[Any], Any]] = {
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "clamp": lambda x: x.clamp(-1, 2),
    "abs": torch.abs,
    "sinc": torch.sinc,
    "x ** x": lambda x: x.abs() ** x.abs(),
    "0 ** x": lambda x: 0.0 ** x.abs(),
    "x ** (x - 1)": lambda x: x.relu() ** (x - 1).relu(),
    "atan2": lambda x: torch.atan2(x[:2], 2 * x[:2]),
    "vector norm of roots": lambda x: torch.linalg.vector_norm(x, 0.5, dim=1),
    "harmonic norm": lambda x: torch.linalg.vector_norm(x, -1, dim=1),
    "norm of zeros": lambda x: torch.linalg.vector_norm(x.relu() * (x > 9), dim=1),
    "normalize zeros": lambda x: F.normalize(x * (x > 9), dim=1),
    "cosine of zeros": lambda x: F.cosine_similarity(x * (x > 9), x, dim=1),
    "grid of corners": _on_borders(True),
    "grid of edges": _on_borders(False),
}
AT_TIES: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(0, keepdim=True),
    "amax of both": lambda x: x.amax((0, 1)),
    "max": lambda x: x.max(),
    "min": lambda x: x.min() * x,
    "max along": lambda x: x.max(1).values,
    "min along": lambda x: x.min(0, keepdim=True).values * x,
    "max and place": lambda x: x.max(1).values + x.max(1).indices,
    "aminmax": lambda x: torch.stack(x.aminmax(dim=1)),
    "norm of order infinity": lambda x: torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True) * x,
    "least norm": lambda x: torch.linalg.vector_norm(x, -torch.inf),
    "cummax": lambda x: x.cummax(1).values * torch.arange(4.0),
    "cummin and place": lambda x: x.cummin(0).values * x.cummin(0).indices,
    "windows": lambda x: x.unfold(1, 2, 1).amax(-1),
    "maximum pooling": lambda x: F.max_pool2d(x[None, None], 2, 1),
    "median": lambda x: x.median(1).values,
}
AT_INFINITY: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(1)[1:],
    "logsumexp": lambda x: x[1:].logsumexp(1),
}


@pytest.mark.parametrize("name", AT_BENDS)
def test_at_bends(name: str) -> None:
    require_agreement(OfOne(AT_BENDS[name], BENDS), torch.ones(()))


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize("name", AT_TIES)
def test_at_ties(name: str, workers: int) -> None:
    require_agreement(OfOne(AT_TIES[name], TIES), torch.ones(()), workers=[workers])


@pytest.mark.parametrize("name", AT_INFINITY)
def test_at_infinity(name: str) -> None:
    require_agreement(OfOne(AT_INFINITY[name], INFINITE), torch.ones(()))


def _outputs(function: Callable[[Any], Any], values: Any) -> tuple[Any, Any]:
    """Return what PyTorch and Tofu compute."""
    module = OfOne(function, values)
    symbol, parameters = tofu.from_torch(module.eval(), torch.ones(()))
    found = by_tofu(symbol, parameters, {"one": np.ones(1, "float32")}, 2).outputs[0]
    expected = module(torch.ones(())).detach().numpy()
    return expected, found.reshape(expected.shape)


def test_the_logarithm_of_a_sum_of_nothing_is_infinite() -> None:
    expected, found = _outputs(lambda x: x.logsumexp(1), INFINITE)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[0] == -np.inf


@pytest.mark.parametrize("name", ["amax", "max", "max along", "max and place", "cummax"])
def test_what_is_not_a_number_is_the_extreme(name: str) -> None:
    expected, found = _outputs(AT_TIES[name], [[1.0, torch.nan, 2, torch.nan], [1, 2, 3, 4]])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("place", [torch.argmax, torch.argmin])
def test_the_place_of_an_extreme_is_that_of_what_is_not_a_number(place: Any) -> None:
    expected, found = _outputs(
        lambda x: place(x, 1) + x[:, 0] * 0, [[1.0, 2, torch.nan, torch.nan], [0, 7, 3, 4]]
    )
    np.testing.assert_array_equal(found, expected)
