"""Loss scaling: gradients in float16 times a number, so that small ones do not become zero.

A gradient stage that multiplies the incoming gradient passes the scale on. A loss, which starts the backward
pass, and a penalty, which adds to it, do not. Their descriptions are rewritten to take the true incoming
gradient and make a scaled result, all in the registers of one kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache

from ..errors import GraphError
from ..operators.gradients import Gradient, Produced
from ..operators.library import registry
from ..operators.stages.stage import Stage
from ..support.checked_argument import is_number, require
from ..tdl import ast
from ..tdl.traverse import Node, transform, walk
from .builder import GraphBuilder
from .graph import Phase, Role

DEFAULTS = {"float16": 128.0}
"""The default loss scales. Gradients are sums over the batch here. For those who average, this is
128 times the batch: 2**-24, the smallest float16, stands for 5e-10."""


def checked_scale(loss_scale: float | None, dtype: str) -> float:
    """Return the given loss scale, or the type's. Raises GraphError if it is not a positive number."""
    if loss_scale is None:
        return DEFAULTS.get(dtype, 1.0)
    fits = is_number(loss_scale) and loss_scale > 0
    require(fits, loss_scale, "loss_scale", "a positive number such as 128", GraphError)
    return float(loss_scale)


def scaled_gradient(gradient: Gradient, scale: float) -> Gradient:
    """Return a gradient whose results are `scale` times as large if its incoming gradients are.

    Raises GraphError if one of several stages makes a result that another stage reads too.
    """
    results = tuple(dict.fromkeys(gradient.targets.values()))
    if scale == 1 or _proportional(gradient.stages, results):
        return gradient
    stages = []
    for position, stage in enumerate(gradient.stages):
        wanted = tuple(output for at, output in results if at == position)
        read = {name for later in gradient.stages[position + 1 :] for name in later.inputs}
        if any(stage.produces[output] in read for output in wanted):
            raise GraphError(
                f"{stage.name} makes a gradient that another stage reads, and adds a term to it that a loss "
                "scale would have to multiply; train without a loss scale"
            )
        stages.append(_rewritten(stage, scale, wanted))
    return replace(gradient, stages=tuple(stages))


def scaled_heads(builder: GraphBuilder, heads: Mapping[int, int], scale: float) -> dict[int, int]:
    """Multiply gradients that are fed by the loss scale."""
    if scale == 1:
        return dict(heads)
    return {
        output: _times(builder, head, scale, f"scaled({builder.tensors[head].name})")
        for output, head in heads.items()
    }


def divided(builder: GraphBuilder, gradient: int, scale: float) -> int:
    """Divide a gradient by the loss scale; the result takes over its name."""
    if scale == 1:
        return gradient
    name = builder.tensors[gradient].name
    builder.rename_tensor(gradient, builder.unique_tensor_name(f"scaled({name})"))
    return _times(builder, gradient, 1 / scale, name)


def _times(builder: GraphBuilder, tensor: int, factor: float, name: str) -> int:
    (stage,) = registry.get("_mul_scalar").stages({"scalar": factor}, {"data": builder.tensors[tensor].shape})
    name = builder.unique_tensor_name(name)
    return builder.apply(name, stage, [tensor], [name], phase=Phase.BACKWARD, role=Role.GRADIENT)[0]


@cache
def _rewritten(stage: Stage, scale: float, outputs: tuple[int, ...]) -> Stage:
    """Rewrite a stage to divide incoming gradients by the scale and multiply these outputs by it."""
    description = stage.description

    def true(node: Node) -> Node:
        match node:
            case ast.Pad(element=ast.Binary("*", ast.Element() as element, factor), value=value):
                return ast.Binary("*", ast.Pad(element, ast.Binary("/", value, factor)), factor)
            case ast.Element(tensor=tensor) if _incoming(tensor):
                return ast.Binary("*", node, ast.Number(1 / scale))
            case _:
                return node

    made = transform(description, true) if any(map(_incoming, stage.inputs)) else description
    lambdas = [
        replace(output, body=ast.Binary("*", output.body, ast.Number(scale))) if number in outputs else output
        for number, output in enumerate(made.outputs)
    ]
    changed = replace(made, outputs=tuple(lambdas))
    return stage if changed == description else replace(stage, description=changed, kernel=None)


def _incoming(name: str) -> bool:
    return name.startswith("grad_") and name.removeprefix("grad_").isdecimal()


@cache
def _proportional(stages: tuple[Stage, ...], results: tuple[Produced, ...]) -> bool:
    """Tell whether every result is, by its form, a multiple of the incoming gradients."""
    names: set[str] = set()
    for position, stage in enumerate(stages):
        names.update(filter(_incoming, stage.inputs))
        linear = [_linear(output.body, names) for output in stage.description.outputs]
        if not all(linear[output] for at, output in results if at == position):
            return False
        names.update(product for product, each in zip(stage.produces, linear, strict=True) if each)
    return True


def _linear(expression: ast.Expression, names: Collection[str]) -> bool:
    """Tell whether an expression is zero or homogeneous of first degree in these tensors' elements."""

    def free(part: ast.Expression) -> bool:
        return not any(isinstance(node, ast.Element) and node.tensor in names for node in walk(part))

    match expression:
        case ast.Number(value=value):
            return value == 0
        case ast.Element(tensor=tensor):
            return tensor in names
        case ast.Pad(element=element, value=value):
            return _linear(element, names) and _linear(value, names)
        case ast.Unary("-", inner) | ast.ReducerCall(reducer=ast.Reducer.SUM, body=inner):
            return _linear(inner, names)
        case ast.Binary("+" | "-", left, right):
            return _linear(left, names) and _linear(right, names)
        case ast.Binary("*", left, right):
            return (_linear(left, names) and free(right)) or (free(left) and _linear(right, names))
        case ast.Binary("/", left, right):
            return _linear(left, names) and free(right)
        case ast.Call("where", (condition, chosen, other)):
            return free(condition) and _linear(chosen, names) and _linear(other, names)
        case _:
            return False
