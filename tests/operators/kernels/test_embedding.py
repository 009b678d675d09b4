"""The attached kernel of Embedding's and take's gradient computes what the derived description says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators import get
from tofu.operators.bound import BoundOperator
from tofu.operators.kernel import KernelCall
from tofu.operators.kernels import EmbeddingGradient
from tofu.operators.stage import derived

ROWS = 5


def gradient_of(text: str, tensors: dict[str, Any]) -> tuple[BoundOperator, dict[str, Any]]:
    """The gradient with respect to `weight`, bound, and the tensors that it takes."""
    (adjoint,) = derived(tdl.parse(text)).adjoint("weight")
    needed = {name: tensors[name] for name in adjoint.inputs}
    return adjoint.bind({name: array.shape for name, array in needed.items()}), needed


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("row", [(), (3,), (2, 3)])
@pytest.mark.parametrize("shape", [(9,), (3, 4)])
def test_gradient_equals_description(
    shape: tuple[int, ...], row: tuple[int, ...], clipped: bool, check_kernel: Any
) -> None:
    """Also for indices between two rows, which pick none, and clipped ones that leave the table."""
    places = ", ".join(f"k{axis}" for axis in range(len(shape)))
    variables = ", ".join([places, *(f"j{axis}" for axis in range(len(row)))])
    index = f"data[{places}]"
    if clipped:
        index = f"minimum(maximum({index}, 0), weight.shape[0] - 1)"
    access = ", ".join([index, *(f"j{axis}" for axis in range(len(row)))])
    rng = np.random.default_rng(6)
    data = rng.integers(-2 if clipped else 0, ROWS + 2 if clipped else ROWS, shape).astype(np.float64)
    data.flat[2] = 1.5
    tensors = {
        "data": data,
        "weight": np.zeros((ROWS, *row)),
        "grad_0": rng.integers(-4, 5, (*shape, *row)).astype(np.float64),
    }
    text = f"def pick(data, weight):\n    return lambda {variables}: weight[{access}]"
    bound, needed = gradient_of(text, tensors)
    check_kernel(bound, EmbeddingGradient(), needed, boxes=12)


@pytest.mark.parametrize(
    "access",
    ["data[l, k], j", "2 * data[k, l], j", "minimum(data[k, l], 3), j"],
    ids=["other order", "computed", "clipped elsewhere"],
)
def test_unknown_form_is_refused(access: str) -> None:
    tensors = {"data": np.ones((3, 3)), "weight": np.zeros((ROWS, 2)), "grad_0": np.ones((3, 3, 2))}
    bound, needed = gradient_of(
        f"def pick(data, weight):\n    return lambda k, l, j: weight[{access}]", tensors
    )
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    regions = {name: tuple((0, size) for size in array.shape) for name, array in needed.items()}
    call = KernelCall(bound, box, needed, regions, (np.empty((ROWS, 2)),))
    with pytest.raises(OperatorError, match="does not sum those rows of 'grad_0'"):
        EmbeddingGradient()(call)


@pytest.mark.parametrize(
    ("operator", "attributes", "table", "shapes"),
    [
        ("Embedding", {"input_dim": 6, "output_dim": 4}, "weight", {"data": (3, 5), "weight": (6, 4)}),
        ("take", {}, "a", {"a": (6, 4), "indices": (3, 5)}),
        ("take", {}, "a", {"a": (6, 2, 3), "indices": (7,)}),
    ],
)
def test_library_attaches_it(operator: str, attributes: Any, table: str, shapes: Any) -> None:
    """Without it every row of the table would be visited for every index."""
    (stage,) = get(operator).stages(attributes, shapes)
    (adjoint,) = stage.adjoint(table)
    assert isinstance(adjoint.kernel, EmbeddingGradient)
    rng = np.random.default_rng(8)
    tensors = {name: rng.integers(0, 6, shape).astype(np.float64) for name, shape in shapes.items()}
    tensors["grad_0"] = rng.integers(-3, 4, stage.bind(shapes).output_shapes[0]).astype(np.float64)
    needed = {name: tensors[name] for name in adjoint.inputs}
    bound = adjoint.bind({name: array.shape for name, array in needed.items()})
    np.testing.assert_array_equal(bound.compute(needed)[0], bound.interpret(needed)[0])
