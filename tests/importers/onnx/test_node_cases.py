"""ONNX's node tests as a second opinion: every case is a model, which is imported and computed.

Cases that are left out are counted by their reasons in `golden/counts.txt`; run with `--update-golden` after
changing an adapter or the version of ONNX, and review what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from tofu.errors import GraphError  # noqa: E402
from tofu.importers.onnx import control, draws, folding, importer, moves, picking, read_onnx  # noqa: E402
from tofu.importers.onnx.functions import is_spelled_out  # noqa: E402
from tofu.importers.onnx.operand import UnknownValueError, UnsupportedNodeError  # noqa: E402

from .evaluate import FLOATS, Array, array_of, evaluate  # noqa: E402

EXACT = {*moves.ADAPTERS, *picking.ADAPTERS, *control.ADAPTERS} | {
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Identity", "Not",
    "Where", "ArgMax", "ArgMin", "TopK", "Cast", "Max", "Min", "IsNaN", "IsInf", "ReverseSequence",
    "ReduceMax", "ReduceMin", "Constant", "ConstantOfShape", "Range", "NonZero",
}  # fmt: skip
"""Nodes that move or compare numbers, so that whole ones are right in a floating-point type."""

INEXACT = {"DFT": 1e-6}
"""By operators of whose cases the expected values are off by more than their own tolerance: by how much."""

KNOWN = {*importer.ADAPTERS, *folding.FOLDS} - draws.ADAPTERS.keys()
SEVERAL = "(several nodes)"
"""The kind of a case in which an operator is spelled out in others."""


class NodeCase(NamedTuple):
    """One of ONNX's cases: a model, the arrays of its inputs and outputs, and how exactly."""

    name: str
    model: Any
    inputs: dict[str, Array]
    expected: tuple[Array, ...]
    rtol: float
    atol: float

    @property
    def kind(self) -> str:
        nodes = self.model.graph.node
        return str(nodes[0].op_type) if len(nodes) == 1 else SEVERAL


class Collected(NamedTuple):
    """Cases to run, and how many were left out for each reason."""

    cases: list[NodeCase]
    excluded: Counter[str]


@pytest.fixture(scope="module")
def collected(node_cases: list[Any]) -> Collected:
    cases, excluded = [], Counter[str]()
    for case in node_cases:
        reason = _reason(case)
        if reason:
            excluded[reason] += 1
        else:
            cases.append(_read(case))
    return Collected(cases, excluded)


def _reason(case: Any) -> str | None:
    """Why a case is not for the importer."""
    nodes, version = case.model.graph.node, case.model.opset_import[0].version
    if any(node.op_type in draws.ADAPTERS for node in nodes):
        return "random numbers"
    for node in nodes:
        if node.op_type not in KNOWN and not is_spelled_out(node, {}, version):
            return f"no counterpart: {node.op_type}"
    if len(case.data_sets) != 1:
        return "several sets of data"
    inputs, results = case.data_sets[0]
    if any(value is None or isinstance(value, list | dict) for value in (*inputs, *results)):
        return "sequences and optional values"
    dtypes = [array_of(value).dtype for value in (*inputs, *results)]
    if any(dtype not in FLOATS and dtype.kind not in "iub" for dtype in dtypes):
        return "types: text, complex numbers, small floats"
    values = [array_of(value).dtype for value in (*inputs[:1], *results[:1])]
    if len(nodes) > 1:
        return None
    if nodes[0].op_type not in EXACT and not all(dtype in FLOATS for dtype in values):
        return "types: arithmetic of whole numbers"
    return None


def _read(case: Any) -> NodeCase:
    given, results = case.data_sets[0]
    names = [each.name for each in case.model.graph.input]
    inputs = dict(zip(names, map(array_of, given), strict=True))
    atol = max(case.atol, INEXACT.get(case.model.graph.node[0].op_type, 0.0))
    return NodeCase(case.name, case.model, inputs, tuple(map(array_of, results)), case.rtol, atol)


def _outcome(case: NodeCase) -> str | None:
    """None for a case that passes, or the reason why it is left out. Raises AssertionError if it fails."""
    if any(0 in array.shape for array in (*list(case.inputs.values())[:1], *case.expected)):
        return "tensor without elements"
    try:
        found = _computed(case)
    except UnsupportedNodeError as reason:
        return str(reason).rpartition("): ")[2].partition("\n")[0]
    except UnknownValueError:
        return f"{case.kind} of inputs that are not constants"
    except GraphError as error:
        unknown = str(error).partition("these operators are not known, at these nodes:\n")[2]
        if not unknown:
            raise
        return f"no counterpart: {unknown.partition(':')[0].strip()}"
    assert len(found) == len(case.expected), case.name
    for array, expected in zip(found, case.expected, strict=True):
        assert array.shape == (expected.shape or (1,)), (case.name, array.shape, expected.shape)
        wanted = expected if expected.dtype.kind == "f" else expected.astype(np.float64)
        rtol = max(case.rtol, 2e-3 if expected.dtype == np.float16 else 0.0)
        np.testing.assert_allclose(array.reshape(expected.shape), wanted, rtol, case.atol, err_msg=case.name)
    return None


def _computed(case: NodeCase) -> list[Array]:
    """Import and compute a case. Inputs whose values decide shapes and branches become initializers: the one
    that the error names or, if the value is made of others, all that are whole or without dimensions.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    empty = {name: array for name, array in case.inputs.items() if 0 in array.shape}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in empty.items())
    while True:
        shapes = {each.name: case.inputs[each.name].shape for each in model.graph.input}
        for initializer in model.graph.initializer:
            shapes.pop(initializer.name, None)
        try:
            with np.errstate(all="ignore"):
                imported = read_onnx(model.SerializeToString(), shapes)
                break
        except UnknownValueError as error:
            kept = {each.name for each in model.graph.initializer}
            deciding = [error.name] if error.name in case.inputs.keys() - kept else _deciding(case, kept)
            if not deciding:
                raise
            for name in deciding:
                model.graph.initializer.append(onnx.numpy_helper.from_array(case.inputs[name], name))
    values = {name: array.reshape(array.shape or (1,)) for name, array in case.inputs.items()}
    wide = {
        name: array if array.dtype in FLOATS else array.astype(np.float64) for name, array in values.items()
    }
    variables = {*imported.symbol.list_arguments(), *imported.symbol.list_auxiliary_states()}
    with np.errstate(all="ignore"):
        return evaluate(
            imported.symbol, {n: a for n, a in wide.items() if n in variables} | dict(imported.parameters)
        )


def _deciding(case: NodeCase, kept: Container[str]) -> list[str]:
    found = [name for name, array in case.inputs.items() if array.dtype.kind in "iub" or not array.ndim]
    return [name for name in found if name not in kept]


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
            passed[case.kind] += 1
        else:
            excluded[reason] += 1
    assert not failures, "\n".join([f"{len(failures)} cases fail", *failures])
    total = len(collected.cases) + collected.excluded.total()
    golden("counts.txt", "\n".join([*_report(passed, excluded, total), ""]))


def test_every_adapter_is_tried(collected: Collected) -> None:
    """Each has a node case, but for the one that ONNX has none for; `test_as_exported` has its case."""
    assert {case.kind for case in collected.cases} >= KNOWN - {"GlobalLpPool"}
