"""Symbols as ONNX files, for inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Shape
from ...dataflow.node import Entry, Node
from ...dataflow.symbol import Symbol
from ...dataflow.symbol.shapes import Table, complete, infer_symbol
from ...errors import DataError, GraphError, OperatorError
from ...operators.library import registry
from ...support.atomic_files import write_whole
from ...support.checked_argument import path_of, require
from .compose import KIND, SAME
from .graph import MOST_BYTES
from .importer import require_onnx
from .writer import Writer
from .writing import WRITERS

OPSET = 17
"""The version of ONNX's operators that files are written in."""

IR_VERSION = 8
"""The version of the file format that goes with it."""


def export_onnx(
    symbol: Symbol,
    parameters: Mapping[str, npt.ArrayLike],
    path: str | PathLike[str],
    shapes: Mapping[str, Sequence[int]],
) -> None:
    """Write a symbol and its parameters as an ONNX file, as used after training.

    `shapes` are those of the inputs. Labels, which only losses read, are left out: a SoftmaxOutput becomes a
    softmax. Operators without a plain counterpart are refused, all by name together.

    Raises GraphError for these, DataError for a parameter without a value, of another shape, or a file that
    cannot be written.
    """
    require_onnx()
    import onnx

    table = infer_symbol(symbol, shapes)
    complete(symbol, table)
    writer = Writer()
    names = _nodes(symbol, table, writer)
    read = {name for node in writer.nodes for name in node.input} | {names[head] for head in symbol.heads}
    variables = [node for node in symbol.nodes if node.is_variable and node.name in read]
    require(isinstance(parameters, Mapping), parameters, "parameters", "arrays by name", GraphError)
    kept = [_initializer(node, table, parameters) for node in variables if node.name not in shapes]
    kept += [onnx.numpy_helper.from_array(value, name) for name, value in writer.values.items()]
    fed = [_described(node.name, _shape(table, Entry(node, 0))) for node in variables if node.name in shapes]
    made = [_described(names[head], _shape(table, head)) for head in symbol.heads]
    graph = onnx.helper.make_graph(writer.nodes, symbol.name or "graph", fed, made, kept)
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tofu",
    )
    if model.ByteSize() > MOST_BYTES:
        raise DataError(f"the model takes {model.ByteSize():,} bytes, but an ONNX file holds {MOST_BYTES:,}")
    try:
        write_whole(path_of(path, "path", DataError), model.SerializeToString())
    except OSError as error:
        raise DataError(f"the ONNX file {path} cannot be written: {error.strerror}") from error


def _nodes(symbol: Symbol, table: Table, writer: Writer) -> dict[Entry, str]:
    """Write all nodes and return the name of every output. Raises GraphError for what cannot be written."""
    writer.names.update(node.name for node in symbol.nodes if node.is_variable)
    names: dict[Entry, str] = {}
    missing: list[str] = []
    for node in symbol.nodes:
        if node.is_variable:
            names[Entry(node, 0)] = node.name
            continue
        inputs = [names.get(entry, "") for entry in node.inputs]
        shapes = [_shape(table, entry) for entry in node.inputs]
        made = [_shape(table, Entry(node, index)) for index in range(len(node.outputs))]
        try:
            outputs = _written(writer, node, inputs, shapes, made)
        except OperatorError as error:
            missing.append(f"  {error}: {node.name!r}")
            continue
        names.update({Entry(node, index): name for index, name in enumerate(outputs)})
    if missing:
        listed = "\n".join(missing[:20]) + (f"\n  and {len(missing) - 20} more" if len(missing) > 20 else "")
        raise GraphError(
            f"these operators have no plain counterpart in ONNX:\n{listed}\nwrite them in terms of others"
        )
    return names


def _written(
    writer: Writer, node: Node, inputs: Sequence[str], shapes: Sequence[Shape], made: Sequence[Shape]
) -> Sequence[str]:
    assert node.operator is not None
    name = node.operator.name
    kind = node.text.get(KIND)
    if kind == "Expand":
        return WRITERS["broadcast_to"](writer, node, inputs, shapes, made)
    if kind in SAME.values():
        return writer.add(str(kind), inputs, node.name)
    if name not in WRITERS or not _of_library(node):
        raise OperatorError(name)
    return WRITERS[name](writer, node, inputs, shapes, made)


def _of_library(node: Node) -> bool:
    name = "" if node.operator is None else node.operator.name
    return name in registry.names() and registry.get(name) is node.operator


def _shape(table: Table, entry: Entry) -> Shape:
    shape = table[entry.node][entry.output]
    return tuple(extent or 0 for extent in shape or ())


def _described(name: str, shape: Shape) -> Any:
    import onnx

    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def _initializer(node: Node, table: Table, parameters: Mapping[str, npt.ArrayLike]) -> Any:
    """Return the value of a parameter. Raises DataError."""
    import onnx

    shape = _shape(table, Entry(node, 0))
    if node.name not in parameters:
        raise DataError(
            f"parameter {node.name!r} of shape {shape} has no value; give it in parameters, or its shape in "
            "shapes"
        )
    array = np.asarray(parameters[node.name], np.float32)
    if array.shape != shape:
        raise DataError(f"parameter {node.name!r} has shape {shape}, but its value has {array.shape}")
    return onnx.numpy_helper.from_array(array, node.name)
