"""Whole ONNX models as symbols, with their parameters."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.builder import Names
from ...dataflow.naming import NameScope
from ...dataflow.symbol import Symbol
from ...dataflow.symbol.compose import variable
from ...errors import GraphError, TofuError
from ...operators.operator import Operator
from ...support.checked_argument import path_of
from . import control, draws, elementwise, layers, moves, picking, recurrent, reductions, resizing, transforms
from .compose import outputs
from .folding import FOLDED_AT_ONCE, FOLDS, fold
from .functions import functions_of, is_spelled_out, sizes_of, spelled_out
from .graph import (
    called,
    check_known,
    check_node,
    check_versions,
    escaped,
    kind_of,
    opset,
    ordered,
    read_model,
    reads,
)
from .inputs import input_shapes
from .node import Adapter, OnnxNode
from .operand import (
    ANALYSED_ANEW,
    Array,
    Constants,
    OnnxOperand,
    UnknownValueError,
    UnsupportedNodeError,
    constant,
)
from .section import Section, parted
from .tensors import element_type, read_tensor

ADAPTERS: Mapping[str, Adapter] = {
    **elementwise.ADAPTERS,
    **reductions.ADAPTERS,
    **moves.ADAPTERS,
    **picking.ADAPTERS,
    **layers.ADAPTERS,
    **recurrent.ADAPTERS,
    **resizing.ADAPTERS,
    **transforms.ADAPTERS,
    **draws.ADAPTERS,
    **control.ADAPTERS,
}
"""By a node's kind the function that makes its outputs."""

TRUTH = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not",
                   "IsNaN", "IsInf"})  # fmt: skip
"""Kinds of nodes whose outputs are truth values."""

WHOLE = frozenset({"ArgMax", "ArgMin", "Shape", "Size"})
"""Kinds of nodes whose outputs are whole numbers."""

MOST_UNROLLED = 1 << 16
"""A model whose loops and functions make more nodes than this, together, is refused. Nodes count in the file
or in the symbol, whichever are more. Those that differ from all before, and those that compute large
constants, count for several.
"""

NO_OPERATORS: Mapping[str, Operator] = {}
NO_SHAPES: Mapping[str, Sequence[int]] = {}


@dataclass(frozen=True)
class ImportedModel:
    """A model of an ONNX file."""

    symbol: Symbol
    """The outputs of the graph, in the order of the file."""

    parameters: Mapping[str, Array]
    """The values of parameters, running statistics and constants, by name."""

    shapes: Mapping[str, Shape]
    """The shapes of the inputs that are fed, by name."""


def from_onnx(
    model: str | PathLike[str] | bytes,
    shapes: Mapping[str, Sequence[int]] = NO_SHAPES,
    operators: Mapping[str, Operator] = NO_OPERATORS,
) -> tuple[Symbol, dict[str, Array]]:
    """Return the symbol of an ONNX model and the values of its variables, by name.

    `model` is a file's path, or its bytes. `shapes` are those of inputs whose dimensions the file leaves
    open, such as the batch. `operators` are descriptions of operators that are not known, by name; those of
    another domain are called `domain.Name`.

    Floating-point initializers are parameters, which training updates. Whole numbers, tensors without
    dimensions and the values of Constant nodes have a learning rate multiplier of 0. The symbol's other
    variables are the inputs, with their shapes.

    Raises GraphError for a file that is not a model, that reads from outside its folder, or that contradicts
    itself, and for all unknown operators together. Raises ShapeError for a dimension that stays open, and
    OperatorError for a node that asks for something that has no description.
    """
    found = read_onnx(model, shapes, operators)
    return found.symbol, dict(found.parameters)


def read_onnx(
    model: str | PathLike[str] | bytes,
    shapes: Mapping[str, Sequence[int]] = NO_SHAPES,
    operators: Mapping[str, Operator] = NO_OPERATORS,
    batch: int | None = None,
) -> ImportedModel:
    """Return an ONNX model with the shapes of its inputs; see `from_onnx`.

    `batch` is the extent of first dimensions that are open otherwise.
    """
    require_onnx()
    source = model if isinstance(model, bytes) else path_of(model, "model", GraphError)
    proto = read_model(source)
    with NameScope(), Constants(Names()) as constants:
        folder = source.parent if isinstance(source, Path) else None
        return _Importer(proto, folder, shapes, operators, batch, constants).run()


