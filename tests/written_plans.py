"""Plans in many forms, for tests of everything that shows plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tofu
from tofu.partitioner.plans.origin import PlanOrigin
from tofu.plans import At, Copy, Cut, Parts, Spread, compose

MODEL = "mlp"
BATCH = 16
WORKERS = 4

READERS = ("fc2.product", "fc2.grad.FullyConnected_product.data")
"""The readers of the copy of `fc2_weight`, in the order in which they run."""

SWAPPED = ("fc3.grad.FullyConnected_product.weight", "update(fc3_bias)")
"""Two operations in the order of the plan `mixed`; the graph has them the other way round."""

FORMS = {
    "fc1.product": Spread((("n", 2), ("h", 2)), (3, 1, 0, 2)),
    "fc2.product": Cut("n", (3, 7), (0, 2, 0)),
    "fc3.product": Parts(((0, ((0, 16), (0, 10), (0, 20))), (2, ((0, 16), (0, 10), (20, 64))))),
    "relu1": ("i0", At(1)),
}
"""The operations of `mixed` that are not whole on one worker."""

COPY = Copy(Spread((), (2,)), READERS[::-1])


def training_graph() -> Any:
    return tofu.models.get(MODEL, batch=BATCH).training_graph()


def stage(name: str) -> Spread:
    """Every layer whole on a worker of its own; all that belongs to no layer is on worker 3."""
    return Spread((), (int(name[name.index("fc") + 2]) - 1 if "fc" in name else 3,))


def _stages(graph: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    tensors = {tensor.name: stage(tensor.name) for tensor in graph.tensors if tensor.alias is None}
    return {operation.name: stage(operation.name) for operation in graph.operations}, tensors


def placed(graph: Any) -> tofu.Plan:
    """A pipeline: each operation whole on one worker."""
    plan = compose(graph, WORKERS, *_stages(graph))
    return replace(plan, source=PlanOrigin(MODEL, BATCH))


def mixed(graph: Any) -> tofu.Plan:
    """The pipeline with some operations and a tensor in other forms, a copy, and an order."""
    operations, tensors = _stages(graph)
    names = list(operations)
    place = names.index(SWAPPED[1])
    names[place : place + 2] = SWAPPED
    tensors["fc1_weight"] = Parts(
        ((0, ((0, 100), (0, 784))), (2, ((100, 128), (0, 300))), (2, ((100, 128), (300, 784))))
    )
    copies = {"fc2_weight": [COPY]}
    plan = compose(graph, WORKERS, operations | FORMS, tensors, copies=copies, order=names)
    return replace(plan, source=PlanOrigin(MODEL, BATCH))
