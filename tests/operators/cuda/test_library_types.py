"""In 16 bits libraries compute what they compute in float32: nothing falls back for its types."""

from __future__ import annotations

import pytest

from tofu import models
from tofu.dataflow.graph import Graph, Operation
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.vendor import convolutions, products
from tofu.operators.kernels.kernel import KernelCall

from ...runtime.test_zoo_memory import FAMILIES, SMALL


def called(graph: Graph, operation: Operation) -> KernelCall:
    """An operation on whole tensors, at addresses of no memory."""
    bound = operation.bound

    def view(index: int) -> DeviceView:
        return DeviceView.dense(1 << 20, graph.tensors[index].shape, graph.tensors[index].dtype)

    tensors = dict(zip(bound.description.tensor_names, operation.inputs, strict=True))
    inputs = {name: view(tensors[name]) for name in bound.reads}
    return KernelCall(
        bound=bound,
        box={name: (0, bound.extents[name]) for name in bound.variables},
        inputs=inputs,  # type: ignore[arg-type]
        regions={name: tuple((0, length) for length in view.shape) for name, view in inputs.items()},
        outputs=tuple(view(index) for index in operation.outputs),  # type: ignore[arg-type]
    )


def by_libraries(graph: Graph) -> dict[str, str]:
    """Operations that libraries compute, and the type of their results."""
    found = {}
    for operation in graph.operations:
        call = called(graph, operation)
        if convolutions.supported(call) or products.product(call) is not None:
            found[operation.name] = graph.tensors[operation.outputs[0]].dtype
    return found


@pytest.mark.parametrize(
    "name", [name if name in SMALL else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
)
def test_libraries_compute_the_same_in_16_bits(name: str) -> None:
    wide, narrow = (
        by_libraries(models.get(name, **FAMILIES[name]).training_graph(dtype=dtype))
        for dtype in ("float32", "float16")
    )
    assert len(wide) >= 8
    assert narrow == dict.fromkeys(wide, "float16")
