"""Lower syntax to nodes: extents become numbers, and functions those that NumPy has loops for."""

from __future__ import annotations

from typing import assert_never

from ....errors import OperatorError
from ....tdl import ast
from .build import NodeBuilder
from .ir import Lowered, Node, Output


def lower(description: ast.Description, builder: NodeBuilder) -> Lowered:
    """Return the kernel form of a specialised single-stage description.

    Raises `OperatorError` for an opaque function, which only an attached kernel can compute.
    """
    lowering = _Lowering(description.name, builder)
    return Lowered.of(
        tuple(
            Output(tuple(binder.name for binder in output.variables), lowering.node(output.body))
            for output in description.outputs
        )
    )


class _Lowering:
    def __init__(self, operator: str, builder: NodeBuilder) -> None:
        self.operator = operator
        self.builder = builder

    def node(self, expression: ast.Index) -> Node:
        build = self.builder
        match expression:
            case ast.Number(value=value):
                return build.constant(value)
            case ast.Extent(tensor=tensor, axis=axis):
                return build.constant(build.shapes[tensor][axis])
            case ast.Variable(name=name):
                return build.iota(name)
            case ast.Element():
                return self.element(expression, None)
            case ast.Pad(element=element, value=value):
                return self.element(element, self.node(value))
            case ast.Unary(operator="-", operand=operand):
                return build.apply("negative", (self.node(operand),))
            case ast.Unary(operator=operator, operand=operand):
                return build.apply(operator, (self.node(operand),))
            case ast.Binary(operator=operator, left=left, right=right):
                return build.apply(operator, (self.node(left), self.node(right)))
            case ast.Call(function=function, arguments=arguments):
                return self.call(function, tuple(self.node(argument) for argument in arguments))
            case ast.ReducerCall(reducer=ast.Reducer() as reducer, variables=binders, body=body):
                return build.reduction(reducer, tuple(binder.name for binder in binders), self.node(body))
            case ast.ReducerCall(reducer=reducer):
                raise OperatorError(
                    f"operator {self.operator}: no kernel can be derived for the reducer {reducer}; "
                    "write it with Sum, Prod, Max or Min, or attach a kernel to the operator"
                )
            case ast.OpaqueElement(function=function):
                raise OperatorError(
                    f"operator {self.operator}: no kernel can be derived because {function!r} is an opaque "
                    "function; attach a kernel to the operator"
                )
            case ast.Star() | ast.Attribute() | ast.Choice() | ast.FullSlice():
                raise OperatorError(
                    f"operator {self.operator}: {type(expression).__name__} found in a description that "
                    "should be specialised; specialise it before deriving a kernel"
                )
            case _:
                assert_never(expression)

    def element(self, element: ast.Element, padding: Node | None) -> Node:
        return self.builder.load(
            element.tensor, tuple(self.node(index) for index in element.indices), padding
        )

    def call(self, function: str, arguments: tuple[Node, ...]) -> Node:
        """Return a scalar function; those NumPy has no loop for are written with those it has."""
        build = self.builder
        match function, arguments:
            case "relu", (x,):
                return build.apply("maximum", (x, build.constant(0)))
            case "rsqrt", (x,):
                return build.apply("/", (build.constant(1), build.apply("sqrt", (x,))))
            case "reciprocal", (x,):
                return build.apply("/", (build.constant(1), x))
            case "sigmoid", (x,):
                one = build.constant(1)
                below = build.apply("exp", (build.apply("negative", (x,)),))
                return build.apply("/", (one, build.apply("+", (one, below))))
            case "softplus", (x,):
                below = build.apply("exp", (build.apply("negative", (build.apply("abs", (x,)),)),))
                above = build.apply("maximum", (x, build.constant(0)))
                return build.apply("+", (above, build.apply("log1p", (below,))))
            case "power", (x, exponent):
                return build.apply("**", (x, exponent))
            case _:
                return build.apply(function, arguments)
