"""Rewrite the gradients of a training graph, and its lookups: one pure function from graph to graph."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial

from ...errors import GraphError
from ...support.wording import alternatives
from ..graph import Graph, Role
from .arrivals import applied_by_arrival, arrivals_tensor
from .casts import exchange_cast
from .delays import delayed
from .edit import GraphEdit
from .encoders import Cast, Encoder, PowerSgd, Rewrite, TopK
from .gradients import UpdatingGradient, gradient_of, updating_gradients
from .masked_lookups import mask_lookups
from .parts import rewritten_parts
from .power_sgd import exchange_factors
from .pulled import pulled_tensor
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
    by_arrival = [name for name, rewrite in rewrites.items() if rewrite.by_arrival]
    order = arrivals_tensor(edit, len(by_arrival), workers) if by_arrival else None
    for variable, rewrite in rewrites.items():
        if variable not in parameters:
            raise GraphError(f"the graph has no parameter {variable!r}{alternatives(variable, parameters)}")
        if rewrite.masked:
            mask_lookups(edit, parameters[variable])
            continue
        gradient = gradient_of(graph, gradients, variable)
        if rewrite.by_arrival and order is not None:
            applied = local.of(gradient.tensor)
            pulled = pulled_tensor(edit, parameters[variable], workers, samples)
            applied_by_arrival(edit, applied, gradient, pulled, order, by_arrival.index(variable))
        else:
            _rewrite(edit, local, gradient, rewrite)
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
