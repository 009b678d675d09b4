"""The intermediate representation of kernels: expressions with equal subexpressions shared.

Nodes are compared by identity. Equal subexpressions are one node, so the value of a node is
computed once. `free` holds the index variables that a node's value depends on.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import assert_never

from ....tdl.ast import Reducer
from .affine import AffineIndex

Scalar = int | float | bool
Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: Scalar
    free: Names = NOTHING
    loads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Iota:
    """An index variable used as a value."""

    variable: str
    free: Names
    loads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """An element of a tensor."""

    tensor: str
    """The tensor's name."""

    indices: tuple[AffineIndex | Node, ...]
    """For each dimension, an `AffineIndex`, or a node if the index is not affine."""

    padding: Node | None
    """The value outside the tensor; None if the element is never outside."""

    free: Names
    """The index variables that the element depends on."""

    loads: bool = True
    """Whether the value depends on a tensor's elements: always."""

    @property
    def affine(self) -> bool:
        return all(isinstance(index, AffineIndex) for index in self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A scalar function or operator, applied to values."""

    function: str
    """The function's name, a key of `functions.LOOPS`."""

    arguments: tuple[Node, ...]
    """The values that it takes."""

    free: Names
    """The index variables that the value depends on."""

    loads: bool
    """Whether the value depends on a tensor's elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reducer over all values of its variables."""

    reducer: Reducer
    """Combines the values of the body."""

    variables: tuple[str, ...]
    """The names of the reduction variables."""

    body: Node
    """The value for each setting of the variables."""

    free: Names
    """The index variables that the result depends on."""

    loads: bool
    """Whether the result depends on a tensor's elements."""


Node = Constant | Iota | Load | Apply | Reduction


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output tensor: its index variables in order and the value of an element."""

    variables: tuple[str, ...]
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """All outputs of a single-stage description. `variables`: output variables, then reduction variables."""

    outputs: tuple[Output, ...]
    variables: tuple[str, ...]

    @classmethod
    def of(cls, outputs: tuple[Output, ...]) -> Lowered:
        names = dict.fromkeys(name for output in outputs for name in output.variables)
        for output in outputs:
            for node in walk(output.value):
                if isinstance(node, Reduction):
                    names.update(dict.fromkeys(node.variables))
        return cls(outputs, tuple(names))


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes a node is computed from, non-affine indices included."""
    match node:
        case Constant() | Iota():
            return ()
        case Load(indices=indices, padding=padding):
            inner = tuple(index for index in indices if not isinstance(index, AffineIndex))
            return inner if padding is None else (*inner, padding)
        case Apply(arguments=arguments):
            return arguments
        case Reduction(body=body):
            return (body,)
        case _:
            assert_never(node)


def walk(node: Node, known: Container[Node] = ()) -> list[Node]:
    """Return the node and everything below it, each once, in order of first appearance.

    Not below `known` nodes.
    """
    seen: dict[Node, None] = {}
    pending = [node]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen[current] = None
            if current not in known:
                pending.extend(reversed(children(current)))
    return list(seen)


def union(nodes: tuple[Node, ...]) -> Names:
    return NOTHING.union(*(node.free for node in nodes))
