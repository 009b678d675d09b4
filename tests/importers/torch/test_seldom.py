"""Arguments that are seldom given, and values at which a rule changes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import tofu

from .agreement import by_tofu, fed, require_agreement

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from .test_aten import Function, between  # noqa: E402

pytestmark = pytest.mark.torch
F = torch.nn.functional

PART = torch.tensor([[True, False, False], [False, False, False], [True, True, True]])
"""A mask that leaves nothing of its second row."""


def with_nan(x: Any) -> Any:
    return torch.where(x > 0, x, torch.tensor(nan))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "nansum": (lambda x: torch.nansum(with_nan(x), 1), ((3, 4),)),
    "nanmean": (lambda x: torch.nanmean(with_nan(x), 0), ((9, 2),)),
    "round to decimals": (lambda x: torch.round(x, decimals=1) * x, ((3, 4),)),
    "round to hundreds": (lambda x: torch.round(x * 1000, decimals=-2) * x, ((3, 4),)),
    "softplus with a low threshold": (lambda x: F.softplus(x, 2.0, 1.0), ((3, 4),)),
    "median of all": (lambda x: x.median(), ((3, 4),)),
    "norm of zeros": (lambda x: torch.linalg.vector_norm(x.relu() * 0 + x * 0, dim=1), ((3, 4),)),
    "deviation of equal numbers": (lambda x: x.std(1) + (x * 0).std(1), ((3, 4),)),
    **{
        f"norm of order {order}": (lambda x, p=order: torch.linalg.vector_norm(x, p, dim=1), ((3, 4),))
        for order in (inf, -inf, 3, 0.5)
    },
    "count as a norm": (lambda x: torch.linalg.vector_norm(x, 0, dim=1) + x.sum(1), ((3, 4),)),
    "normalize by cubes": (lambda x: F.normalize(x, p=3), ((3, 4),)),
    "sum of truth values": (lambda x: ((x > 0) + (x > -1)) * x, ((3, 4),)),
    "sum of a truth value": (lambda x: (True + (x > 0)) * torch.add(x > 0, x > -1, alpha=0) * x, ((3, 4),)),
    "roll along a dimension twice": (lambda x: torch.roll(x, (1, 1, -1), (0, -2, 1)), ((3, 4),)),
    "roll in row-major order": (lambda x: torch.roll(x, 5), ((3, 4),)),
    "repeat_interleave of all": (lambda x: torch.repeat_interleave(x, 2), ((3, 4),)),
    "pad around a cut": (lambda x: F.pad(x, (-1, 2), mode="circular"), ((1, 3, 4),)),
    "columns without a batch": (lambda x: F.unfold(x, 2, padding=1), ((2, 4, 4),)),
    "image without a batch": (lambda x: F.fold(x, (4, 4), 2, stride=2), ((8, 4),)),
    "swapaxes": (lambda x: x.swapaxes(0, 2).moveaxis(0, 1), ((2, 3, 4),)),
    "sum of a batch of products": (
        lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=2),
        ((3, 5), (2, 3, 4), (2, 4, 5)),
    ),
    "xlogy": (lambda x: torch.xlogy(x.relu(), x.relu() + 1), ((3, 4),)),
    "exp2": (lambda x, y: torch.logaddexp2(x, y), ((3, 4), (3, 4))),
    "copysign": (lambda x, y: torch.copysign(x, y), ((3, 4), (3, 4))),
    "one number": (
        lambda x: x.sum().softmax(0) + x.sum().log_softmax(0) * 3 + x.sum().max(0).values * x.sum().cumsum(0),
        ((3, 4),),
    ),
    "resized to any extent": (lambda x: F.interpolate(x, scale_factor=1.7), ((1, 2, 5, 7),)),
    "resized by a factor whose inverse is rounded": (
        lambda x: F.interpolate(x, scale_factor=2.6),
        ((1, 1, 21),),
    ),
    "resized by a factor to the same extents": (
        lambda x: F.interpolate(x, scale_factor=1.1) * x,
        ((1, 2, 5, 7),),
    ),
    "resized without aliasing": (
        lambda x: F.interpolate(x, size=(3, 3), mode="bicubic", antialias=True),
        ((1, 2, 5, 7),),
    ),
    "attention that a mask leaves nothing": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=PART),
        ((2, 2, 3, 4),) * 3,
    ),
    "attention that a bias leaves nothing": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(PART, 0.5, -inf)),
        ((2, 2, 3, 4),) * 3,
    ),
    "attention by a mask of data": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=q[:1, :, :, :3] > 0.6),
        ((2, 2, 3, 4),) * 3,
    ),
    "attention of one query": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        ((1, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)),
    ),
    "dropout that keeps the variance, without training": (
        lambda x: F.alpha_dropout(x, 0.5, training=False),
        ((3, 4),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name: str) -> None:
    torch.manual_seed(0)
    function, shapes = CASES[name]
    values = [between(-2.9, 3.1, *shape) for shape in shapes]
    require_agreement(Function(function, *values), torch.ones(()), workers=(1, 8))


LEFT, RIGHT = torch.meshgrid(
    *[torch.tensor([1.0, -1, 0.1, -0.3, 0, -0.0, 7, inf, -inf, nan])] * 2, indexing="ij"
)
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "//": lambda x, y: x // y,
    "div rounded down": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "fmod": torch.fmod,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "copysign": torch.copysign,
    "copysign of a constant": lambda x, y: torch.copysign(x + y, torch.tensor([0.0, -0.0]).repeat(5)),
    "signbit": lambda x, y: torch.signbit(x) * 2 + torch.signbit(-(y == 0).int()),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_unusual_numbers(name: str) -> None:
    module, one = Function(PAIRS[name], LEFT, RIGHT), torch.ones(())
    symbol, parameters = tofu.from_torch(module, one)
    (found,) = by_tofu(symbol, parameters, fed(symbol, parameters, [one])).outputs
    np.testing.assert_array_equal(found, module(one).detach().numpy())


class Branches(torch.nn.Module):
    """Chooses a branch by data."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda y: self.scores(y), lambda y: -self.scores(y), (x,))


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_by_data_are_both_computed(sign: int) -> None:
    torch.manual_seed(0)
    module, x = Branches(), torch.rand(4, 3)
    symbol, parameters = tofu.from_torch(module, (x,))
    found = by_tofu(symbol, parameters, {"x": (sign * x).numpy()})
    expected = sign * module.scores(sign * x)
    assert abs(found.outputs[0] - expected.detach().numpy()).max() < 1e-6


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_bags_begin_where_data_say(mode: str, last: bool) -> None:
    torch.manual_seed(0)
    module = torch.nn.EmbeddingBag(5, 3, mode=mode, include_last_offset=last)
    offsets = torch.tensor([0, 2, 2, 5] if last else [0, 2, 2])
    require_agreement(module, torch.tensor([0, 1, 2, 2, 4]), offsets, workers=(1, 8))


class Masked(torch.nn.Module):
    """A transformer with masks that it is not told to be causal."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1
        )
        self.decoder = torch.nn.TransformerDecoder(
            torch.nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), 1
        )
        self.register_buffer("causal", torch.nn.Transformer.generate_square_subsequent_mask(5))

    def forward(self, x: Any, y: Any) -> Any:
        one, other = self.encoder(x, self.causal), self.encoder(x, self.causal.T)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
        return one, other, self.decoder(y, one, mask)


@pytest.mark.parametrize("training", [False, True])
def test_transformers_do_not_look_whether_a_mask_is_causal(training: bool) -> None:
    torch.manual_seed(0)
    module = Masked().train(training)
    require_agreement(module, torch.randn(2, 5, 8), torch.randn(2, 3, 8), workers=(1, 2))
