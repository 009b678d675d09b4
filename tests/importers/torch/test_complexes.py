"""Complex numbers inside of modules: outputs and gradients against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import GraphError

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from .agreement import by_tofu, require_agreement  # noqa: E402
from .test_aten import Function, between  # noqa: E402


def _assigned(a: Any, b: Any) -> Any:
    found = torch.zeros(3, 5, dtype=torch.cfloat)
    found[:, 1:] = torch.complex(a, b)
    return torch.view_as_real(found)


def _mixed(a: Any, b: Any) -> Any:
    found = torch.complex(a, b) * 1
    found[0] = a[0]
    joined = torch.cat([found, b, torch.stack([a, found])[0]])
    return torch.view_as_real(torch.nn.functional.pad(joined, (1, 0), value=2.0))


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda a, b: (torch.complex(a, b) * torch.complex(b, -a)).real,
    "product with real numbers": lambda a, b: torch.view_as_real(torch.complex(a, b) * a),
    "product with a constant": lambda a, b: torch.view_as_real(
        torch.complex(a, b) * torch.tensor([1 + 2j, 3j, 1.0, 2 - 1j]) * (2 + 1j)
    ),
    "sum and difference": lambda a, b: torch.view_as_real(torch.complex(a, b) + torch.complex(b, a) - a),
    "quotient": lambda a, b: torch.view_as_real(torch.complex(a, b) / torch.complex(b, a + 5) / 2),
    "conjugate": lambda a, b: torch.view_as_real(torch.complex(a, b) * torch.complex(b, a).conj()),
    "absolute value": lambda a, b: torch.complex(a, b).abs() + torch.complex(a * 0, a * 0).abs(),
    "from angles": lambda a, b: torch.view_as_real(torch.polar(a.abs(), b)),
    "of one number": lambda a, b: (torch.complex(a.sum(), b.mean()) * torch.complex(b.mean(), a.sum())).imag,
    "moves": lambda a, b: torch.view_as_real(
        torch.cat([torch.complex(a, b), torch.complex(b, a)]).reshape(4, 6).T[1:].unsqueeze(1).sum(0)
    ),
    "product of matrices": lambda a, b: torch.view_as_real(
        torch.einsum("bi,oi->bo", torch.complex(a, b), torch.complex(b, a))
    ),
    "assigned": _assigned,
    "real numbers among complex ones": _mixed,
    "growth": lambda a, b: torch.view_as_real(torch.exp(1j * a - 0.1 * b.abs())),
    "inverse": lambda a, b: torch.view_as_real(1 / (3 - torch.complex(a, b))),
    "chosen": lambda a, b: torch.view_as_real(
        torch.where(a > 0, torch.complex(a, b), 2j).masked_fill(b > 1, 3).tril().cumsum(1)
    ),
    "fft": lambda a, b: torch.view_as_real(torch.fft.fft(torch.complex(a, b), dim=0)),
    "fft of two dimensions": lambda a, b: torch.fft.fft2(a * b).real,
    "rfft": lambda a, b: torch.fft.rfft(a * b).abs(),
    "there and back": lambda a, b: torch.fft.irfft2(
        torch.fft.rfft2(a, norm="ortho") * 2, (3, 4), norm="ortho"
    ),
    "back to an odd extent": lambda a, b: torch.fft.irfft(torch.complex(a, b), n=5),
    "stft": lambda a, b: torch.view_as_real(
        torch.stft(torch.cat([a, b], 1).repeat(1, 4), 8, return_complex=True, window=torch.hann_window(8))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name: str) -> None:
    torch.manual_seed(0)
    values = between(-2.9, 3.1, 3, 4), between(-2.9, 3.1, 3, 4)
    require_agreement(Function(CASES[name], *values), torch.ones(()), workers=(1, 8))


class Spectral(torch.nn.Module):
    """A product with complex weights in the frequencies of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(3, 5, 3, 4, dtype=torch.cfloat))

    def forward(self, x: Any) -> Any:
        product = torch.einsum("bixy,ioxy->boxy", torch.fft.rfft2(x)[:, :, :3], self.weight)
        return torch.fft.irfft2(product, s=(6, 6))


@pytest.mark.parametrize("workers", [1, 8])
def test_complex_parameters_have_their_parts_in_a_last_dimension(workers: int) -> None:
    torch.manual_seed(0)
    module, x = Spectral(), torch.randn(2, 3, 6, 6)
    symbol, parameters = tofu.from_torch(module, (x,))
    assert parameters["weight"].shape == (3, 5, 3, 4, 2)
    found = by_tofu(symbol, parameters, {"x": x.numpy()}, workers)
    expected = module(x)
    expected.sum().backward()
    np.testing.assert_allclose(found.outputs[0], expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    gradient = torch.view_as_real(module.weight.grad).numpy()
    np.testing.assert_allclose(found.gradients["weight"], gradient, rtol=1e-4, atol=1e-4)
    tofu.to_torch(module, symbol, {"weight": np.ones((3, 5, 3, 4, 2), "float32")})
    assert bool((module.weight == 1 + 1j).all())


def test_complex_inputs_and_functions_are_refused_by_name() -> None:
    class Doubled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x * 2).real

    class Grown(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.sinh(torch.complex(x, x)).real

    with pytest.raises(GraphError, match="input 'x' is complex; give its parts"):
        tofu.from_torch(Doubled(), (torch.ones(2, dtype=torch.cfloat),))
    with pytest.raises(GraphError, match=r"aten\.sinh\.default of complex numbers at the module itself"):
        tofu.from_torch(Grown(), (torch.ones(2),))
