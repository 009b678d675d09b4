"""Collect everything of an operator that runs on workers: its stages, those of its gradient, its updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Operator
from ..shapes.shape_solver import is_complete
from ..stages.stage import Stage

Shapes = Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Missing:
    """A gradient that cannot be derived, and why."""

    name: str
    reason: str


def complete_shapes(
    operator: Operator, shapes: Mapping[str, Shape], attributes: Mapping[str, object]
) -> dict[str, Shape]:
    """Return the shapes of all tensors that the operator takes, inferred from those given.

    Raises ShapeError.
    """
    names = (*operator.arguments(attributes), *operator.auxiliary)
    seeds: dict[str, Shape] = dict.fromkeys(operator.seeds, (1,))
    given = {name: tuple(shape) for name, shape in shapes.items() if name not in seeds}
    unknown = [name for name in given if name not in (*names, *operator.outputs(attributes))]
    if unknown:
        raise ShapeError(f"{operator.name} has no tensor {unknown[0]!r}; it takes {', '.join(names)}")
    inferred = operator.infer(attributes, {name: given.get(name) for name in (*names, *given)})
    missing = [name for name in names if not is_complete(inferred.get(name))]
    if missing:
        raise ShapeError(
            f"{operator.name}: the shape of {missing[0]} does not follow from the others; give it, too"
        )
    return seeds | given | {name: cast(Shape, inferred[name]) for name in names}


def stages(
    operator: Operator, shapes: Shapes, attributes: Mapping[str, object]
) -> Iterator[tuple[Stage, Shapes] | Missing]:
    """Yield every stage, with the shapes that it is bound to: forward, backward, updates."""
    known: dict[str, Shape] = dict(shapes)
    forward = operator.stages(attributes, known)
    heads: list[tuple[Stage, dict[str, Shape]]] = []
    for stage in forward:
        yield stage, dict(known)
        bound = stage.bind(known)
        extra = {f"grad_{k}": shape for k, shape in enumerate(bound.output_shapes)}
        extra |= {f"output_{k}": shape for k, shape in enumerate(bound.output_shapes)}
        heads.append((stage, known | extra))
        known.update(zip(stage.produces, bound.output_shapes, strict=True))
    gradient = operator.gradient(attributes, shapes)
    if gradient is None:
        for stage, extra in heads:
            yield from _adjoints(stage, extra)
    else:
        outputs = {name: shape for name, shape in known.items() if name.startswith("output_")}
        backward = known | {name.replace("output_", "grad_"): shape for name, shape in outputs.items()}
        for stage in gradient.stages:
            yield stage, dict(backward)
            produced = stage.bind(backward).output_shapes
            backward.update(zip(stage.produces, produced, strict=True))
    for stage in operator.updates(attributes, shapes).values():
        yield stage, dict(known)
    for seed in operator.seeds:
        yield operator.seed_update(seed), dict(known)


def _adjoints(stage: Stage, shapes: Shapes) -> Iterator[tuple[Stage, Shapes] | Missing]:
    """Yield gradients with respect to every input."""
    for tensor in stage.inputs:
        try:
            yield from ((adjoint, shapes) for adjoint in stage.adjoint(tensor))
        except OperatorError as error:
            # of a message with a place: what and where, not the line and the caret
            reason = "; ".join(str(error).splitlines()[:2])
            yield Missing(f"{stage.name}_grad_{tensor}", reason)
