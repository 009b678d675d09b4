"""ONNX's node tests as a second opinion: every case whose operator has a counterpart, through adapters.

What is left out is counted by its reason in `golden/counts.txt`; run with `--update-golden` after changing an
adapter or the version of ONNX, and review what changed.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from tofu.importers.onnx import ADAPTERS, moves  # noqa: E402
from tofu.importers.onnx.node import Array, OnnxNode, UnsupportedNodeError  # noqa: E402

EXACT = {*moves.ADAPTERS, "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"} | {
    "Identity", "Not", "Where", "ArgMax", "ArgMin", "TopK", "Cast", "Max", "Min", "IsNaN", "IsInf",
    "ReverseSequence", "ReduceMax", "ReduceMin",
}  # fmt: skip
"""Nodes that move or compare numbers, so that whole ones are right in a floating-point type."""

FLOATS = (np.float16, np.float32, np.float64)


class NodeCase(NamedTuple):
    """One of ONNX's cases: a node, the arrays it should give, and how exactly."""

    name: str
    node: OnnxNode
    expected: tuple[Array | None, ...]
    rtol: float
    atol: float


class Collected(NamedTuple):
    """Cases to run, and how many were left out for each reason."""

    cases: list[NodeCase]
    excluded: Counter[str]


@pytest.fixture(scope="module")
def collected() -> Collected:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    cases, excluded = [], Counter[str]()
    for case in found:
        reason = _reason(case)
        if reason:
            excluded[reason] += 1
        else:
            cases.append(_read(case))
    return Collected(cases, excluded)


def _reason(case: Any) -> str | None:
    """Why a case is not for an adapter."""
    nodes = case.model.graph.node
    if len(nodes) != 1:
        return "several nodes: an operator spelled out in others, or a sequence of them"
    if nodes[0].op_type not in ADAPTERS:
        return f"no counterpart: {nodes[0].op_type}"
    if len(case.data_sets) != 1:
        return "several sets of data"
    inputs, results = case.data_sets[0]
    if any(value is None or isinstance(value, list | dict) for value in (*inputs, *results)):
        return "sequences and optional values"
    dtypes = [_array(value).dtype for value in (*inputs, *results)]
    if any(dtype not in FLOATS and dtype.kind not in "iub" for dtype in dtypes):
        return "types: text, complex numbers, small floats"
    values = [_array(value).dtype for value in (*inputs[:1], *results[:1])]
    if nodes[0].op_type not in EXACT and not all(dtype in FLOATS for dtype in values):
        return "types: arithmetic of whole numbers"
    return None


def _array(value: Any) -> Array:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _read(case: Any) -> NodeCase:
    (given, results), proto = case.data_sets[0], case.model.graph.node[0]
    queue = iter(given)
    inputs = tuple(_array(next(queue)) if name else None for name in proto.input)
    answers = iter(results)
    expected = tuple(_array(next(answers)) if name else None for name in proto.output)
    attributes = {each.name: _value(each) for each in proto.attribute}
    node = OnnxNode(proto.op_type, attributes, inputs, len(proto.output))
    return NodeCase(case.name, node, expected, case.rtol, case.atol)


def _value(attribute: Any) -> object:
    value = onnx.helper.get_attribute_value(attribute)
    return _array(value) if isinstance(value, onnx.TensorProto) else value


def _outcome(case: NodeCase) -> str | None:
    """None for a case that passes, or the reason why it is left out. Raises AssertionError if it fails."""
    data = [array for array in (*case.node.inputs[:1], *case.expected) if array is not None]
    if any(0 in array.shape for array in data):
        return "tensor without elements"
    if case.node.inputs and case.node[0].ndim == 0 and case.node.kind != "Range":
        return "tensor without dimensions"
    try:
        with np.errstate(all="ignore"):
            found = ADAPTERS[case.node.kind](_widened(case.node))
    except UnsupportedNodeError as reason:
        return str(reason)
    assert len(found) >= len(case.expected), case.name
    for array, expected in zip(found, case.expected, strict=False):
        if expected is not None:
            assert array.shape == expected.shape, (case.name, array.shape, expected.shape)
            wanted = expected if expected.dtype.kind == "f" else expected.astype(np.float64)
            np.testing.assert_allclose(array, wanted, case.rtol, case.atol, err_msg=case.name)
    return None


def _widened(node: OnnxNode) -> OnnxNode:
    """Whole numbers and truth values as floating-point numbers."""
    inputs = tuple(
        array if array is None or array.dtype in FLOATS else array.astype(np.float64) for array in node.inputs
    )
    return OnnxNode(node.kind, node.attributes, inputs, node.outputs)


def _report(passed: Counter[str], excluded: Counter[str], cases: int) -> Iterator[str]:
    yield f"ONNX {'.'.join(onnx.__version__.split('.')[:2])}: {cases} node cases"
    yield f"passed: {passed.total()} cases of {len(passed)} operators"
    yield f"left out: {excluded.total()}"
    merged: Counter[str] = Counter()
    for reason, count in excluded.items():
        merged["no counterpart" if reason.startswith("no counterpart") else reason] += count
    yield from (f"  {count:4} {reason}" for reason, count in sorted(merged.items()))
    missing = sorted(r.removeprefix("no counterpart: ") for r in excluded if r.startswith("no counterpart"))
    yield f"operators without a counterpart: {' '.join(missing)}"
    yield "passed, by operator:"
    yield from (f"  {count:4} {kind}" for kind, count in sorted(passed.items()))


def test_cases_pass_and_what_is_left_out_is_counted(
    collected: Collected, golden: Callable[[str, str], None]
) -> None:
    passed, excluded, failures = Counter[str](), Counter(collected.excluded), []
    for case in collected.cases:
        try:
            reason = _outcome(case)
        except AssertionError as error:
            failures.append(f"{case.name}: {str(error).strip()[:300]}")
            continue
        if reason is None:
            passed[case.node.kind] += 1
        else:
            excluded[reason] += 1
    assert not failures, "\n".join([f"{len(failures)} cases fail", *failures])
    total = len(collected.cases) + collected.excluded.total()
    golden("counts.txt", "\n".join([*_report(passed, excluded, total), ""]))


def test_every_adapter_is_tried(collected: Collected) -> None:
    assert {case.node.kind for case in collected.cases} == ADAPTERS.keys()
