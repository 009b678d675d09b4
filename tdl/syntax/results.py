"""The results of a description: lambdas, and stages returned by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...support.wording import suggestion
from ..ast import Binder, Element, Lambda, NamedStage, Span, Star, Variable
from ..source import Diagnostic
from ..traverse import walk

Returned = Lambda | tuple[str, Span]


def resolve_results(
    stages: Sequence[NamedStage], results: Sequence[Returned], diagnostics: list[Diagnostic]
) -> tuple[tuple[NamedStage, ...], tuple[Lambda, ...]]:
    """Return the stages that remain and the outputs.

    A stage that is returned once and that nothing reads is an output itself; one that is also read
    remains a stage, and the output copies it.
    """
    values = {stage.name: stage.value for stage in stages}
    read = {name for stage in stages for name in _tensors(stage.value)}
    read |= {name for result in results if isinstance(result, Lambda) for name in _tensors(result)}
    returned = Counter(result[0] for result in results if not isinstance(result, Lambda))
    moved = {name for name, count in returned.items() if count == 1 and name not in read}
    outputs: list[Lambda] = []
    for result in results:
        if isinstance(result, Lambda):
            outputs.append(result)
            continue
        name, span = result
        if name not in values:
            hint = suggestion(name, values) or "return a lambda, or a stage defined above"
            diagnostics.append(Diagnostic(f"cannot return '{name}', which is not a stage", span, hint))
        elif name in moved:
            outputs.append(values[name])
        else:
            outputs.append(_copy(name, values[name], span))
    return tuple(stage for stage in stages if stage.name not in moved), tuple(outputs)


def _tensors(value: Lambda) -> set[str]:
    return {node.tensor for node in walk(value) if isinstance(node, Element)}


def _copy(name: str, value: Lambda, span: Span) -> Lambda:
    """Return the lambda that reads all of a stage. From the first star to the last, one star is enough."""
    stars = [place for place, binder in enumerate(value.variables) if binder.star]
    rest = value.variables[stars[-1] + 1 :] if stars else ()
    first = value.variables[: stars[0] + 1] if stars else value.variables
    binders = tuple(Binder(binder.name, None, binder.star, span) for binder in (*first, *rest))
    indices = tuple(Star(b.name, span) if b.star else Variable(b.name, span) for b in binders)
    return Lambda(binders, Element(name, indices, span), span)
