"""Residual networks with pre-activation units, plain and wide, as MXNet's image classification example.

Names and structure are those of MXNet's `resnet.py`, so its graph files and parameters fit. A wide network
multiplies the channels of every unit, middle and output alike, and leaves the stem as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dataflow import sym
from ..dataflow.symbol import Symbol
from ..errors import GraphError

EPSILON = 2e-5
MOMENTUM = 0.9


@dataclass(frozen=True, slots=True)
class ResNetArchitecture:
    """Units per stage and channels: of the stem, then of each stage's output."""

    units: tuple[int, ...]
    channels: tuple[int, ...]
    bottleneck: bool


IMAGENET_UNITS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


def imagenet(depth: int, width: int = 1) -> ResNetArchitecture:
    """Size it for large images: a 7x7 stem, four stages, and bottleneck units from 50 layers on."""
    bottleneck = depth >= 50
    base = (256, 512, 1024, 2048) if bottleneck else (64, 128, 256, 512)
    return ResNetArchitecture(IMAGENET_UNITS[depth], (64, *(width * c for c in base)), bottleneck)


def small(depth: int, width: int) -> ResNetArchitecture:
    """Size it for small images: a 3x3 stem and three stages of n units, depth = 6n + 4."""
    units = (depth - 4) // 6
    return ResNetArchitecture((units,) * 3, (16, 16 * width, 32 * width, 64 * width), False)


def network(architecture: ResNetArchitecture, image: tuple[int, int, int], classes: int) -> Symbol:
    """Return the symbol for images `[channel, height, width]`; data is [batch, channel, height, width].

    Raises GraphError if samples are not images.
    """
    if len(image) != 3:
        raise GraphError(f"an image must be (channels, height, width), not {image}")
    stem, *channels = architecture.channels
    data = sym.identity(sym.Variable("data"), name="id")
    data = sym.BatchNorm(data, fix_gamma=True, eps=EPSILON, momentum=MOMENTUM, name="bn_data")
    if min(image[1:]) <= 32:
        body = _convolution(data, stem, kernel=3, name="conv0")
    else:
        body = _convolution(data, stem, kernel=7, stride=2, name="conv0")
        body = _activated(body, "0")
        body = sym.Pooling(body, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", name="pool0")
    for stage, (units, width) in enumerate(zip(architecture.units, channels, strict=True), 1):
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            body = _unit(
                body,
                width,
                stride,
                keeps_shape=unit > 1,
                bottleneck=architecture.bottleneck,
                name=f"stage{stage}_unit{unit}",
            )
    body = _activated(body, "1")
    body = sym.Pooling(body, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    body = sym.FullyConnected(sym.Flatten(body, name="flatten"), num_hidden=classes, name="fc1")
    return sym.SoftmaxOutput(body, name="softmax")


def _unit(data: Symbol, width: int, stride: int, *, keeps_shape: bool, bottleneck: bool, name: str) -> Symbol:
    """Return a residual unit: two 3x3 convolutions, or 1x1, 3x3, 1x1 with a quarter of the
    channels inside.
    """
    first = body = _activated(data, "1", f"{name}_")
    if bottleneck:
        body = _convolution(body, width // 4, kernel=1, name=f"{name}_conv1")
        body = _activated(body, "2", f"{name}_")
        body = _convolution(body, width // 4, kernel=3, stride=stride, name=f"{name}_conv2")
        body = _activated(body, "3", f"{name}_")
        body = _convolution(body, width, kernel=1, name=f"{name}_conv3")
    else:
        body = _convolution(body, width, kernel=3, stride=stride, name=f"{name}_conv1")
        body = _activated(body, "2", f"{name}_")
        body = _convolution(body, width, kernel=3, name=f"{name}_conv2")
    shortcut = data
    if not keeps_shape:
        shortcut = _convolution(first, width, kernel=1, stride=stride, name=f"{name}_sc")
    return sym.elemwise_add(body, shortcut, name=f"{name}_plus")


def _convolution(data: Symbol, width: int, *, kernel: int, stride: int = 1, name: str) -> Symbol:
    """Return a square convolution without bias, padded so that stride 1 keeps the size."""
    return sym.Convolution(
        data,
        num_filter=width,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(kernel // 2, kernel // 2),
        no_bias=True,
        name=name,
    )


def _activated(data: Symbol, number: str, prefix: str = "") -> Symbol:
    """Batch normalisation, then a rectifier."""
    normal = sym.BatchNorm(data, fix_gamma=False, eps=EPSILON, momentum=MOMENTUM, name=f"{prefix}bn{number}")
    return sym.Activation(normal, act_type="relu", name=f"{prefix}relu{number}")
