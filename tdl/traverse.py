"""Walking and rewriting syntax trees; shared by every pass.

Walks are iterative, so that no tree, however deep, meets Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from .ast import (
    Attribute,
    AttributeParameter,
    Binary,
    Binder,
    Call,
    Choice,
    CustomReducer,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Lambda,
    NamedStage,
    Number,
    OpaqueElement,
    Pad,
    ReducerCall,
    Star,
    TensorParameter,
    Unary,
    Variable,
)

Node = (
    Number
    | Variable
    | Star
    | FullSlice
    | Attribute
    | Choice
    | Extent
    | Element
    | Pad
    | Unary
    | Binary
    | Call
    | Binder
    | ReducerCall
    | OpaqueElement
    | Lambda
    | NamedStage
    | TensorParameter
    | AttributeParameter
    | Description
)
AnyNode = TypeVar("AnyNode", bound=Node)


def children(node: Node) -> tuple[Node, ...]:
    """Return a node's direct children in the order of the text."""
    match node:
        case Variable() | Number() | Extent():  # the most frequent, found soonest
            return ()
        case Binary(left=left, right=right):
            return (left, right)
        case Element(indices=indices):
            return indices
        case Unary(operand=operand):
            return (operand,)
        case Call(arguments=arguments):
            return arguments
        case ReducerCall(variables=variables, body=body) | Lambda(variables=variables, body=body):
            return (*variables, body)
        case Binder(extent=extent):
            return () if extent is None else (extent,)
        case Pad(element=element, value=value):
            return (element, value)
        case OpaqueElement(arguments=arguments, indices=indices):
            return (*arguments, *indices)
        case NamedStage(value=value):
            return (value,)
        case Description():
            return (*node.tensors, *node.attributes, *node.stages, *node.outputs)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, parents first, in the order of the text."""
    pending: list[Node] = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(children(current)))


def custom_reducers(node: Node) -> tuple[CustomReducer, ...]:
    """Return the custom reducers that a tree uses, each once, in the order of the text."""
    used = (part.reducer for part in walk(node) if isinstance(part, ReducerCall))
    return tuple(dict.fromkeys(reducer for reducer in used if isinstance(reducer, CustomReducer)))


def variable_names(node: Node) -> set[str]:
    """Return the index variables that a tree mentions."""
    return {part.name for part in walk(node) if isinstance(part, Variable)}


def tensors_in(node: Node) -> set[str]:
    """Return the tensors that a tree reads or whose shapes it mentions."""
    return {part.tensor for part in walk(node) if isinstance(part, Element | Extent)}


def opaques_in(node: Node) -> tuple[str, ...]:
    """Return the opaque functions that a tree calls, each once, in the order of the text."""
    return tuple(dict.fromkeys(part.function for part in walk(node) if isinstance(part, OpaqueElement)))


def reads_elements(node: Node) -> bool:
    """Return whether a value depends on tensor elements."""
    return any(isinstance(part, Element | OpaqueElement) for part in walk(node))


def rebuild(node: AnyNode, parts: tuple[Node, ...]) -> AnyNode:
    """Return the node with other children, given in the order of `children`; itself if nothing changed."""
    old = children(node)
    if len(old) == len(parts) and all(a is b for a, b in zip(old, parts, strict=True)):
        return node
    return cast(AnyNode, _rebuild(node, parts))


def _rebuild(node: Node, parts: tuple[Node, ...]) -> Node:
    fields: dict[str, object]
    match node:
        case Binary():
            left, right = parts
            fields = {"left": left, "right": right}
        case Element():
            fields = {"indices": parts}
        case Unary():
            fields = {"operand": parts[0]}
        case Call():
            fields = {"arguments": parts}
        case ReducerCall() | Lambda():
            fields = {"variables": parts[:-1], "body": parts[-1]}
        case Binder():
            fields = {"extent": parts[0]}
        case Pad():
            fields = {"element": parts[0], "value": parts[1]}
        case OpaqueElement(arguments=arguments):
            fields = {"arguments": parts[: len(arguments)], "indices": parts[len(arguments) :]}
        case NamedStage():
            fields = {"value": parts[0]}
        case Description(tensors=tensors, attributes=attributes, stages=stages):
            ends = (
                len(tensors),
                len(tensors) + len(attributes),
                len(tensors) + len(attributes) + len(stages),
            )
            fields = {
                "tensors": parts[: ends[0]],
                "attributes": parts[ends[0] : ends[1]],
                "stages": parts[ends[1] : ends[2]],
                "outputs": parts[ends[2] :],
            }
        case _:
            raise ValueError(f"{type(node).__name__} has no children to replace, {len(parts)} given")
    return cast(Node, replace(node, **fields))  # type: ignore[arg-type]


def transform(node: AnyNode, substitute: Callable[[Node], Node]) -> AnyNode:
    """Rewrite bottom-up: `substitute` sees every node after its children were rewritten.

    Shared nodes stay shared. Spans are kept by whatever `substitute` keeps.
    """
    done: dict[int, Node] = {}
    pending: list[tuple[Node, bool]] = [(node, False)]
    while pending:
        current, ready = pending.pop()
        if id(current) in done:
            continue
        below = children(current)
        if ready or not below:
            done[id(current)] = substitute(rebuild(current, tuple(done[id(child)] for child in below)))
        else:
            pending.append((current, True))
            pending.extend((child, False) for child in below)
    return cast(AnyNode, done[id(node)])


def substitute(node: AnyNode, values: Mapping[str, Expression]) -> AnyNode:
    """Return the tree with expressions in place of the variables that they are listed under."""

    def replacement(part: Node) -> Node:
        return values.get(part.name, part) if isinstance(part, Variable) else part

    return transform(node, replacement)


def levels(node: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with its level in the tree, the node itself being at level 1; parents first."""
    pending = [(node, 1)]
    while pending:
        current, level = pending.pop()
        yield current, level
        pending.extend((child, level + 1) for child in reversed(children(current)))
