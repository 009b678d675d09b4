"""Each entry of the table against PyTorch: the function itself, and the gradients of what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.importers.torch.agreement import require_agreement

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch
F = torch.nn.functional


class Function(torch.nn.Module):
    """A function of parameters."""

    def __init__(self, function: Callable[..., Any], *values: Any) -> None:
        super().__init__()
        self.function = function
        self.values = torch.nn.ParameterList(values)

    def forward(self, one: Any) -> Any:
        found = self.function(*(value * one for value in self.values))
        return tuple(found) if isinstance(found, list | tuple) else found


def between(low: float, high: float, *shape: int) -> Any:
    """Random values that lie in an interval, all of them different."""
    count = max(int(torch.tensor(shape).prod()), 1)
    places = torch.randperm(count) + 0.25 + 0.5 * torch.rand(count)
    return (low + (high - low) * places / count).reshape(shape)


ANY, POSITIVE, SMALL = (-2.9, 3.1), (0.2, 3.0), (-0.9, 0.9)

UNARY: list[tuple[str, Callable[[Any], Any], tuple[float, float]]] = [
    *[
        (name, getattr(torch, name), ANY)
        for name in (
            "abs",
            "neg",
            "exp",
            "expm1",
            "square",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "atan",
            "erf",
            "erfc",
            "sigmoid",
            "floor",
            "ceil",
            "round",
            "trunc",
            "sign",
            "frac",
            "isnan",
            "isinf",
            "isfinite",
            "logical_not",
            "relu",
            "selu",
            "celu",
            "deg2rad",
            "rad2deg",
        )
    ],
    *[
        (name, getattr(torch, name), POSITIVE)
        for name in ("log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "lgamma")
    ],
    *[(name, getattr(torch, name), SMALL) for name in ("asin", "acos", "atanh")],
    ("acosh", torch.acosh, (1.2, 3.0)),
    *[
        (name, getattr(F, name), (-7.3, 7.1))
        for name in (
            "gelu",
            "silu",
            "mish",
            "hardswish",
            "hardsigmoid",
            "relu6",
            "elu",
            "leaky_relu",
            "softplus",
            "hardtanh",
            "hardshrink",
            "softshrink",
            "logsigmoid",
            "softsign",
            "tanhshrink",
        )
    ],
    ("log of erfc", lambda x: torch.log(torch.erfc(x)), (5.0, 8.0)),
    ("digamma", lambda x: torch.digamma(x.detach()) * x, POSITIVE),
    ("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), ANY),
    ("elu alpha", lambda x: F.elu(x, 0.7), ANY),
    ("celu alpha", lambda x: F.celu(x, 0.7), ANY),
    ("softplus beta", lambda x: F.softplus(x, 2.0), ANY),
    ("threshold", lambda x: F.threshold(x, 0.5, -1.0), ANY),
    ("clamp", lambda x: x.clamp(-1, 2), ANY),
    ("clamp low", lambda x: x.clamp(min=0.3), ANY),
    ("clamp high", lambda x: x.clamp(max=0.3), ANY),
    ("clamp tensor", lambda x: x.clamp(min=torch.tensor([0.1, 0.2, 0.3, 0.4])), ANY),
    ("pow 2", lambda x: x**2, ANY),
    ("pow 3", lambda x: x**3, ANY),
    ("pow 4", lambda x: x**4, ANY),
    ("pow 0.5", lambda x: x**0.5, POSITIVE),
    ("pow -0.5", lambda x: x**-0.5, POSITIVE),
    ("pow -1", lambda x: x**-1, POSITIVE),
    ("pow 1.7", lambda x: x**1.7, POSITIVE),
    ("scalar to a power", lambda x: 1.7**x, ANY),
    ("scalar minus", lambda x: 2 - x, ANY),
    ("scalar over", lambda x: 2 / x, POSITIVE),
    ("to int", lambda x: x.int().float() * x, ANY),
    ("to bool", lambda x: x.floor().bool().float() * x, ANY),
    ("detach", lambda x: x.detach() * x, ANY),
    ("clone", lambda x: x.clone(), ANY),
    ("nan_to_num", lambda x: torch.nan_to_num(x), ANY),
    ("bitwise_not", lambda x: (~(x > 0)).float() * x, ANY),
    ("zeros_like", lambda x: x + torch.zeros_like(x) + torch.ones_like(x) + torch.full_like(x, 2), ANY),
    ("new_zeros", lambda x: x + x.new_zeros(4) + x.new_ones(3, 1) + x.new_full((1,), 0.5), ANY),
    ("arange", lambda x: x * torch.arange(4), ANY),
]


@pytest.mark.parametrize(("name", "function", "domain"), UNARY, ids=[case[0] for case in UNARY])
def test_of_elements(name: str, function: Callable[[Any], Any], domain: tuple[float, float]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, between(*domain, 3, 4)), torch.ones(()))


BINARY: list[tuple[str, Callable[..., Any]]] = [
    ("add", torch.add),
    ("add alpha", lambda a, b: torch.add(a, b, alpha=2)),
    ("sub", torch.sub),
    ("sub alpha", lambda a, b: torch.sub(a, b, alpha=0.5)),
    ("rsub", lambda a, b: torch.rsub(a, b, alpha=2)),
    ("mul", torch.mul),
    ("div", torch.div),
    ("div floor", lambda a, b: torch.div(a, b, rounding_mode="floor") * a),
    ("div trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc") * a),
    ("floor_divide", lambda a, b: (a.detach() // b.detach()) * a),
    ("remainder", lambda a, b: torch.remainder(a, b)),
    ("fmod", lambda a, b: torch.fmod(a, b)),
    ("pow", lambda a, b: torch.pow(a.abs() + 0.1, b)),
    ("maximum", torch.maximum),
    ("minimum", torch.minimum),
    ("fmax", torch.fmax),
    ("max of two", torch.max),
    ("min of two", torch.min),
    ("atan2", torch.atan2),
    ("hypot", torch.hypot),
    *[
        (name, lambda a, b, name=name: getattr(torch, name)(a, b) * a)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ],
    *[
        (name, lambda a, b, name=name: getattr(torch, name)(a > 0, b > 0) * a)
        for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
    ],
    ("where", lambda a, b: torch.where(a > b, a, b * 2)),
    ("where scalar", lambda a, b: torch.where(a > b, a, 0.0)),
    ("masked_fill", lambda a, b: a.masked_fill(b > 0, -5.0)),
    ("masked_fill tensor", lambda a, b: a.masked_fill(b > 0, b.sum())),
    ("lerp", lambda a, b: torch.lerp(a, b, 0.3)),
    ("lerp tensor", lambda a, b: torch.lerp(a, b, b)),
    ("addcmul", lambda a, b: torch.addcmul(a, b, a, value=0.5)),
    ("addcdiv", lambda a, b: torch.addcdiv(a, b, b, value=0.5)),
    ("prelu", lambda a, b: F.prelu(a.reshape(2, 3, 4), b[0, :3])),
    ("outer", lambda a, b: torch.outer(a.reshape(-1), b.reshape(-1))),
]


@pytest.mark.parametrize(("name", "function"), BINARY, ids=[case[0] for case in BINARY])
def test_of_two_tensors(name: str, function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, between(*ANY, 2, 3, 4), between(*ANY, 3, 4) + 0.01), torch.ones(()))


def test_broadcasting_stretches_both_sides() -> None:
    torch.manual_seed(0)
    for shapes in (((3, 1), (1, 4)), ((4,), (2, 3, 1)), ((), (2, 3)), ((1,), ()), ((1, 1), (1, 1))):
        require_agreement(Function(torch.mul, *(torch.rand(shape) for shape in shapes)), torch.ones(()))


REDUCTIONS: list[tuple[str, Callable[[Any], Any]]] = [
    ("sum", torch.sum),
    ("sum dim", lambda x: x.sum(1)),
    ("sum dims", lambda x: x.sum((0, -1), keepdim=True)),
    ("mean", torch.mean),
    ("mean dim", lambda x: x.mean(-1, keepdim=True)),
    ("var", lambda x: x.var()),
    ("var dim", lambda x: x.var(1, unbiased=False)),
    ("std", lambda x: x.std((0, 1), keepdim=True)),
    ("var_mean", lambda x: torch.var_mean(x, 1)),
    ("amax", lambda x: x.amax((0, 2))),
    ("amin", lambda x: x.amin(-1, keepdim=True)),
    ("max", torch.max),
    ("min", torch.min),
    ("max dim", lambda x: x.max(1).values),
    ("max dim places", lambda x: x.max(1).indices.float() + x.sum(1)),
    ("argmax", lambda x: x.argmax().float() + x.sum()),
    ("argmax dim", lambda x: x.argmax(1, keepdim=True) * x),
    ("argmin dim", lambda x: x.argmin(-1)[:, :, None] * x),
    ("prod", lambda x: x.prod()),
    ("prod dim", lambda x: x.prod(1)),
    ("any", lambda x: (x > 2).any(1, keepdim=True) * x),
    ("any of all", lambda x: (x > 2).any() * x),
    ("all", lambda x: (x > -2).all(-1, keepdim=True) * x),
    ("count_nonzero", lambda x: torch.count_nonzero(x.floor(), 1).float() + x.sum()),
    ("logsumexp", lambda x: x.logsumexp(1)),
    ("logsumexp dims", lambda x: x.logsumexp((0, 2), keepdim=True)),
    ("norm", lambda x: x.norm(dim=-1)),
    ("vector norm", lambda x: torch.linalg.vector_norm(x)),
    ("norm 1", lambda x: torch.linalg.vector_norm(x, 1, dim=1)),
    ("norm of roots and zeros", lambda x: torch.linalg.vector_norm(F.relu(x), 0.5, dim=1)),
    ("harmonic norm of zeros", lambda x: torch.linalg.vector_norm(F.relu(x), -1, dim=1)),
    ("normalize", lambda x: F.normalize(x, dim=1)),
    ("cumsum", lambda x: x.cumsum(1)),
    ("cumsum last", lambda x: x.cumsum(-1)),
    ("cumprod", lambda x: x.cumprod(1)),
    ("softmax", lambda x: x.softmax(1)),
    ("log_softmax", lambda x: x.log_softmax(-1)),
    ("softmin", lambda x: F.softmin(x, 0)),
    ("topk", lambda x: x.topk(2, -1).values),
    ("topk smallest", lambda x: x.topk(2, 1, largest=False).values),
    ("sort", lambda x: x.sort(-1).values),
    ("argsort", lambda x: x.argsort(-1) * x),
    ("cosine_similarity", lambda x: F.cosine_similarity(x[0], x[1], dim=-1)),
]


@pytest.mark.parametrize(("name", "function"), REDUCTIONS, ids=[case[0] for case in REDUCTIONS])
def test_of_dimensions(name: str, function: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, between(*ANY, 2, 3, 4) + 0.013), torch.ones(()))


MOVES: list[tuple[str, Callable[[Any], Any]]] = [
    ("view", lambda x: x.view(6, 4)),
    ("view inferred", lambda x: x.view(2, -1)),
    ("reshape_as", lambda x: x.reshape_as(torch.zeros(6, 4))),
    ("reshape across", lambda x: x.reshape(4, 6)),
    ("reshape to a number", lambda x: x.sum().reshape(1, 1)),
    ("flatten", lambda x: x.flatten(1)),
    ("unflatten", lambda x: x.unflatten(2, (2, 2))),
    ("squeeze", lambda x: x[:, :1].squeeze(1)),
    ("unsqueeze", lambda x: x.unsqueeze(-1)),
    ("permute", lambda x: x.permute(2, 0, 1)),
    ("transpose", lambda x: x.transpose(-1, 0)),
    ("t", lambda x: x[0].t()),
    ("movedim", lambda x: x.movedim(0, 2)),
    ("expand", lambda x: x[:, :1].expand(2, 5, 4)),
    ("expand in front", lambda x: x[0].expand(2, -1, -1)),
    ("expand number", lambda x: x.sum().expand(3)),
    ("repeat", lambda x: x.repeat(2, 1, 1, 3)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2, dim=1)),
    ("slice", lambda x: x[:, 1:, ::2]),
    ("slice negative", lambda x: x[-1:, :-1]),
    ("narrow", lambda x: x.narrow(2, 1, 2)),
    ("select", lambda x: x[:, -1]),
    ("select number", lambda x: x[1, 2, 3]),
    ("unbind", lambda x: x.unbind(1)),
    ("split", lambda x: x.split(2, 1)),
    ("split sizes", lambda x: x.split([1, 3], -1)),
    ("chunk", lambda x: x.chunk(3, -1)),
    ("cat", lambda x: torch.cat([x, x[:, :1], 2 * x], 1)),
    ("stack", lambda x: torch.stack([x, x * 2], -1)),
    ("flip", lambda x: x.flip(0, 2)),
    ("roll", lambda x: x.roll((1, -2), (1, 2))),
    ("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=3.0)),
    ("pad cuts", lambda x: F.pad(x, (-1, 1))),
    ("pad reflect", lambda x: F.pad(x, (1, 2), mode="reflect")),
    ("pad replicate", lambda x: F.pad(x, (1, 2), mode="replicate")),
    ("pad circular", lambda x: F.pad(x, (1, 2), mode="circular")),
    ("tril", lambda x: x.tril()),
    ("triu", lambda x: x.triu(1)),
    ("diagonal", lambda x: x.diagonal(1, 1, 2)),
    ("index_select", lambda x: x.index_select(1, torch.tensor([2, 0, 2]))),
    ("gather", lambda x: x.gather(1, torch.tensor([0, 2, 1, 0]).expand(2, 1, 4))),
    ("index", lambda x: x[:, torch.tensor([2, -1, 0])]),
    ("index of two", lambda x: x[torch.tensor([0, 1]), torch.tensor([2, 0])]),
    ("index of two apart", lambda x: x[torch.tensor([0, 1]), :, torch.tensor([2, 0])]),
    ("index in pairs", lambda x: x[:, torch.tensor([[0], [1]]), torch.tensor([2, 0, 1])]),
    ("index by data", lambda x: x[0][x[1].argmax(0)]),
    ("one_hot", lambda x: F.one_hot(x.argmax(1), 3) * x.sum()),
    ("set slice", lambda x: torch.slice_scatter(x, x[:, :1] * 2, 1, 1, 2)),
    ("set steps", lambda x: torch.slice_scatter(x, x[..., :2] * 2, 2, 1, 4, 2)),
    ("set row", lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 2)),
    ("pixel_shuffle", lambda x: F.pixel_shuffle(x.reshape(4, 2, 3), 2)),
    ("pixel_unshuffle", lambda x: F.pixel_unshuffle(x.reshape(1, 4, 6), 2)),
    ("unfold", lambda x: x.unfold(2, 2, 1)),
    ("broadcast_tensors", lambda x: torch.broadcast_tensors(x, x[:1])),
    ("meshgrid", lambda x: torch.meshgrid(x[0, 0], x[1, 0, :2], indexing="ij")),
    ("tile", lambda x: torch.tile(x, (2, 2))),
    ("rot90", lambda x: x.rot90(1, (1, 2))),
]


@pytest.mark.parametrize(("name", "function"), MOVES, ids=[case[0] for case in MOVES])
def test_of_moves(name: str, function: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, between(*ANY, 2, 3, 4)), torch.ones(()))


PRODUCTS: list[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]] = [
    ("linear", F.linear, ((2, 3, 4), (5, 4), (5,))),
    ("linear without bias", F.linear, ((3, 4), (5, 4))),
    ("linear of a vector", F.linear, ((4,), (5, 4), (5,))),
    ("matmul", torch.matmul, ((3, 4), (4, 5))),
    ("matmul vector", torch.matmul, ((3, 4), (4,))),
    ("vector matmul", torch.matmul, ((4,), (4, 5))),
    ("dot", torch.matmul, ((4,), (4,))),
    ("matmul batch", torch.matmul, ((2, 3, 4), (2, 4, 5))),
    ("matmul stretched", torch.matmul, ((2, 1, 3, 4), (3, 4, 5))),
    ("matmul batch by matrix", torch.matmul, ((2, 3, 4), (4, 5))),
    ("bmm", torch.bmm, ((2, 3, 4), (2, 4, 5))),
    ("mv", torch.mv, ((3, 4), (4,))),
    ("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), ((5,), (3, 4), (4, 5))),
    ("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, alpha=2), ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    ("addmv", torch.addmv, ((3,), (3, 4), (4,))),
    ("einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), ((2, 3, 4), (2, 5, 4))),
    ("einsum outer", lambda a, b: torch.einsum("i,j->ij", a, b), ((3,), (4,))),
    ("bilinear", F.bilinear, ((2, 3), (2, 4), (5, 3, 4))),
    ("attention", F.scaled_dot_product_attention, ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3))),
    (
        "attention causal",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        ((2, 2, 4, 4), (2, 2, 4, 4), (2, 2, 4, 4)),
    ),
    ("attention mask", F.scaled_dot_product_attention, ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (3, 5))),
    (
        "attention by a condition",
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > -10),
        ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (3, 5)),
    ),
    (
        "attention of groups",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ((2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
    ),
]


@pytest.mark.parametrize(("name", "function", "shapes"), PRODUCTS, ids=[case[0] for case in PRODUCTS])
def test_of_products(name: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, *(torch.randn(shape) for shape in shapes)), torch.ones(()))


IMAGE, LINE, VOLUME = (2, 4, 7, 6), (2, 4, 9), (1, 2, 4, 5, 4)
WINDOWS: list[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]] = [
    ("conv1d", lambda x, w: F.conv1d(x, w, stride=2, padding=1, dilation=2), (LINE, (3, 4, 3))),
    ("conv2d", F.conv2d, (IMAGE, (3, 4, 3, 2), (3,))),
    ("conv2d groups", lambda x, w: F.conv2d(x, w, padding=1, groups=2), (IMAGE, (6, 2, 3, 3))),
    ("conv2d depthwise", lambda x, w: F.conv2d(x, w, padding=1, groups=4), (IMAGE, (4, 1, 3, 3))),
    ("conv2d same", lambda x, w: F.conv2d(x, w, padding="same"), (IMAGE, (3, 4, 2, 3))),
    ("conv2d without a batch", lambda x, w: F.conv2d(x[0], w), (IMAGE, (3, 4, 3, 3))),
    ("conv3d", lambda x, w: F.conv3d(x, w, padding=1), (VOLUME, (3, 2, 3, 3, 3))),
    ("conv_transpose1d", lambda x, w: F.conv_transpose1d(x, w, stride=2), (LINE, (4, 3, 3))),
    (
        "conv_transpose2d",
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (IMAGE, (4, 3, 3, 3), (3,)),
    ),
    ("conv_transpose2d groups", lambda x, w: F.conv_transpose2d(x, w, groups=2), (IMAGE, (4, 3, 2, 2))),
    ("max_pool1d", lambda x: F.max_pool1d(x, 2), (LINE,)),
    ("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    ("max_pool2d ceil", lambda x: F.max_pool2d(x, 2, ceil_mode=True), (IMAGE,)),
    ("max_pool2d ceil cut", lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), (IMAGE,)),
    ("max_pool2d dilated", lambda x: F.max_pool2d(x, 2, 1, dilation=2), (IMAGE,)),
    ("max_pool3d", lambda x: F.max_pool3d(x, 2), (VOLUME,)),
    ("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (LINE,)),
    ("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    ("avg_pool2d inside", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)),
    ("avg_pool2d ceil", lambda x: F.avg_pool2d(x, 2, ceil_mode=True), (IMAGE,)),
    ("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), (IMAGE,)),
    ("avg_pool3d", lambda x: F.avg_pool3d(x, 2), (VOLUME,)),
    ("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), (LINE,)),
    ("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    ("adaptive_avg_pool2d uneven", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (IMAGE,)),
    ("adaptive_avg_pool2d larger", lambda x: F.adaptive_avg_pool2d(x, (9, 7)), (IMAGE,)),
    ("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 2)), (IMAGE,)),
    ("nearest1d", lambda x: F.interpolate(x, scale_factor=2.0), (LINE,)),
    ("nearest2d", lambda x: F.interpolate(x, scale_factor=2.0), (IMAGE,)),
    ("nearest2d down", lambda x: F.interpolate(x[..., :6, :], scale_factor=0.5), (IMAGE,)),
    ("nearest2d size", lambda x: F.interpolate(x, size=(10, 9)), (IMAGE,)),
    ("bilinear2d", lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (IMAGE,)),
    (
        "bilinear2d corners",
        lambda x: F.interpolate(x, size=(11, 5), mode="bilinear", align_corners=True),
        (IMAGE,),
    ),
    ("linear1d", lambda x: F.interpolate(x, size=5, mode="linear"), (LINE,)),
    ("trilinear3d", lambda x: F.interpolate(x, size=(3, 7, 6), mode="trilinear"), (VOLUME,)),
    ("unfold windows", lambda x: F.unfold(x, (3, 2), padding=1, stride=2), (IMAGE,)),
]


@pytest.mark.parametrize(("name", "function", "shapes"), WINDOWS, ids=[case[0] for case in WINDOWS])
def test_of_windows(name: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    values = [between(*ANY, *shape) for shape in shapes]
    require_agreement(Function(function, *values), torch.ones(()))


NORMS: list[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]] = [
    ("layer_norm", lambda x, w, b: F.layer_norm(x, (6,), w, b), ((2, 4, 6), (6,), (6,))),
    ("layer_norm of two", lambda x, w, b: F.layer_norm(x, (4, 6), w, b), ((2, 4, 6), (4, 6), (4, 6))),
    ("layer_norm alone", lambda x: F.layer_norm(x, (6,)), ((2, 4, 6),)),
    ("layer_norm without bias", lambda x, w: F.layer_norm(x, (6,), w), ((2, 4, 6), (6,))),
    ("rms_norm", lambda x, w: F.rms_norm(x, (6,), w, 1e-6), ((2, 4, 6), (6,))),
    ("rms_norm alone", lambda x: F.rms_norm(x, (6,)), ((2, 4, 6),)),
    ("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), ((2, 4, 5, 3), (4,), (4,))),
    ("group_norm alone", lambda x: F.group_norm(x, 4), ((2, 4, 5),)),
    ("instance_norm", lambda x: F.instance_norm(x), ((2, 4, 5, 3),)),
    ("instance_norm affine", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), ((2, 4, 5), (4,), (4,))),
    ("batch_norm own", lambda x: F.batch_norm(x, None, None, training=True), ((4, 3, 5),)),
    ("local_response_norm", lambda x: F.local_response_norm(x, 3), ((2, 5, 4, 3),)),
]


@pytest.mark.parametrize(("name", "function", "shapes"), NORMS, ids=[case[0] for case in NORMS])
def test_of_norms(name: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    require_agreement(
        Function(lambda *each: function(*each) ** 2, *(torch.rand(shape) for shape in shapes)), torch.ones(())
    )


LABELS = torch.tensor([0, 2, -100, 1])
WEIGHTS = torch.tensor([0.5, 1.0, 2.0])
LOSSES: list[tuple[str, Callable[[Any], Any]]] = [
    *[
        (
            f"{name} {reduction}",
            lambda x, n=name, r=reduction: getattr(F, n)(x, x.detach() + 0.3, reduction=r),
        )
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for reduction in ("mean", "sum", "none")
    ],
    *[
        (f"cross_entropy {reduction}", lambda x, r=reduction: F.cross_entropy(x, LABELS, reduction=r))
        for reduction in ("mean", "sum", "none")
    ],
    ("cross_entropy weights", lambda x: F.cross_entropy(x, LABELS, WEIGHTS)),
    ("cross_entropy smoothing", lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.1)),
    ("cross_entropy ignored", lambda x: F.cross_entropy(x, LABELS.clamp(0), ignore_index=2)),
    ("cross_entropy probabilities", lambda x: F.cross_entropy(x, x.detach().softmax(1))),
    ("cross_entropy of places", lambda x: F.cross_entropy(x.T[None], LABELS[None])),
    ("nll_loss", lambda x: F.nll_loss(x.log_softmax(1), LABELS)),
    *[
        (f"cross_entropy of one {label}", lambda x, n=label: F.cross_entropy(x[0], torch.tensor(n), WEIGHTS))
        for label in (0, 1)
    ],
    ("cross_entropy of nothing", lambda x: F.cross_entropy(x[0], torch.tensor(-100)).isnan() * x),
    ("nll_loss weights", lambda x: F.nll_loss(x.log_softmax(1), LABELS, WEIGHTS, reduction="sum")),
    ("binary_cross_entropy", lambda x: F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid())),
    ("with logits", lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).float())),
    ("with weights", lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).float(), pos_weight=WEIGHTS)),
    ("kl_div of a constant", lambda x: F.kl_div(-torch.ones_like(x), x.softmax(1), reduction="sum")),
    (
        "kl_div of a row",
        lambda x: F.kl_div(WEIGHTS.log().expand(x.shape), x.softmax(1), reduction="batchmean"),
    ),
    ("kl_div of a stretched row", lambda x: F.kl_div(x[:1], x.softmax(1), reduction="sum")),
    ("entropy of a constant", lambda x: F.binary_cross_entropy(torch.full(x.shape, 0.3), x.sigmoid())),
    ("kl_div", lambda x: F.kl_div(x.log_softmax(1), x.detach().softmax(0), reduction="batchmean")),
    ("hinge", lambda x: F.hinge_embedding_loss(x, torch.ones(()))),
    ("margin", lambda x: F.margin_ranking_loss(x, x.detach() * 2, torch.ones(4, 3))),
    ("triplet", lambda x: F.triplet_margin_loss(x, x.detach() + 1, x.detach() * 2)),
    ("poisson_nll", lambda x: F.poisson_nll_loss(x, x.detach().abs())),
]


@pytest.mark.parametrize(("name", "function"), LOSSES, ids=[case[0] for case in LOSSES])
def test_of_losses(name: str, function: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    require_agreement(Function(function, between(*ANY, 4, 3)), torch.ones(()))
