"""Initial values of parameters: chosen by name as in MXNet; every tensor has a random generator.

A tensor's random numbers depend only on the seed and its name, not on the order of tensors, the partition or
the number of workers.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Shape
from ..errors import DataError

Floats = npt.NDArray[np.float32]

ZERO_SUFFIXES = ("_bias", "_beta", "_moving_mean")
ONE_SUFFIXES = ("_gamma", "_moving_var")
SEED = re.compile(r"\.(\w+_)?seed$")


class WeightRule(Protocol):
    """Makes the initial values of weights: whole tensors of a shape `[out, in, ...]`, from a generator."""

    def __call__(self, shape: Shape, generator: np.random.Generator, /) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform in `[-scale, scale)`."""

    scale: float = 0.07

    def __call__(self, shape: Shape, generator: np.random.Generator, /) -> Floats:
        drawn = generator.random(shape, np.float32)
        drawn *= 2
        drawn -= 1
        drawn *= np.float32(self.scale)
        return drawn


@dataclass(frozen=True, slots=True)
class Normal:
    """Gaussian with mean 0."""

    sigma: float = 0.01

    def __call__(self, shape: Shape, generator: np.random.Generator, /) -> Floats:
        drawn = generator.standard_normal(shape, np.float32)
        drawn *= np.float32(self.sigma)
        return drawn


@dataclass(frozen=True, slots=True)
class Xavier:
    """Uniform in `[-scale, scale)`, or Gaussian of deviation `scale = sqrt(magnitude / fan)`, as in MXNet.

    For weights `[out, in, *window]`, fan_in is `in` and fan_out is `out`, both times the window's size.
    `factor` is "in", "out", or "avg" for their mean. With magnitude 2, gaussian and "in", this is He's rule
    for rectifiers.
    """

    magnitude: float = 3.0
    factor: str = "avg"
    gaussian: bool = False

    def __call__(self, shape: Shape, generator: np.random.Generator, /) -> Floats:
        if len(shape) < 2:
            raise DataError(
                f"Xavier needs weights [out, in, ...], but the shape is {shape}; use Uniform or Normal"
            )
        window = math.prod(shape[2:])
        inside, outside = float(shape[1] * window), float(shape[0] * window)
        fans = {"in": inside, "out": outside, "avg": (inside + outside) / 2}
        if self.factor not in fans:
            raise DataError(f"Xavier's factor is '{self.factor}', expected one of {', '.join(fans)}")
        scale = math.sqrt(self.magnitude / max(fans[self.factor], 1))
        return (Normal(scale) if self.gaussian else Uniform(scale))(shape, generator)


def initial_value(name: str, shape: Shape, rule: WeightRule, seed: int) -> Floats:
    """Return the initial value of a parameter or moving statistic.

    The end of its name decides: biases and means are 0, scales and variances are 1, and seeds of random
    operators are whole numbers. All other tensors with at least two dimensions are weights, made by `rule`.
    Raises DataError for any other tensor.
    """
    if SEED.search(name):
        return generator(name, seed).integers(0, 1 << 23, shape).astype(np.float32)
    if name.endswith(ZERO_SUFFIXES):
        return np.zeros(shape, np.float32)
    if name.endswith(ONE_SUFFIXES):
        return np.ones(shape, np.float32)
    if len(shape) >= 2 or name.endswith("_weight"):
        return rule(shape, generator(name, seed))
    known = ", ".join((*ZERO_SUFFIXES, *ONE_SUFFIXES, "_weight"))
    raise DataError(
        f"no initial value for '{name}' of shape {shape}: its name does not end in one of {known}, and it is "
        "not a matrix; give its value in `parameters`"
    )


def generator(name: str, seed: int) -> np.random.Generator:
    """Make a counter-based generator for one name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest[:16], "<u8")))
