"""Split a description with stages: every stage becomes a separate description."""

from __future__ import annotations

from dataclasses import replace

from ...tdl import ast
from ...tdl.traverse import opaques_in, tensors_in


def split_stages(description: ast.Description) -> tuple[ast.Description, ...]:
    """Return descriptions without stages, in execution order; the last one produces the outputs.

    Stage `s` of operator `F` is named `F_s`, the last one `F`. Each takes the tensors that it mentions:
    the operator's parameters in their order, then what earlier stages produce, by the stages' names.
    """
    names = (*description.tensor_names, *(stage.name for stage in description.stages))
    early = (
        _alone(description, names, f"{description.name}_{stage.name}", (stage.value,))
        for stage in description.stages
    )
    return (*early, _alone(description, names, description.name, description.outputs))


def _alone(
    description: ast.Description, names: tuple[str, ...], name: str, outputs: tuple[ast.Lambda, ...]
) -> ast.Description:
    """Return a description of these lambdas, with the tensors that they mention."""
    tensors = set[str]().union(*map(tensors_in, outputs))
    opaques = {opaque for output in outputs for opaque in opaques_in(output)}
    return replace(
        description,
        name=name,
        tensors=tuple(ast.TensorParameter(tensor) for tensor in names if tensor in tensors),
        opaques=tuple(opaque for opaque in description.opaques if opaque in opaques),
        stages=(),
        outputs=outputs,
    )
