"""Stages: identity, attached kernels, adjoints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import OperatorError, ShapeError
from tofu.operators import get
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.build_stages import stages_of
from tofu.operators.stages.definition import Attachment, variant
from tofu.operators.stages.stage import Stage
from tofu.tdl import format, parse

MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
SHAPES = {"a": (2, 3), "b": (3, 4)}


def product_kernel(call: KernelCall) -> Callable[[], None]:
    def run() -> None:
        np.matmul(call.inputs["a"], call.inputs["b"], out=call.outputs[0])

    return run


def seven_kernel(call: KernelCall) -> Callable[[], None]:
    def run() -> None:
        call.outputs[0][...] = 7

    return run


def test_equal_descriptions_and_shapes_give_the_same_objects() -> None:
    operator = get("Convolution")
    attributes = {"kernel": (3, 3), "num_filter": 4, "no_bias": True}
    (stage,) = operator.stages(attributes, {"data": (2, 3, 8, 8), "weight": (4, 3, 3, 3)})
    (other,) = operator.stages(dict(attributes), {"data": (5, 6, 9, 9), "weight": (4, 6, 3, 3)})
    assert stage is other
    shapes = {"data": (2, 3, 8, 8), "weight": (4, 3, 3, 3)}
    assert stage.bind(shapes) is stage.bind(dict(shapes))
    assert stage.adjoint("data")[0] is stage.adjoint("data")[0]
    (wider,) = operator.stages({**attributes, "pad": (1, 1)}, shapes)
    assert wider is not stage


@pytest.mark.parametrize("numbers", [(0, 0.0), (0.0, -0.0), (1, True)])
def test_equal_constants_of_another_type_or_sign_give_other_stages(numbers: tuple[float, float]) -> None:
    text = "def f(x, *, scalar):\n    return lambda i: maximum(x[i], scalar)"
    stages = [stages_of(variant(text, {"scalar": number}), {"x": (3,)})[0] for number in numbers]
    for stage, number in zip(stages, numbers, strict=True):
        assert f"maximum(x[i], {+number!r})" in format(stage.description)


def test_an_attached_kernel_computes_the_stage_and_its_adjoint() -> None:
    attached = variant(
        MATMUL, kernels={"output_0": Attachment(product_kernel, {"a": seven_kernel, "unread": seven_kernel})}
    )
    (stage,) = stages_of(attached, SHAPES)
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(12.0).reshape(3, 4)}
    np.testing.assert_array_equal(stage.bind(SHAPES).compute(tensors)[0], tensors["a"] @ tensors["b"])
    (adjoint,) = stage.adjoint("a")
    shapes = {**SHAPES, "grad_0": (2, 4)}
    (result,) = adjoint.bind(shapes).compute({**tensors, "grad_0": np.ones((2, 4))})
    np.testing.assert_array_equal(result, np.full((2, 3), 7))
    (derived,) = stage.adjoint("b")
    (result,) = derived.bind(shapes).compute({**tensors, "grad_0": np.ones((2, 4))})
    np.testing.assert_array_equal(result, tensors["a"].T @ np.ones((2, 4)))


def test_a_kernel_for_nothing_is_refused() -> None:
    with pytest.raises(OperatorError, match="kernels are attached to"):
        stages_of(variant(MATMUL, kernels={"product": Attachment(product_kernel)}), SHAPES)


def test_an_adjoint_that_is_zero_has_no_stages() -> None:
    (stage,) = get("Embedding").stages({"input_dim": 4, "output_dim": 2}, {"data": (3,), "weight": (4, 2)})
    assert stage.adjoint("data") == ()


def test_a_stage_takes_the_shapes_that_it_needs() -> None:
    special = specialize(parse(MATMUL), {}, {"a": 2, "b": 2})
    stage = Stage(special, ("output_0",))
    assert stage.bind({**SHAPES, "unrelated": (9,)}).shapes == SHAPES
    with pytest.raises(ShapeError, match="matmul needs the shape of b"):
        stage.bind({"a": (2, 3)})