def require_onnx() -> None:
    """Raise GraphError if the package onnx is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise GraphError("reading ONNX models needs the package onnx; pip install 'tofu[onnx]'") from None


class _Importer:
    """Turns the nodes of one graph into a symbol."""

    def __init__(
        self,
        proto: Any,
        folder: Path | None,
        shapes: Mapping[str, Sequence[int]],
        operators: Mapping[str, Operator],
        batch: int | None,
        constants: Constants,
    ) -> None:
        self.graph = proto.graph
        self.opset = opset(proto)
        self.folder = folder
        self.given = shapes
        self.batch = batch
        self.constants = constants
        self.adapters = {**ADAPTERS, **{kind: described_by(each) for kind, each in operators.items()}}
        self.values: ChainMap[str, OnnxOperand] = ChainMap()
        self.functions = functions_of(proto)
        self.sizes = sizes_of(self.functions)
        self.place = ""
        self.sections: dict[int, Section] = {}
        self.unrolled = 0

    def run(self) -> ImportedModel:
        nodes = self.checked(self.graph)
        inputs = self.inputs()
        self.values.update(self.initializers(self.graph))
        read = [reads(node) for node in nodes]
        last = {name: index for index, names in enumerate(read) for name in names}
        kept = {each.name for each in self.graph.output}
        for index, node in enumerate(nodes):
            self.node(node)
            for name in read[index]:
                if last[name] == index and name not in kept:
                    self.values.pop(name, None)
        heads = [self.constants.symbol(self.values[each.name]).heads[0] for each in self.graph.output]
        symbol = Symbol(heads)
        variables = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
        fed = {name: shape for name, shape in inputs.items() if name in variables}
        return ImportedModel(symbol, self.constants.values(symbol), fed)

    def checked(self, graph: Any) -> list[Any]:
        """Return the nodes of a graph in order. Raises GraphError for those that cannot be read."""
        nodes = ordered(graph, self.values)
        known = self.adapters.keys() | FOLDS.keys()
        check_known([each for each in nodes if not is_spelled_out(each, self.functions, self.opset)], known)
        check_versions(nodes, self.opset)
        return nodes

    def inputs(self) -> dict[str, Shape]:
        """Make a variable for every input that has no value. Returns their shapes as variables have them."""
        kept = {each.name for each in self.graph.initializer}
        fed = [each for each in self.graph.input if each.name not in kept]
        shapes = input_shapes(fed, self.given, self.batch)
        held = {}
        for value, shape in zip(fed, shapes.values(), strict=True):
            dtype = element_type(value.type.tensor_type.elem_type)
            assert dtype is not None
            name = self.constants.claim(escaped(value.name))
            operand = OnnxOperand(shape, dtype, variable(name, shape or (1,)), name=name)
            self.values[value.name] = operand
            held[name] = operand.held
        return held

    def initializers(self, graph: Any) -> dict[str, OnnxOperand]:
        """Return the initializers of a graph by name."""
        found = {}
        for proto in graph.initializer:
            array = read_tensor(proto, self.folder)
            name = self.constants.reserve(escaped(proto.name))
            trained = array.dtype.kind == "f" and array.ndim > 0
            found[proto.name] = OnnxOperand(array.shape, array.dtype, None, array, name, trained)
        return found

    def section(self, graph: Any) -> Section:
        """Return a graph inside a node, prepared when it first runs."""
        if id(graph) not in self.sections:
            nodes = self.checked(graph)
            held = self.initializers(graph)
            for node in nodes:
                if kind_of(node) == "Constant":
                    held.update(zip(node.output, self.outputs(node, self.claim(node)), strict=True))
            still, moving = parted(graph, [node for node in nodes if kind_of(node) != "Constant"])
            self.sections[id(graph)] = Section(graph, held, still, moving)
        return self.sections[id(graph)]

    def claim(self, proto: Any) -> str:
        """Take a name for a node; inside a loop it begins with the loop's name and the step."""
        return self.constants.claim(self.place + called(proto))

    def limit(self, more: int) -> None:
        """Raise GraphError if loops and functions make too many nodes, with a number of further ones."""
        if self.unrolled + more > MOST_UNROLLED:
            raise GraphError(
                f"loops and functions make more than {MOST_UNROLLED:,} nodes, or "
                f"{MOST_UNROLLED // ANALYSED_ANEW:,} that differ in shapes or numbers; export the model with "
                "fewer steps, or with operators for the whole sequence"
            )

    def unroll(self, nodes: Sequence[Any], place: str) -> None:
        """Make the outputs of nodes inside a node, below a place."""
        around, self.place = self.place, place
        before, effort = self.unrolled, self.constants.effort
        self.unrolled += 1 + len(nodes)
        self.limit(0)
        for node in nodes:
            self.node(node)
            self.unrolled = max(self.unrolled, before + self.constants.effort - effort)
            self.limit(0)
        self.place = around

    def node(self, proto: Any) -> None:
        """Make the outputs of a node."""
        name = self.claim(proto)
        place = f"node {name!r} ({kind_of(proto)})"
        try:
            made = self.outputs(proto, name)
        except UnknownValueError as error:
            raise UnknownValueError(f"{place}: {error}", error.name) from None
        except TofuError as error:
            raise error.saying(f"{place}: {error}") from error
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise GraphError(f"{place} contradicts itself: {error}") from error
        if len(made) < len(proto.output):
            raise GraphError(f"{place} makes {len(made)} outputs, but the file names {len(proto.output)}")
        self.values.update(zip(proto.output, made, strict=False))

    def outputs(self, proto: Any, name: str) -> list[OnnxOperand]:
        node = self.read(proto)
        folded = fold(node)
        if folded is not None:
            self.constants.effort += sum(each.size for each in (*node.given, *folded)) // FOLDED_AT_ONCE
            return [replace(each, name=name) for each in folded]
        if kind_of(proto) in FOLDS and kind_of(proto) not in self.adapters:
            named = zip(node.names, node.inputs, strict=True)
            unknown = next((each for each, operand in named if operand and operand.known is None), "")
            raise UnknownValueError(
                f"input {unknown!r} is not a constant, and such a node is computed only at import", unknown
            )
        self.constants.begin(name)
        try:
            made = list(self.adapters.get(kind_of(proto), _not_adapted)(node))
        except UnsupportedNodeError as error:
            made = self.spelled_out(proto, node, error)
        return self.typed(node, self.constants.named(made, name))

    def spelled_out(self, proto: Any, node: OnnxNode, reason: UnsupportedNodeError) -> list[OnnxOperand]:
        """Return the outputs of a node from those that it stands for. Raises `reason` if there are none."""
        self.limit(self.sizes.get(kind_of(proto), 0))
        found = spelled_out(proto, node, self.functions)
        if found is None:
            raise reason
        graph, version = found
        outer, self.opset = self.opset, version
        made = iter(_Body(self, graph).run("", node.given))
        self.opset = outer
        return [next(made) if name else constant(0) for name in proto.output]

    def read(self, proto: Any) -> OnnxNode:
        """Return a node with its inputs."""
        if kind_of(proto) in ADAPTERS.keys() - control.ADAPTERS.keys():
            check_node(proto, self.opset)
        attributes = {each.name: self.attribute(each) for each in proto.attribute}
        inputs = tuple(self.values[each] if each else None for each in proto.input)
        names = tuple(proto.input)
        return OnnxNode(proto.op_type, attributes, inputs, len(proto.output), self.opset, names)

    def attribute(self, proto: Any) -> object:
        import onnx

        if proto.type == onnx.AttributeProto.TENSOR:
            return read_tensor(proto.t, self.folder)
        if proto.type == onnx.AttributeProto.GRAPH:
            return _Body(self, proto.g)
        return onnx.helper.get_attribute_value(proto)

    def typed(self, node: OnnxNode, made: Sequence[OnnxOperand]) -> list[OnnxOperand]:
        """Return outputs with the types that ONNX gives them."""
        dtype: np.dtype[Any] | None = None
        if node.kind in TRUTH:
            dtype = np.dtype(bool)
        elif node.kind in WHOLE:
            dtype = np.dtype(np.int64)
        elif node.kind == "Where":
            dtype = node[1].dtype
        elif node.kind == "OneHot":
            dtype = node[2].dtype
        elif node.kind == "Cast":
            dtype = element_type(node.integer("to", 0))
        elif node.kind == "CastLike":
            dtype = node[1].dtype
        return [each if dtype is None else each.of_type(dtype) for each in made]


