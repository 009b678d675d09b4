"""Rewrite the gradients of a training graph: one pure function from graph to graph."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial

from ...errors import GraphError
from ...support.wording import alternatives
from ..graph import Graph, Role
from .casts import exchange_cast
from .delays import delayed
from .edit import GraphEdit
from .encoders import Cast, Encoder, PowerSgd, Rewrite, TopK
from .gradients import UpdatingGradient, gradient_of, updating_gradients
from .parts import rewritten_parts
from .power_sgd import exchange_factors
from .replicas import LocalGradients
from .top_k import exchange_largest


def rewritten(
    graph: Graph,
    workers: int,
    rewrites: Mapping[str, Rewrite],
    samples: Mapping[int, str],
    terms: Set[int],
) -> Graph:
    """Return the graph in which the gradients of some parameters are rewritten, by name.

    `samples` has the variable that the samples reach, of operations that have one. `terms` are the tensors
    that may stay sums over samples for their readers. Raises GraphError naming the parameter or the operation
    that cannot be rewritten, and why.
    """
    edit = GraphEdit(graph)
    local = LocalGradients(edit, workers, samples, terms, {})
    gradients = updating_gradients(graph)
    parameters = {t.name: t.index for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None}
    for variable, rewrite in rewrites.items():
        if variable not in parameters:
            raise GraphError(f"the graph has no parameter {variable!r}{alternatives(variable, parameters)}")
        _rewrite(edit, local, gradient_of(graph, gradients, variable), rewrite)
    return edit.finish()


def _rewrite(edit: GraphEdit, local: LocalGradients, gradient: UpdatingGradient, rewrite: Rewrite) -> None:
    found = gradient.tensor
    if rewrite.parts is not None:
        terms = local.of(gradient.tensor)
        name = edit.tensors[gradient.tensor].name
        edit.rename(gradient.tensor, f"whole({name})")
        exchange = partial(_exchanged, edit)
        found = rewritten_parts(
            edit, terms, rewrite.parts, gradient.variable, name, gradient.updates, exchange
        )
    if rewrite.encoder is not None:
        terms = local.of(gradient.tensor)
        name = edit.tensors[gradient.tensor].name
        edit.rename(gradient.tensor, f"whole({name})")
        found = _exchanged(edit, terms, rewrite.encoder, gradient.variable, name)
    if rewrite.delay:
        found = delayed(edit, found, rewrite.delay, gradient.variable, gradient.updates)
    for update in gradient.updates:
        edit.read_instead(update, gradient.tensor, found)


def _exchanged(edit: GraphEdit, terms: int, encoder: Encoder, variable: str, name: str) -> int:
    match encoder:
        case Cast():
            return exchange_cast(edit, terms, encoder, variable, name)
        case PowerSgd():
            return exchange_factors(edit, terms, encoder, variable, name)
        case TopK():
            return exchange_largest(edit, terms, encoder, variable, name)
