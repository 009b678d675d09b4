"""ONNX's node tests, with inputs that are constants: what NumPy computes at import is what ONNX says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from tofu.importers.onnx.folding import FOLDS, fold  # noqa: E402
from tofu.importers.onnx.node import OnnxNode  # noqa: E402
from tofu.importers.onnx.operand import OnnxOperand, constant  # noqa: E402

from .evaluate import FLOATS, array_of  # noqa: E402


@pytest.fixture(scope="module")
def cases(node_cases: list[Any]) -> list[Any]:
    """Return the cases of nodes that are computed if their inputs are constants."""
    return [
        case
        for case in node_cases
        if len(case.model.graph.node) == 1
        and case.model.graph.node[0].op_type in FOLDS
        and not any(value is None or isinstance(value, list | dict) for value in _values(case))
        and all(_is_read(array_of(value).dtype) for value in _values(case))
    ]


def _is_read(dtype: np.dtype[Any]) -> bool:
    return dtype in FLOATS or dtype.kind in "iub"


def _values(case: Any) -> tuple[Any, ...]:
    inputs, outputs = case.data_sets[0]
    return (*inputs, *outputs)


def _node(case: Any) -> OnnxNode:
    proto = case.model.graph.node[0]
    names = [each.name for each in case.model.graph.input]
    given = dict(zip(names, map(array_of, case.data_sets[0][0]), strict=True))
    inputs: list[OnnxOperand | None] = [
        constant(given[each], given[each].dtype, each) if each else None for each in proto.input
    ]
    given_attributes = {each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute}
    attributes = {
        name: array_of(value) if isinstance(value, onnx.TensorProto) else value
        for name, value in given_attributes.items()
    }
    version = case.model.opset_import[0].version
    return OnnxNode(
        proto.op_type, attributes, tuple(inputs), len(proto.output), version, tuple(map(str, proto.input))
    )


def test_constants_are_computed_as_onnx_says(cases: list[Any]) -> None:
    for case in cases:
        found = fold(_node(case))
        assert found is not None, case.name
        for operand, wanted in zip(found, map(array_of, case.data_sets[0][1]), strict=True):
            assert operand.known is not None, case.name
            assert operand.shape == wanted.shape, case.name
            assert operand.dtype == wanted.dtype, case.name
            np.testing.assert_allclose(operand.known, wanted, case.rtol, case.atol, err_msg=case.name)


def test_every_kind_that_is_computed_has_cases(cases: list[Any]) -> None:
    kinds = {case.model.graph.node[0].op_type for case in cases}
    assert FOLDS.keys() - kinds <= {"Sum"}