def _not_adapted(node: OnnxNode) -> Sequence[OnnxOperand]:
    raise UnsupportedNodeError(f"{node.kind} has no description")


class _Body:
    """A graph inside a node that is being read; see `node.NodeBody`."""

    def __init__(self, importer: _Importer, graph: Any) -> None:
        self.importer = importer
        self.graph = graph
        self.around: ChainMap[str, OnnxOperand] | None = None

    @property
    def inputs(self) -> int:
        return len(self.graph.input)

    @property
    def outputs(self) -> int:
        return len(self.graph.output)

    def expect(self, runs: int) -> None:
        self.importer.limit(runs * (1 + len(self.importer.section(self.graph).moving)))

    def run(self, label: str | None, operands: Sequence[OnnxOperand]) -> list[OnnxOperand]:
        importer = self.importer
        if len(operands) != self.inputs:
            raise GraphError(f"its graph has {self.inputs} inputs, but the node gives {len(operands)}")
        outside, prefix = importer.values, importer.constants.prefix
        place = importer.place if label is None else f"{prefix}{label}." if label else prefix
        section = importer.section(self.graph)
        if self.around is None:
            importer.values = self.around = outside.new_child(dict(section.held))
            importer.unroll(section.still, importer.place if label is None else prefix)
        importer.values = self.around.new_child(dict(zip(section.given, operands, strict=True)))
        importer.unroll(section.moving, place)
        found = [importer.values[name] for name in section.made]
        importer.values = outside
        importer.constants.begin(prefix[:-1])
        return found


def described_by(operator: Operator) -> Callable[[OnnxNode], Sequence[OnnxOperand]]:
    """Return the adapter of an operator that a user describes. It takes the node's attributes it knows."""

    def run(node: OnnxNode) -> Sequence[OnnxOperand]:
        known = {spec.name for spec in operator.specs}
        values = {name: _plain(value) for name, value in node.attributes.items() if name in known}
        return outputs(operator, *node.given, **values)

    return run


def _plain(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
