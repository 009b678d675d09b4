"""The audit's reference results are those of the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import operators, tdl
from tofu.analyzer.audit import reference as module
from tofu.analyzer.audit.reference import reference
from tofu.analyzer.bind.staged_bound import bind
from tofu.tdl.arrays import UnsuitedError

from ..example_stages import training_stages


@pytest.mark.parametrize("name", operators.names())
def test_every_library_operator_has_the_interpreters_results(name: str) -> None:
    for stage, known in training_stages(name):
        if stage.description.opaques:
            continue
        bound = stage.bind({tensor: array.shape for tensor, array in known.items()})
        tensors = {tensor: known[tensor] for tensor in bound.shapes}
        for found, expected in zip(reference(bound, tensors), bound.interpret(tensors), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


STAGES = """
def scaled(x, w):
    top = lambda i: Max(lambda j: x[i, j])
    near = lambda i, j: exp(x[i, j] - top[i])
    return lambda i: Sum(lambda j: near[i, j] * w[j])
"""


@pytest.mark.parametrize("fault", ["wrong", "unsuited"])
def test_the_interpreter_computes_what_whole_arrays_do_not(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(*arguments: Any) -> Any:
        if fault == "unsuited":
            raise UnsuitedError("no")
        return tuple(output + 1 for output in computed(*arguments))

    computed = module.evaluate
    bound = bind(tdl.parse(STAGES), {"x": (3, 4), "w": (4,)})
    tensors = {"x": np.arange(12.0).reshape(3, 4) / 4, "w": np.ones(4)}
    expected = bound.interpret(tensors)
    np.testing.assert_allclose(reference(bound, tensors), expected, rtol=1e-13)
    monkeypatch.setattr(module, "evaluate", evaluate)
    np.testing.assert_array_equal(reference(bound, tensors), expected)
