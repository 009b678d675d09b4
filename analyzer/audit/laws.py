"""Why the parts of a split operator make the whole: laws of algebra, applied to the syntax tree.

`concat`: an element of a lambda is a function of its index alone, so cutting an index cuts the output.
`reduce`: a value over the whole box is the reducer of its values over the parts. That holds for a reducer
itself, and goes upward through operations it distributes over. All laws are those of exact arithmetic.
"""

from __future__ import annotations

from ...tdl import ast, walk

Law = str


def concat_law(description: ast.Description, variable: str) -> Law | None:
    """Return why outputs can be concatenated along a variable; None if no law says so."""
    reduced = (
        binder.name
        for output in description.outputs
        for node in walk(output.body)
        if isinstance(node, ast.ReducerCall)
        for binder in node.variables
    )
    if variable in reduced:
        return None
    if any(variable not in (binder.name for binder in output.variables) for output in description.outputs):
        return None
    return "an element depends on its own index alone"


def reduce_law(description: ast.Description, variable: str, reducer: ast.AnyReducer) -> Law | None:
    """Return why outputs over parts of a reduction combine by a reducer; None if no law says so."""
    steps: list[Law] = []
    for output in description.outputs:
        if variable in (binder.name for binder in output.variables):
            return None
        found = _steps(output.body, variable, reducer)
        if found is None:
            return None
        steps.extend(found)
    return "; ".join(dict.fromkeys(steps))


def used_as_value(description: ast.Description, variable: str) -> bool:
    """Return whether a variable stands anywhere outside of an index."""
    pending: list[ast.Expression] = [output.body for output in description.outputs]
    while pending:
        node = pending.pop()
        match node:
            case ast.Variable(name):
                if name == variable:
                    return True
            case ast.Pad(_, filler):
                pending.append(filler)
            case ast.Unary(_, operand):
                pending.append(operand)
            case ast.Binary(_, left, right):
                pending.extend((left, right))
            case ast.Call(_, arguments):
                pending.extend(arguments)
            case ast.ReducerCall(_, _, body):
                pending.append(body)
            case _:
                pass
    return False


def _steps(body: ast.Expression, variable: str, reducer: ast.AnyReducer) -> list[Law] | None:
    """Return the laws that carry the reducer from its binder to the top of an expression.

    None for a custom reducer, because its promises are not proven.
    """
    if not isinstance(reducer, ast.Reducer):
        return None
    match body:
        case ast.ReducerCall(kind, variables, inner) if kind is reducer:
            if any(binder.name == variable for binder in variables):
                return [f"{reducer} is associative and commutative"]
            below = _steps(inner, variable, reducer)
            return None if below is None else [*below, f"{reducer}s exchange"]
        case _ if reducer is not ast.Reducer.SUM:
            return None
        case ast.Unary("-", operand):
            below = _steps(operand, variable, reducer)
            return None if below is None else [*below, "-(a + b) = -a + -b"]
        case ast.Binary("*", left, right):
            for factor, other in ((left, right), (right, left)):
                below = _steps(factor, variable, reducer)
                if below is not None and not mentions(other, variable):
                    return [*below, "(a + b) * c = a * c + b * c"]
            return None
        case ast.Binary("/", left, right):
            below = _steps(left, variable, reducer)
            if below is None or mentions(right, variable):
                return None
            return [*below, "(a + b) / c = a / c + b / c"]
        case ast.Binary("+" | "-" as sign, left, right):
            first, second = _steps(left, variable, reducer), _steps(right, variable, reducer)
            if first is None or second is None:
                return None
            return [*first, *second, f"(a + b) {sign} (c + d) = (a {sign} c) + (b {sign} d)"]
        case _:
            return None


def mentions(node: ast.Expression, variable: str) -> bool:
    """Return whether a variable occurs in an expression, or is bound there."""
    return any(isinstance(part, ast.Variable | ast.Binder) and part.name == variable for part in walk(node))
