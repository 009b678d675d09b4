"""Element by element, or nearly so."""

from __future__ import annotations

from typing import Any

from .outsider import POSITIVE, written
from .peer import F, torch


@written(
    """
def silu(x):
    return lambda *i: x[*i] * sigmoid(x[*i])
""",
    small={"x": (3, 4, 5)},
    large={"x": (8, 512, 512)},
)
def silu(x: Any) -> Any:
    return F.silu(x)


@written(
    """
def mish(x):
    return lambda *i: x[*i] * tanh(softplus(x[*i]))
""",
    small={"x": (3, 4, 5)},
    large={"x": (8, 512, 512)},
)
def mish(x: Any) -> Any:
    return F.mish(x)


@written(
    """
def squared_relu(x):
    return lambda *i: square(relu(x[*i]))
""",
    small={"x": (3, 4, 5)},
    large={"x": (8, 512, 512)},
)
def squared_relu(x: Any) -> Any:
    return F.relu(x).square()


@written(
    """
def geglu(x):
    return lambda b, t, d=x.shape[2] // 2: x[b, t, d] * (
        0.5 * x[b, t, d + x.shape[2] // 2] * (1 + erf(x[b, t, d + x.shape[2] // 2] / sqrt(2)))
    )
""",
    small={"x": (3, 4, 6)},
    large={"x": (8, 512, 1024)},
)
def geglu(x: Any) -> Any:
    value, gate = x.chunk(2, -1)
    return value * F.gelu(gate)


@written(
    """
def swiglu(x, up, gate):
    value = lambda n, h: Sum(lambda d: x[n, d] * up[h, d])
    control = lambda n, h: Sum(lambda d: x[n, d] * gate[h, d])
    return lambda n, h: control[n, h] * sigmoid(control[n, h]) * value[n, h]
""",
    small={"x": (5, 4), "up": (6, 4), "gate": (6, 4)},
    large={"x": (512, 512), "up": (1024, 512), "gate": (1024, 512)},
)
def swiglu(x: Any, up: Any, gate: Any) -> Any:
    return F.silu(x @ gate.T) * (x @ up.T)


@written(
    """
def temperature_softmax(logits, temperature):
    scaled = lambda b, k: logits[b, k] / temperature[b]
    peak = lambda b: Max(lambda k: scaled[b, k])
    weight = lambda b, k: exp(scaled[b, k] - peak[b])
    total = lambda b: Sum(lambda k: weight[b, k])
    return lambda b, k: weight[b, k] / total[b]
""",
    small={"logits": (4, 5), "temperature": (4,)},
    large={"logits": (2048, 1024), "temperature": (2048,)},
    kinds={"temperature": POSITIVE},
)
def temperature_softmax(logits: Any, temperature: Any) -> Any:
    return (logits / temperature[:, None]).softmax(-1)


@written(
    """
def quantise_dequantise(x, scale):
    level = lambda c, i: minimum(maximum(round(x[c, i] / scale[c]), -128), 127)
    return lambda c, i: level[c, i] * scale[c]
""",
    small={"x": (4, 5), "scale": (4,)},
    large={"x": (1024, 2048), "scale": (1024,)},
    kinds={"scale": POSITIVE},
)
def quantise_dequantise(x: Any, scale: Any) -> Any:
    return torch.clamp((x / scale[:, None]).round(), -128, 127) * scale[:, None]
