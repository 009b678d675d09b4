"""AlexNet and VGG: convolutions in a row, then fully connected layers with dropout.

Names are those of MXNet's `vgg.py`, so its graph files and parameters fit. `width` scales the channels of
every convolution, and `hidden` the two hidden fully connected layers.
"""

from __future__ import annotations

from ..dataflow import sym
from ..dataflow.symbol import Symbol
from .channels import scaled

VGG_CONVOLUTIONS = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""3x3 convolutions in each of the five stages (columns A, B, D and E of table 1)."""

VGG_CHANNELS = (64, 128, 256, 512, 512)


def alexnet(classes: int, hidden: int = 4096, width: float = 1) -> Symbol:
    """Return the network as the paper draws it, with its two halves merged into one.

    Every convolution reads all channels. A padding of 2 around the first brings images of 224 pixels to the
    55 positions that the paper states.
    """
    body = sym.Variable("data")
    body = _activated(body, scaled(96, width), kernel=11, stride=4, pad=2, number="1")
    body = _overlapping_maximum(_local_response(body, "norm1"), "pool1")
    body = _activated(body, scaled(256, width), kernel=5, pad=2, number="2")
    body = _overlapping_maximum(_local_response(body, "norm2"), "pool2")
    for number, channels in (("3", 384), ("4", 384), ("5", 256)):
        body = _activated(body, scaled(channels, width), kernel=3, pad=1, number=number)
    return _classified(_overlapping_maximum(body, "pool5"), classes, hidden)


def vgg(depth: int, classes: int, hidden: int = 4096, width: float = 1) -> Symbol:
    """Five stages of 3x3 convolutions, each halving the image, and three fully connected layers."""
    body = sym.Variable("data")
    stages = zip(VGG_CONVOLUTIONS[depth], VGG_CHANNELS, strict=True)
    for stage, (convolutions, channels) in enumerate(stages, 1):
        for number in range(1, convolutions + 1):
            body = _activated(body, scaled(channels, width), kernel=3, pad=1, number=f"{stage}_{number}")
        body = sym.Pooling(body, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{stage}")
    return _classified(body, classes, hidden)


def _activated(data: Symbol, channels: int, *, kernel: int, stride: int = 1, pad: int, number: str) -> Symbol:
    """Return a square convolution with bias, then a rectifier."""
    body = sym.Convolution(
        data,
        num_filter=channels,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(pad, pad),
        name=f"conv{number}",
    )
    return sym.Activation(body, act_type="relu", name=f"relu{number}")


def _local_response(data: Symbol, name: str) -> Symbol:
    return sym.LRN(data, nsize=5, alpha=1e-4, beta=0.75, knorm=2, name=name)


def _overlapping_maximum(data: Symbol, name: str) -> Symbol:
    return sym.Pooling(data, kernel=(3, 3), stride=(2, 2), pool_type="max", name=name)


def _classified(data: Symbol, classes: int, hidden: int) -> Symbol:
    body = sym.Flatten(data, name="flatten")
    for number in (6, 7):
        body = sym.FullyConnected(body, num_hidden=hidden, name=f"fc{number}")
        body = sym.Activation(body, act_type="relu", name=f"relu{number}")
        body = sym.Dropout(body, p=0.5, name=f"drop{number}")
    return sym.SoftmaxOutput(sym.FullyConnected(body, num_hidden=classes, name="fc8"), name="softmax")
