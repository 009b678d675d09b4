"""Find the index variables that an operator can be split along (Tofu, section 4.2), and why others cannot.

A strategy runs boxes of the iteration space. Extents of whole tensors are constants there, so a mean written
`Sum(...) / data.shape[0]` may be split. An index variable used as a value keeps its value. Such an operator
may be split if its kernel knows where the box starts (`needs_offset`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...tdl import ast
from ...tdl.traverse import Node, children, walk
from ..input_regions.access import IterationSpace

Kind = Literal["concat", "reduce"]


@dataclass(frozen=True, slots=True)
class SplitVariable:
    """An index variable along which an operator may be split, whatever its shapes."""

    variable: str
    """The variable's name."""

    span: ast.Span
    """The place in the text that binds the variable."""

    kind: Kind
    """`concat` if outputs are concatenated, `reduce` if partial results are combined."""

    reducer: ast.AnyReducer | None
    """Combines the partial results; None for `concat`."""

    needs_offset: bool
    """Whether the variable is also used as a value, so that a kernel must know where its box starts."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A variable along which the operator is not split."""

    variable: str
    """The name of the variable."""

    span: ast.Span
    """The place in the text that is in the way."""

    reason: str
    """Why there is no strategy."""

    remedy: str = ""
    """The change of the text that gives one; empty if there is nothing to gain."""


_OPAQUE = "describe in TDL what the function does"
_OUTPUTS = "describe the outputs as separate stages or operators"
_RENAME = "give it another name in one of the places"


def discover(found: IterationSpace) -> tuple[SplitVariable | Refusal, ...]:
    """Return for every variable, in order, how it may be split or why it may not."""
    return tuple(_judge(found, variable) for variable in found.variables)


def _judge(found: IterationSpace, variable: str) -> SplitVariable | Refusal:
    span = next(binder.span for binder in found.binders if binder.name == variable)
    for use in found.opaques:
        if any(variable in names_in(index) for index in use.indices):
            return Refusal(variable, use.span, "it indexes the result of an opaque function", _OPAQUE)
    offset = variable in found.values
    outputs = found.description.outputs
    if variable not in found.reduction_variables:
        for position, output in enumerate(outputs):
            if variable not in (binder.name for binder in output.variables):
                return Refusal(variable, span, f"output {position} does not have it", _OUTPUTS)
        return SplitVariable(variable, span, "concat", None, offset)
    if variable in found.output_variables:
        return Refusal(variable, span, "it is both an output and a reduction variable", _RENAME)
    reducers = {splittable(output.body).get(variable) for output in outputs}
    if len(reducers) == 1 and (reducer := reducers.pop()) is not None:
        return SplitVariable(variable, span, "reduce", reducer, offset)
    for position, output in enumerate(outputs):
        if splittable(output.body).get(variable) is None:
            return _refuse_reduction(variable, span, position, output)
    return Refusal(variable, span, "different outputs reduce over it in different ways", _OUTPUTS)


def splittable(body: Node) -> dict[str, ast.AnyReducer]:
    """Return reduction variables over which partial values of an expression may be combined by a reducer.

    A reducer at the root combines its own parts, and those of the same reducer directly inside. A `Sum`
    also commutes with negation, with factors and divisors that do not contain the variable, and with
    adding another expression that can be split in the same way.
    """
    match body:
        case ast.ReducerCall(reducer, variables, inner):
            nested = {name: kind for name, kind in splittable(inner).items() if kind == reducer}
            return nested | {binder.name: reducer for binder in variables}
        case ast.Unary("-", operand):
            return _sums(operand)
        case ast.Binary("*", left, right):
            return _without(_sums(left), right) | _without(_sums(right), left)
        case ast.Binary("/", left, right):
            return _without(_sums(left), right)
        case ast.Binary("+" | "-", left, right):
            both = _sums(right)
            return {name: kind for name, kind in _sums(left).items() if name in both}
        case _:
            return {}


def names_in(node: Node) -> set[str]:
    """Return the index variables that a tree mentions or binds."""
    return {part.name for part in walk(node) if isinstance(part, ast.Variable | ast.Binder)}


def _sums(body: Node) -> dict[str, ast.AnyReducer]:
    return {name: kind for name, kind in splittable(body).items() if kind is ast.Reducer.SUM}


def _without(candidates: dict[str, ast.AnyReducer], other: Node) -> dict[str, ast.AnyReducer]:
    if not candidates:
        return candidates
    mentioned = names_in(other)
    return {name: kind for name, kind in candidates.items() if name not in mentioned}


def _refuse_reduction(variable: str, span: ast.Span, position: int, output: ast.Lambda) -> Refusal:
    """Name the innermost operation that the reducer of a variable does not commute with."""
    paths = list(_paths(output.body, variable))
    if not paths:
        return Refusal(variable, span, f"output {position} does not reduce over it", _OUTPUTS)
    if len(paths) > 1:
        reason = f"output {position} reduces over it in {len(paths)} places"
        return Refusal(variable, span, reason, _RENAME)
    ((above, reduction),) = paths
    for node in reversed(above):
        if variable not in splittable(node):
            reason = f"its {reduction.reducer} is inside {_label(node)}"
            return Refusal(variable, reduction.span, reason, _stage(reduction, output))
    raise AssertionError(f"'{variable}' is refused for no reason")


def _stage(reduction: ast.ReducerCall, output: ast.Lambda) -> str:
    """Return the stage to write: the reducer as a lambda of the variables that it mentions."""
    own = {part.name for part in walk(reduction) if isinstance(part, ast.Binder)}
    binders = (part.name for part in walk(output) if isinstance(part, ast.Binder))
    used = {part.name for part in walk(reduction) if isinstance(part, ast.Variable)} - own
    free = ", ".join(name for name in dict.fromkeys(binders) if name in used)
    inner = ", ".join(binder.name for binder in reduction.variables)
    head = f"lambda {free}" if free else "lambda"
    return f"make a stage of it: part = {head}: {reduction.reducer}(lambda {inner}: ...), with extents stated"


def _paths(body: Node, variable: str) -> Iterator[tuple[tuple[Node, ...], ast.ReducerCall]]:
    """Yield every reducer that binds the variable, with all that stands above it, the root first."""
    pending: list[tuple[tuple[Node, ...], Node]] = [((), body)]
    while pending:
        above, node = pending.pop()
        if isinstance(node, ast.ReducerCall) and any(binder.name == variable for binder in node.variables):
            yield above, node
        pending.extend(((*above, node), child) for child in children(node))


def _label(node: Node) -> str:
    match node:
        case ast.Binary(operator) | ast.Unary(operator):
            return f"'{operator}', with which it does not commute"
        case ast.Call(function):
            return f"{function}, with which it does not commute"
        case ast.ReducerCall(reducer):
            return f"{reducer}, another reducer"
        case _:
            return "something it does not commute with"
