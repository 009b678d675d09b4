"""Nodes that are spelled out in others: functions of a file, and operators that ONNX itself defines so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ...errors import GraphError
from .graph import DEFAULT_DOMAINS, called_kind, every_node, kind_of
from .node import OnnxNode
from .operand import OnnxOperand

Functions = Mapping[str, Any]
"""The functions of a file, by what nodes call them."""


def functions_of(model: Any) -> Functions:
    """Return the functions that a file defines."""
    return {called_kind(each.domain, each.name): each for each in model.functions}


def sizes_of(functions: Functions) -> Mapping[str, int]:
    """Return how many nodes each function stands for, those of functions that it calls among them.

    Raises GraphError if a function calls itself.
    """
    nodes = {kind: [kind_of(node) for node in every_node(each)] for kind, each in functions.items()}
    found: dict[str, int] = {}
    try:
        order = list(TopologicalSorter(nodes).static_order())
    except CycleError as error:
        raise GraphError(f"the function {error.args[1][0]!r} calls itself") from None
    for kind in order:
        found[kind] = 1 + sum(found[each] for each in nodes.get(kind, ()))
    return found


def is_spelled_out(node: Any, functions: Functions, version: int) -> bool:
    """Return whether a node of a file stands for others."""
    schema = _schema(node, version)
    defined = schema is not None and (schema.has_function or schema.has_context_dependent_function)
    return kind_of(node) in functions or bool(defined)


def spelled_out(proto: Any, node: OnnxNode, functions: Functions) -> tuple[Any, int] | None:
    """Return the graph that a node stands for, and its version of ONNX's operators; None if it has none.

    The graph's inputs are those that the node gives, its outputs those that the node names.
    """
    function = functions.get(kind_of(proto)) or _defined(proto, node)
    if function is None:
        return None
    versions = [each.version for each in function.opset_import if each.domain in DEFAULT_DOMAINS]
    return _graph(proto, function, _defaults(_schema(proto, node.opset))), int(
        next(iter(versions), node.opset)
    )


def _schema(node: Any, version: int) -> Any:
    import onnx

    if node.domain not in DEFAULT_DOMAINS:
        return None
    try:
        return onnx.defs.get_schema(node.op_type, version)
    except onnx.defs.SchemaError:
        return None


def _defined(proto: Any, node: OnnxNode) -> Any:
    """Return the function by which ONNX defines a node; None if there is none."""
    import onnx

    schema = _schema(proto, node.opset)
    if schema is None:
        return None
    if schema.has_context_dependent_function:
        build, versions = _built_for(schema, proto, node), schema.context_dependent_function_opset_versions
    else:
        build, versions = schema.get_function_with_opset_version, schema.function_opset_versions
    usable = [version for version in versions if version <= node.opset]
    data = build(max(usable)) if usable else b""
    return onnx.FunctionProto.FromString(data) if data else None


def _built_for(schema: Any, proto: Any, node: OnnxNode) -> Callable[[int], bytes]:
    """Return what builds a function for the attributes and the types of inputs of a node."""
    text, types = proto.SerializeToString(), [_type(each) for each in node.inputs]
    build = schema.get_context_dependent_function_with_opset_version
    return lambda version: bytes(build(version, text, types))


def _type(operand: OnnxOperand | None) -> bytes:
    """Return the type of an input as ONNX writes it; an empty one if it is left out."""
    from onnx import TypeProto, helper

    if operand is None:
        return bytes(TypeProto().SerializeToString())
    number = helper.np_dtype_to_tensor_dtype(operand.dtype)
    return bytes(helper.make_tensor_type_proto(number, operand.shape).SerializeToString())


def _defaults(schema: Any) -> dict[str, Any]:
    """Return the attributes that a node has if it does not state them."""
    if schema is None:
        return {}
    given = {name: each.default_value for name, each in schema.attributes.items()}
    return {name: each for name, each in given.items() if each.type}


def _graph(node: Any, function: Any, defaults: Mapping[str, Any]) -> Any:
    """Return the body of a function for a node: with its attributes, without the inputs it leaves out."""
    from onnx import GraphProto

    graph = GraphProto(name=function.name)
    graph.node.extend(function.node)
    given = dict(zip(function.input, node.input, strict=False))
    for name in function.input:
        if given.get(name):
            graph.input.add().name = name
    for name, wanted in zip(function.output, node.output, strict=False):
        if wanted:
            graph.output.add().name = name
    left_out = {name for name in function.input if not given.get(name)}
    attributes = {**defaults, **{each.name: each for each in (*function.attribute_proto, *node.attribute)}}
    _bind(graph, attributes, left_out)
    return graph


def _bind(graph: Any, attributes: Mapping[str, Any], left_out: set[str]) -> None:
    """Replace references to attributes of a function by their values, and inputs left out by no name."""
    for node in every_node(graph):
        for place, name in enumerate(node.input):
            if name in left_out:
                node.input[place] = ""
        kept = [_bound(each, attributes) for each in node.attribute]
        del node.attribute[:]
        node.attribute.extend(each for each in kept if each is not None)


def _bound(attribute: Any, attributes: Mapping[str, Any]) -> Any:
    """Return an attribute with its value; None if the node leaves out the one that it refers to."""
    from onnx import AttributeProto

    if not attribute.ref_attr_name:
        return AttributeProto.FromString(attribute.SerializeToString())
    if attribute.ref_attr_name not in attributes:
        return None
    found = AttributeProto.FromString(attributes[attribute.ref_attr_name].SerializeToString())
    found.name = attribute.name
    return found
