"""One step of recurrent networks."""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import torch


@written(
    """
def lstm_cell(x, h, c, w, u, b_w, b_u):
    from_x = lambda n, g: Sum(lambda k: x[n, k] * w[g, k])
    from_h = lambda n, g: Sum(lambda k: h[n, k] * u[g, k])
    gate = lambda n, g: from_x[n, g] + b_w[g] + from_h[n, g] + b_u[g]
    state = lambda n, j=c.shape[1]: (
        sigmoid(gate[n, j + c.shape[1]]) * c[n, j] + sigmoid(gate[n, j]) * tanh(gate[n, j + 2 * c.shape[1]])
    )
    result = lambda n, j: sigmoid(gate[n, j + 3 * c.shape[1]]) * tanh(state[n, j])
    return result, state
""",
    small={"x": (4, 3), "h": (4, 2), "c": (4, 2), "w": (8, 3), "u": (8, 2), "b_w": (8,), "b_u": (8,)},
    large={
        "x": (128, 512),
        "h": (128, 512),
        "c": (128, 512),
        "w": (2048, 512),
        "u": (2048, 512),
        "b_w": (2048,),
        "b_u": (2048,),
    },
)
def lstm_cell(x: Any, h: Any, c: Any, w: Any, u: Any, b_w: Any, b_u: Any) -> Any:
    return torch.lstm_cell(x, (h, c), w, u, b_w, b_u)


@written(
    """
def gru_cell(x, h, w, u, b_w, b_u):
    from_x = lambda n, g: Sum(lambda k: x[n, k] * w[g, k])
    from_h = lambda n, g: Sum(lambda k: h[n, k] * u[g, k])
    a = lambda n, g: from_x[n, g] + b_w[g]
    b = lambda n, g: from_h[n, g] + b_u[g]
    reset = lambda n, j=h.shape[1]: sigmoid(a[n, j] + b[n, j])
    update = lambda n, j=h.shape[1]: sigmoid(a[n, j + h.shape[1]] + b[n, j + h.shape[1]])
    new = lambda n, j: tanh(a[n, j + 2 * h.shape[1]] + reset[n, j] * b[n, j + 2 * h.shape[1]])
    return lambda n, j: (1 - update[n, j]) * new[n, j] + update[n, j] * h[n, j]
""",
    small={"x": (4, 3), "h": (4, 2), "w": (6, 3), "u": (6, 2), "b_w": (6,), "b_u": (6,)},
    large={
        "x": (128, 512),
        "h": (128, 512),
        "w": (1536, 512),
        "u": (1536, 512),
        "b_w": (1536,),
        "b_u": (1536,),
    },
)
def gru_cell(x: Any, h: Any, w: Any, u: Any, b_w: Any, b_u: Any) -> Any:
    return torch.gru_cell(x, h, w, u, b_w, b_u)
