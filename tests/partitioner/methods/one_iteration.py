"""The weights after one iteration of a plan, from drawn start values."""

from __future__ import annotations

from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.partitioner.plans.plan import Plan


def weights_after(graph: Graph, plan: Plan) -> dict[str, Any]:
    """Return all parameters by name; labels are zero, and everything else is small."""
    drawn = np.random.default_rng(0)
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        for tensor in graph.tensors:
            if tensor.role.persistent and tensor.alias is None:
                value = drawn.uniform(0.0, 0.1, tensor.shape)
                executor.write(tensor.name, np.floor(value) if "label" in tensor.name else value)
        executor.run()
        names = [t.name for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None]
        return {name: executor.read(name) for name in names}
