"""What kernels are derived from: a description's expressions with equal subexpressions shared.

Lowering replaces extents by numbers, folds constants, and finds the affine form of every index. Nodes are
compared by identity: equal subexpressions are one node, so whatever is computed for a node is computed
once. `free` holds the index variables that a node's value depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from ...analyzer.region import Shape
from ...errors import OperatorError
from ...tdl import ast
from .functions import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..bound import BoundOperator

Scalar = int | float | bool
Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """`constant + sum(coefficient * variable)`; zero coefficients are left out."""

    coefficients: tuple[tuple[str, int], ...]
    constant: int


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
    """An element of a tensor. An index is an `Affine`, or a node where it is not affine.

    `padding` is the value outside the tensor; None where the element is never outside.
    """

    tensor: str
    indices: tuple[Affine | Node, ...]
    padding: Node | None
    free: Names
    loads: bool = True

    @property
    def affine(self) -> bool:
        return all(isinstance(index, Affine) for index in self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A scalar function or operator of `functions.LOOPS`."""

    function: str
    arguments: tuple[Node, ...]
    free: Names
    loads: bool


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    reducer: ast.Reducer
    variables: tuple[str, ...]
    body: Node
    free: Names
    loads: bool


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


def lower(bound: BoundOperator) -> Lowered:
    """The kernel form of a bound operator's description.

    Raises `OperatorError` for an opaque function, whose inside only an attached kernel can know.
    """
    description = bound.description
    builder = _Builder(description.name, bound.shapes)
    outputs = tuple(
        Output(tuple(binder.name for binder in output.variables), builder.lower(output.body))
        for output in description.outputs
    )
    names = dict.fromkeys(name for output in outputs for name in output.variables)
    names.update(dict.fromkeys(builder.reduction_variables))
    return Lowered(outputs, tuple(names))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes a node is computed from, non-affine indices included."""
    match node:
        case Constant() | Iota():
            return ()
        case Load(indices=indices, padding=padding):
            inner = tuple(index for index in indices if not isinstance(index, Affine))
            return inner if padding is None else (*inner, padding)
        case Apply(arguments=arguments):
            return arguments
        case Reduction(body=body):
            return (body,)
        case _:
            assert_never(node)


def walk(node: Node) -> list[Node]:
    """The node and everything below it, each once, in order of first appearance."""
    seen: dict[Node, None] = {}
    pending = [node]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen[current] = None
            pending.extend(reversed(children(current)))
    return list(seen)


def _union(nodes: tuple[Node, ...]) -> Names:
    return NOTHING.union(*(node.free for node in nodes))


class _Builder:
    """Lowers syntax to nodes, one node for equal expressions."""

    def __init__(self, operator: str, shapes: Mapping[str, Shape]) -> None:
        self.operator = operator
        self.shapes = shapes
        self.shared: dict[tuple[object, ...], Node] = {}
        self.reduction_variables: dict[str, None] = {}

    def lower(self, expression: ast.Index) -> Node:
        match expression:
            case ast.Number(value=value):
                return self.constant(value)
            case ast.Extent(tensor=tensor, axis=axis):
                return self.constant(self.shapes[tensor][axis])
            case ast.Variable(name=name):
                return self.share(("iota", name), lambda: Iota(name, frozenset((name,))))
            case ast.Element():
                return self.load(expression, None)
            case ast.Pad(element=element, value=value):
                return self.load(element, self.lower(value))
            case ast.Unary(operator="-", operand=operand):
                return self.apply("negative", (self.lower(operand),))
            case ast.Unary(operator=operator, operand=operand):
                return self.apply(operator, (self.lower(operand),))
            case ast.Binary(operator=operator, left=left, right=right):
                return self.apply(operator, (self.lower(left), self.lower(right)))
            case ast.Call(function=function, arguments=arguments):
                return self.call(function, tuple(self.lower(argument) for argument in arguments))
            case ast.Reduce(reducer=reducer, variables=binders, body=body):
                return self.reduction(reducer, tuple(binder.name for binder in binders), self.lower(body))
            case ast.OpaqueElement(function=function):
                raise OperatorError(
                    f"operator {self.operator}: no kernel can be derived because {function!r} is an opaque "
                    "function; attach a kernel to the operator"
                )
            case ast.Star() | ast.Attribute() | ast.FullSlice():
                raise OperatorError(
                    f"operator {self.operator}: {type(expression).__name__} found in a description that "
                    "should be specialised; specialise it before deriving a kernel"
                )
            case _:
                assert_never(expression)

    def share(self, key: tuple[object, ...], make: Callable[[], Node]) -> Node:
        if (node := self.shared.get(key)) is None:
            node = self.shared[key] = make()
        return node

    def constant(self, value: Scalar) -> Node:
        return self.share(("constant", type(value), repr(value)), lambda: Constant(value))

    def load(self, element: ast.Element, padding: Node | None) -> Node:
        indices: list[Affine | Node] = []
        for index in element.indices:
            form = affine(index, self.shapes)
            indices.append(self.lower(index) if form is None else form)
        names = _union(tuple(index for index in indices if not isinstance(index, Affine)))
        names = names.union(*(dict(index.coefficients) for index in indices if isinstance(index, Affine)))
        if padding is not None:
            names |= padding.free
        key = tuple(
            (index.coefficients, index.constant) if isinstance(index, Affine) else index for index in indices
        )
        return self.share(
            ("load", element.tensor, key, padding),
            lambda: Load(element.tensor, tuple(indices), padding, names),
        )

    def apply(self, function: str, arguments: tuple[Node, ...]) -> Node:
        values = [argument.value for argument in arguments if isinstance(argument, Constant)]
        if len(values) == len(arguments):
            return self.constant(fold(function, values))
        return self.share(
            ("apply", function, arguments),
            lambda: Apply(function, arguments, _union(arguments), any(node.loads for node in arguments)),
        )

    def call(self, function: str, arguments: tuple[Node, ...]) -> Node:
        """A scalar function; those NumPy has no loop for are written with those it has."""
        match function, arguments:
            case "relu", (x,):
                return self.apply("maximum", (x, self.constant(0)))
            case "rsqrt", (x,):
                return self.apply("/", (self.constant(1), self.apply("sqrt", (x,))))
            case "reciprocal", (x,):
                return self.apply("/", (self.constant(1), x))
            case "sigmoid", (x,):
                half = self.constant(0.5)
                tanh = self.apply("tanh", (self.apply("*", (half, x)),))
                return self.apply("*", (half, self.apply("+", (tanh, self.constant(1)))))
            case "softplus", (x,):
                return self.apply("logaddexp", (x, self.constant(0)))
            case "power", (x, exponent):
                return self.apply("**", (x, exponent))
            case _:
                return self.apply(function, arguments)

    def reduction(self, reducer: ast.Reducer, variables: tuple[str, ...], body: Node) -> Node:
        self.reduction_variables.update(dict.fromkeys(variables))
        return self.share(
            ("reduce", reducer, variables, body),
            lambda: Reduction(reducer, variables, body, body.free - set(variables), body.loads),
        )


def affine(index: ast.Index, shapes: Mapping[str, Shape]) -> Affine | None:
    """The affine form of an index over integers, or None where it has none."""
    match index:
        case ast.Number(value=int(value)):
            return Affine((), value)
        case ast.Extent(tensor=tensor, axis=axis):
            return Affine((), shapes[tensor][axis])
        case ast.Variable(name=name):
            return Affine(((name, 1),), 0)
        case ast.Unary(operator="-", operand=operand):
            inner = affine(operand, shapes)
            return None if inner is None else _combine(Affine((), 0), inner, -1)
        case ast.Binary(operator=operator, left=left, right=right):
            a, b = affine(left, shapes), affine(right, shapes)
            return None if a is None or b is None else _binary(operator, a, b)
        case _:
            return None


def _binary(operator: str, a: Affine, b: Affine) -> Affine | None:
    match operator:
        case "+":
            return _combine(a, b, 1)
        case "-":
            return _combine(a, b, -1)
        case "*" if not a.coefficients:
            return _combine(Affine((), 0), b, a.constant)
        case "*" if not b.coefficients:
            return _combine(Affine((), 0), a, b.constant)
        case "//" if not b.coefficients and b.constant > 0:
            divisor = b.constant
            if any(coefficient % divisor for _, coefficient in a.coefficients):
                return None
            terms = tuple((name, coefficient // divisor) for name, coefficient in a.coefficients)
            return Affine(terms, a.constant // divisor)
        case "%" if not a.coefficients and not b.coefficients and b.constant > 0:
            return Affine((), a.constant % b.constant)
        case _:
            return None


def _combine(a: Affine, b: Affine, factor: int) -> Affine:
    terms = dict(a.coefficients)
    for name, coefficient in b.coefficients:
        terms[name] = terms.get(name, 0) + factor * coefficient
    kept = tuple((name, coefficient) for name, coefficient in terms.items() if coefficient)
    return Affine(kept, a.constant + factor * b.constant)
