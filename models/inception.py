"""Inception-v3 without its auxiliary classifier.

Names and structure are those of MXNet's `inception-v3.py`, so its graph files and parameters fit: a block
such as `mixed_4` has towers side by side, whose outputs are concatenated along the channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..dataflow import sym
from ..dataflow.symbol import Symbol
from .channels import scaled


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution of the network."""

    channels: int
    """The number of filters."""

    kernel: tuple[int, int] = (1, 1)
    """The height and width of a window."""

    stride: int = 1
    """The distance of neighbouring windows, in both dimensions."""

    valid: bool = False
    """Whether there is no padding; if not, a convolution with stride 1 keeps the size."""

    @property
    def pad(self) -> tuple[int, int]:
        return (0, 0) if self.valid or self.stride > 1 else (self.kernel[0] // 2, self.kernel[1] // 2)


@dataclass(frozen=True, slots=True)
class Pool:
    """A 3x3 pooling; with stride 1 it is padded to keep the size."""

    kind: str
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Fork:
    """Convolutions of one input side by side, at the end of a tower."""

    branches: tuple[Conv, ...]


Towers = Mapping[str, tuple[Conv | Pool | Fork, ...]]
"""The towers of a block by name; that of one convolution has none."""

STEM = (Conv(32, (3, 3), 2), Conv(32, (3, 3), valid=True), Conv(64, (3, 3)), Pool("max", 2))
STEM_END = (Conv(80), Conv(192, (3, 3), valid=True), Pool("max", 2))


def _at_35(pooled: int) -> Towers:
    """Return blocks at a size of 35 (figure 5 of the paper)."""
    return {
        "": (Conv(64),),
        "tower": (Conv(48), Conv(64, (5, 5))),
        "tower_1": (Conv(64), Conv(96, (3, 3)), Conv(96, (3, 3))),
        "tower_2": (Pool("avg"), Conv(pooled)),
    }


def _at_17(inner: int) -> Towers:
    """Return blocks at a size of 17, their 7x7 convolutions factored in two (figure 6)."""
    wide, tall = (1, 7), (7, 1)
    return {
        "": (Conv(192),),
        "tower": (Conv(inner), Conv(inner, wide), Conv(192, tall)),
        "tower_1": (
            Conv(inner),
            Conv(inner, tall),
            Conv(inner, wide),
            Conv(inner, tall),
            Conv(192, wide),
        ),
        "tower_2": (Pool("avg"), Conv(192)),
    }


def _at_8(pool: str) -> Towers:
    """Return blocks at a size of 8, with towers that fork (figure 7)."""
    fork = Fork((Conv(384, (1, 3)), Conv(384, (3, 1))))
    return {
        "": (Conv(320),),
        "tower": (Conv(384), fork),
        "tower_1": (Conv(448), Conv(384, (3, 3)), fork),
        "tower_2": (Pool(pool), Conv(192)),
    }


FROM_35_TO_17: Towers = {
    "": (Conv(384, (3, 3), 2),),
    "tower": (Conv(64), Conv(96, (3, 3)), Conv(96, (3, 3), 2)),
    "tower_1": (Pool("max", 2),),
}

FROM_17_TO_8: Towers = {
    "tower": (Conv(192), Conv(320, (3, 3), 2)),
    "tower_1": (Conv(192), Conv(192, (1, 7)), Conv(192, (7, 1)), Conv(192, (3, 3), 2)),
    "tower_2": (Pool("max", 2),),
}

BLOCKS: tuple[Towers, ...] = (
    *(_at_35(pooled) for pooled in (32, 64, 64)),
    FROM_35_TO_17,
    *(_at_17(inner) for inner in (128, 160, 160, 192)),
    FROM_17_TO_8,
    *(_at_8(pool) for pool in ("avg", "max")),
)


def network(classes: int, width: float = 1) -> Symbol:
    """Return the symbol for images of 75 pixels or more, meant for 299; `width` scales all channels.

    data is [batch, channel, height, width].
    """
    body = sym.identity(sym.Variable("data"), name="id")
    count = 0
    for number, stem in enumerate((STEM, STEM_END)):
        for step in stem:
            if isinstance(step, Conv):
                body = _convolution(body, step, _numbered("conv", count), width)
                count += 1
            else:
                body = _pooling(body, step, _numbered("pool", number).replace("_", ""))
    for number, towers in enumerate(BLOCKS):
        body = _block(body, towers, _numbered("mixed", number), width)
    body = sym.Pooling(body, kernel=(8, 8), global_pool=True, pool_type="avg", name="global_pool")
    body = sym.FullyConnected(sym.Flatten(body, name="flatten"), num_hidden=classes, name="fc1")
    return sym.SoftmaxOutput(body, name="softmax")


def _block(data: Symbol, towers: Towers, name: str, width: float) -> Symbol:
    """Return towers over the same data, concatenated."""
    tops: list[Symbol] = []
    for tower, steps in towers.items():
        body, numbers = data, iter(range(len(steps)))
        prefix = f"{name}_{tower}" if tower else name
        for step in steps:
            match step:
                case Conv():
                    body = _convolution(body, step, _numbered(f"{prefix}_conv", next(numbers)), width)
                case Pool():
                    body = _pooling(body, step, f"{step.kind}_pool_{name}_pool")
                case Fork():
                    tops += _forked(body, step, f"{prefix}_mixed_conv", width)
        if not isinstance(steps[-1], Fork):
            tops.append(body)
    return sym.Concat(*tops, name=f"ch_concat_{name}_chconcat")


def _forked(data: Symbol, fork: Fork, name: str, width: float) -> Iterator[Symbol]:
    for number, branch in enumerate(fork.branches):
        yield _convolution(data, branch, _numbered(name, number), width)


def _convolution(data: Symbol, conv: Conv, name: str, width: float) -> Symbol:
    """Return a convolution without bias, batch normalisation without scale, and a rectifier."""
    body = sym.Convolution(
        data,
        num_filter=scaled(conv.channels, width),
        kernel=conv.kernel,
        stride=(conv.stride, conv.stride),
        pad=conv.pad,
        no_bias=True,
        name=f"{name}_conv2d",
    )
    body = sym.BatchNorm(body, fix_gamma=True, name=f"{name}_batchnorm")
    return sym.Activation(body, act_type="relu", name=f"{name}_relu")


def _pooling(data: Symbol, pool: Pool, name: str) -> Symbol:
    pad = 1 if pool.stride == 1 else 0
    stride = (pool.stride, pool.stride)
    return sym.Pooling(data, kernel=(3, 3), stride=stride, pad=(pad, pad), pool_type=pool.kind, name=name)


def _numbered(name: str, number: int) -> str:
    """`conv`, `conv_1`, `conv_2`, ..."""
    return f"{name}_{number}" if number else name
