"""Training graphs that are searched in a second."""

from __future__ import annotations

from functools import cache
from typing import Any

import tofu

OPTIONS: dict[str, dict[str, int]] = {
    "mlp": {"batch": 16},
    "lenet": {"batch": 16},
    "lstm": {"batch": 8, "steps": 3, "hidden": 16, "layers": 2},
}


@cache
def graph_of(name: str) -> Any:
    return tofu.models.get(name, **OPTIONS[name]).training_graph()
